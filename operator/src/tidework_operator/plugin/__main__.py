"""The console script ``kubectl-tidework``: errors become one clear line, exit status 1 or 2.

1: the cluster refused, or something was not as asked for; 2: it was asked for wrongly.
"""

from __future__ import annotations

import sys

import click

from tidework.errors import ConfigurationError, TideworkError
from tidework_operator.cluster import ClusterError
from tidework_operator.plugin.commands import PROGRAM, root

_NOT_FOUND = 404


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str], obj: object = None) -> int:
    """The exit status. ``obj``: what the commands reach the cluster by, None = as kubectl does."""
    try:
        ended = root.main(arguments, prog_name=PROGRAM, standalone_mode=False, obj=obj)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TideworkError as error:
        click.echo(f"{PROGRAM}: {_words(error)}", err=True)
        return 2 if isinstance(error, ConfigurationError) else 1
    return ended if isinstance(ended, int) else 0


def _words(error: TideworkError) -> str:
    if isinstance(error, ClusterError):
        if error.status == _NOT_FOUND and "tidework.dev" not in error.reason:
            return f"{error}; are the CRDs of Tidework installed in this cluster?"
        if error.is_forbidden:
            return f"{error}; ask for these rights on taskqueues, crontasks (tidework.dev) and pods"
    return str(error)


if __name__ == "__main__":
    main()
