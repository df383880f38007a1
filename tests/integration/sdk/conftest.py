"""The SDK against a real server."""

from __future__ import annotations

from tests.support.fixtures import namespace, redis_url, valkey

__all__ = ["namespace", "redis_url", "valkey"]
