"""Tests. A package, so that no other `tests` on the path can take its name."""
