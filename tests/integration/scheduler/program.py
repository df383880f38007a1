"""A scheduler process for tests: URL, namespace and holder are its arguments.

It fires one CronTask every second and writes its log to standard output, one JSON line per event;
the last line gives its counters.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import UTC, datetime, timedelta

from tidework.broker.redis.redis_broker import connect
from tidework.logs import JsonFormatter
from tidework.maintenance.upkeep import Upkeep
from tidework.model.identity import QueueName
from tidework.model.schedules.schedule import Every
from tidework.scheduler.due import FireRules
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.service import SchedulerService
from tidework.scheduler.spec import CronSpec


def secondly(namespace: str) -> CronSpec:
    """The CronTask of the test: every second."""
    return CronSpec(
        uid="tick",
        name="tick",
        queue=QueueName(namespace, "ticks"),
        task="tick",
        rules=FireRules(Every(timedelta(seconds=1))),
        created=datetime.now(UTC),
    )


async def main(url: str, namespace: str, holder: str) -> None:
    broker = connect(url)
    service = SchedulerService(
        broker,
        CronRegistry([secondly(namespace)]),
        keeper=Upkeep,
        holder=holder,
        ttl=timedelta(seconds=2),
        renew_every=timedelta(seconds=0.5),
    )
    running = asyncio.create_task(service.run())
    # The end of standard input is the order to stop: no signal to race with.
    await asyncio.to_thread(sys.stdin.read)
    service.stop()
    await running
    counters = service.scheduler.counters
    fenced, fired = counters.fenced_writes, sum(counters.verdicts.values())
    print(json.dumps({"event": "ended", "fenced_writes": fenced, "fired": fired}), flush=True)
    await broker.close()


if __name__ == "__main__":
    to_stdout = logging.StreamHandler(sys.stdout)
    to_stdout.setFormatter(JsonFormatter({}))
    logging.basicConfig(level=logging.INFO, handlers=[to_stdout])
    asyncio.run(main(*sys.argv[1:]))
