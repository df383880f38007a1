"""Where the microseconds of a no-op job go, in each process that it passes through."""
