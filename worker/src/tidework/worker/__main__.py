"""``python -m tidework.worker``: a worker configured by TIDEWORK_* variables alone."""

from __future__ import annotations

import sys

from tidework.errors import ConfigurationError
from tidework.settings import WorkerSettings
from tidework.worker.worker import MISCONFIGURED, run_worker


def main() -> int:
    """The exit code of ``run_worker``."""
    try:
        settings = WorkerSettings.load()
    except ConfigurationError as error:
        sys.stderr.write(f"tidework worker: {error}\n")
        return MISCONFIGURED
    return run_worker(settings)


if __name__ == "__main__":
    sys.exit(main())
