"""Pure values: nothing here does I/O, reads a clock or knows Redis."""
