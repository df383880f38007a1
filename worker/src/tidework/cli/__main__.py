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
        # Without click's own error handling it returns the code that a command exits with.
        code = root.main(prog_name="tidework", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tidework"):
            raise
        print(
            f"tidework: this command needs the package {error.name!r}: install tidework with its "
            "'scheduler', 'dashboard' or 'dev' extra",
            file=sys.stderr,
        )
        sys.exit(2)
    except TideworkError as error:
        print(f"tidework: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
