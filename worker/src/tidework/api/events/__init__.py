"""Live updates: what listeners wait for is looked at once a second, and told when it changed."""
