"""Fixtures over a real server for the tests of this folder."""

from __future__ import annotations

from tests.support.fixtures import namespace, redis_url, valkey

__all__ = ["namespace", "redis_url", "valkey"]
