#!/bin/sh
# A task in shell: its last line is the result, its exit code says how it ended.
set -eu

echo "attempt $TIDEWORK_ATTEMPT of $TIDEWORK_MAX_ATTEMPTS, job $TIDEWORK_JOB_ID" >&2

if [ ! -d "$REPORT_FOLDER" ]; then
    echo "$REPORT_FOLDER is no folder" >&2
    exit 65                                    # EX_DATAERR: no other attempt would end better
fi

used=$(df -P "$REPORT_FOLDER" | awk 'NR == 2 { sub("%", "", $5); print $5 }')
echo "{\"folder\": \"$REPORT_FOLDER\", \"used_percent\": $used}"
