"""`python -m tidework` is the command line."""

from __future__ import annotations

from tidework.cli.__main__ import main

if __name__ == "__main__":
    main()
