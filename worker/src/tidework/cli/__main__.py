"""`tidework`: finds click, hands over, and turns errors into one clear line and exit code 2."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    try:
        import click
    except ImportError:
        print(
            "tidework: the command line needs an extra: install tidework with its "
            "'worker', 'scheduler' or 'dev' extra",
            file=sys.stderr,
        )
        sys.exit(2)
    from tidework.cli.commands import root
    from tidework.errors import TideworkError

    try:
        root.main(prog_name="tidework", standalone_mode=False)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except TideworkError as error:
        print(f"tidework: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
