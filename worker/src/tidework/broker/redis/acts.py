"""What people did, kept and told by the Broker on Redis."""

from __future__ import annotations

from tidework.broker.acts import MOST_ACTS, Act, ActPage, act_page, act_text, read_act
from tidework.broker.redis.calls import RedisCalls
from tidework.broker.redis.replies import reading
from tidework.model.identity import QueueName


class RedisActs(RedisCalls):
    """The acts of the RedisBroker."""

    async def note_act(self, namespace: str, act: Act) -> bool:
        text = act_text(act)
        return bool(await self._run("note_act", _any_of(namespace), text=text, most=MOST_ACTS))

    async def acts(self, namespace: str, *, before: int | None = None, limit: int = 100) -> ActPage:
        queue = _any_of(namespace)
        start = "" if before is None else before
        found = await self._run("list_acts", queue, before=start, limit=limit + 1)
        with reading("what people did", queue):
            pairs = zip(found[::2], found[1::2], strict=True)
            return act_page([(int(number), read_act(raw.decode())) for raw, number in pairs], limit)


def _any_of(namespace: str) -> QueueName:
    """The key is that of the namespace, whatever the queue."""
    return QueueName(namespace, "any")
