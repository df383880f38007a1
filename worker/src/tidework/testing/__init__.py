"""Stand-ins for tests: the broker in memory, a clock that stands still, a simulator of scaling."""
