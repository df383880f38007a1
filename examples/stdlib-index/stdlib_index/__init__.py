"""An application that measures the standard library, one job per file. See README.md beside it."""
