"""The operator's composition root. This release has no operator yet, and says so.

Exit status 2 always, so that no pod made from this release looks healthy while it does nothing.
"""

from __future__ import annotations

import sys

from tidework.errors import ConfigurationError
from tidework_operator.settings import OperatorSettings

NOTICE = """\
tidework-operator: the Kubernetes operator comes with a later release; this one reconciles nothing.
The same TaskQueue and CronTask documents already run without a cluster:
  tidework dev FILES...          the whole system on this machine, with a Redis of its own
  tidework scheduler FILES...    the schedules alone, on the Redis at {redis_url}
Options: tidework dev --help, tidework scheduler --help"""


def main() -> int:
    """Print what to run meanwhile. Returns the exit status, 2."""
    try:
        settings = OperatorSettings.load()
    except ConfigurationError as error:
        print(f"tidework-operator: {error}", file=sys.stderr)
        return 2
    print(NOTICE.format(redis_url=without_password(settings.redis_url)), file=sys.stderr)
    return 2


def without_password(redis_url: str) -> str:
    """The URL as it may be shown: no credentials before the @, no options after the ?."""
    scheme, _, rest = redis_url.partition("://")
    credentials, _, place = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://***@{place}" if credentials else f"{scheme}://{place}"


if __name__ == "__main__":
    sys.exit(main())
