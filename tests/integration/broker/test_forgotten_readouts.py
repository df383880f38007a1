"""Read-outs on a server that forgets every script: each is answered all the same.

(Of requests that change something the table of requests says so.)
"""

from __future__ import annotations

from datetime import timedelta
from importlib.resources import files

from tests.support.forgetful import Forgetful
from tidework.broker.connection.transport import AsyncTransport
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.broker.scripts import load_script
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState


def read_outs() -> set[str]:
    folder = files("tidework.broker").joinpath("scripts")
    names = [file.name.removesuffix(".lua") for file in folder.iterdir() if ".lua" in file.name]
    return {name for name in names if "no-writes" in load_script(name).text.partition("\n")[0]}


async def test_every_read_out_is_answered(redis_url: str, namespace: str) -> None:
    queue = QueueName(namespace, "q")
    forgetful = Forgetful(AsyncTransport(redis_url))
    broker = RedisBroker(forgetful)
    try:
        await broker.enqueue(queue, [Job("a", "t", {})])
        forgetful.forgotten.clear()

        record = await broker.get_job(queue, "a")
        assert record is not None
        assert record.state is JobState.READY
        assert len(await broker.get_jobs(queue, ["a"])) == 1
        assert (await broker.list_jobs(queue, JobState.READY)).ids == ("a",)
        assert (await broker.stats(queue)).states[JobState.READY] == 1
        assert (await broker.gather(queue, horizon=timedelta(0))).backlog == 1
        assert (await broker.statistics(queue))[0].day.enqueued == 1
        assert await broker.list_errors(queue) == ()
        assert await broker.workers(queue) == ()
        assert (await broker.acts(queue.namespace)).acts == ()
        assert await broker.cron_record(queue, "c1") is None

        assert read_outs() <= set(forgetful.forgotten)
    finally:
        await broker.close()
