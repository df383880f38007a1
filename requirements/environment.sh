#!/bin/sh
# Creates (or brings up to date) the environment that make works in: environment.sh demo|all VENV [PYTHON]
# demo: what `tidework dev` needs; all: the operator's libraries and the tools as well.
# Everything comes from requirements/all.txt, each file checked by its hash; then the two distributions of this tree, editable.
# pip does it, so that whatever index, proxy or certificate the user's pip is configured with holds here too.
set -eu
cd "$(dirname "$0")/.."
what=$1
venv=$2
wanted=${3:-}

fail() {
    echo "error: $*" >&2
    exit 1
}

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
can_create() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

find_python() {
    without_venv=
    for candidate in ${wanted:-python3.13 python3.12 python3.11 python3.14 python3 python}; do
        is_recent "$candidate" || continue
        if can_create "$candidate"; then
            echo "$candidate"
            return
        fi
        without_venv=$candidate
    done
    if [ -n "$without_venv" ]; then
        fail "$without_venv cannot create environments: its venv or ensurepip module is missing." \
            "Install it (on Debian and Ubuntu: apt install $("$without_venv" -c \
            'import sys; print("python%d.%d-venv" % sys.version_info[:2])')) or name another Python: make PYTHON=..."
    fi
    if [ -n "$wanted" ]; then
        fail "PYTHON=$wanted does not start a Python 3.11 or later. Name one that does, or leave PYTHON away."
    fi
    fail "no Python 3.11 or later found on the PATH. Install one, or name it: make PYTHON=/path/to/python3.12"
}

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 || ! is_recent "$venv/bin/python"; then
    python=$(find_python)
    echo "Creating $venv with $("$python" --version) (about half a minute)" >&2
    "$python" -m venv --clear "$venv"
else
    echo "Bringing $venv up to date" >&2
fi

# --no-compile: modules are compiled when first imported; most of what is installed never is.
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input --quiet "$@"; }
if [ "$what" = demo ]; then
    "$venv/bin/python" requirements/chosen.py 'worker[dev]' hatchling editables >"$venv/chosen.txt"
    pip install --no-compile --no-deps --require-hashes -r "$venv/chosen.txt"
    pip install --no-compile --no-deps --no-build-isolation -e worker
else
    pip install --no-compile --require-hashes -r requirements/all.txt
    pip install --no-compile --no-deps --no-build-isolation -e worker -e operator
    touch "$venv/ready"
fi
touch "$venv/ready-for-demo"
