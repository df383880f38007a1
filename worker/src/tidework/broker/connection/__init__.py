"""Connections to Redis: where servers are, how bytes travel, what a refusal means."""
