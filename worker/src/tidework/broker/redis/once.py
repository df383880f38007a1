"""Blocks that are done once per key, on Redis."""

from __future__ import annotations

from datetime import timedelta

from tidework.broker.answers import OnceAnswer
from tidework.broker.redis.calls import RedisCalls
from tidework.model.identity import QueueName
from tidework.model.lease import Lease

_MS = timedelta(milliseconds=1)


class RedisOnce(RedisCalls):
    """once_begin.lua, once_end.lua."""

    async def once_begin(self, queue: QueueName, lease: Lease, key: str) -> OnceAnswer:
        found: bytes = await self._write(
            "once_begin", queue, key=key, id=lease.job_id, token=lease.token
        )
        return OnceAnswer(found.decode())

    async def once_end(
        self, queue: QueueName, lease: Lease, key: str, *, ttl: timedelta | None
    ) -> bool:
        ttl_ms = "" if ttl is None else max(1, ttl // _MS)
        found = await self._write(
            "once_end", queue, key=key, id=lease.job_id, token=lease.token, ttl_ms=ttl_ms
        )
        return bool(found)
