"""What a silent worker says itself reaches the condition."""

from __future__ import annotations

import pytest

from tests.support.autoscaling_rig import AutoscalingRig
from tidework.probes import ProbeServer
from tidework_operator.cluster import Object
from tidework_operator.hearing import WELL, hear_worker

REFUSED = "Redis at redis:6379 refuses the credentials"


class Says:
    """The Health of a worker."""

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble

    def livez(self) -> str:
        return ""

    def readyz(self) -> str:
        return ""

    def redisz(self) -> str:
        return self.trouble

    def metrics(self) -> bytes:
        return b""


def pod(address: str = "127.0.0.1") -> Object:
    return {"metadata": {"name": "a"}, "status": {"podIP": address}}


@pytest.mark.parametrize(("trouble", "heard"), [(REFUSED, REFUSED), ("", WELL)])
async def test_a_worker_says_what_is_wrong_with_its_redis(trouble: str, heard: str) -> None:
    server = ProbeServer("127.0.0.1", 0, Says(trouble))
    try:
        assert await hear_worker(pod(), server.port) == heard
    finally:
        server.close()


async def test_who_does_not_answer_says_nothing() -> None:
    server = ProbeServer("127.0.0.1", 0, Says(""))
    server.close()

    assert await hear_worker(pod(), server.port) == ""
    assert await hear_worker({"metadata": {"name": "a"}}, server.port) == ""


async def test_only_silent_workers_are_asked() -> None:
    rig = AutoscalingRig(minReplicas=1)
    asked: list[str] = []

    async def hear(found: Object) -> str:
        asked.append(found["metadata"]["name"])
        return REFUSED

    rig.autoscaler.hear = hear
    await rig.play_until(lambda: rig.replicas == 1)
    await rig.play(60)
    assert asked == []
    assert rig.seen.heard == ""

    for worker in rig.fleet.workers.values():
        worker.is_cut_off = True
    await rig.play_until(lambda: rig.seen.heard == REFUSED)
    assert set(asked) == set(rig.seen.silent)
