"""Enqueues while a signal handler raises, again and again; a program of test_interruptions.py.

Arguments: URL, namespace, number of interruptions, and 'hiredis' or 'plain'. Says at the end how
many jobs were enqueued for certain, and what else was raised than the handler's error.
"""

from __future__ import annotations

import random
import signal
import sys
from types import FrameType
from typing import Any

from tidework import Settings, Tidework
from tidework.broker.connection import blocking_wire, packing
from tidework.broker.connection.transport import drive


class InterruptedHere(BaseException):
    """What the handler raises: as a soft timeout, Ctrl-C, gunicorn's timeout do."""


def main(url: str, namespace: str, wanted: int, way: str) -> None:
    """Enqueue until there were so many interruptions; then be sure that all is in order."""
    if way == "plain":
        vars(blocking_wire)["hiredis"] = None
    assert (packing.hiredis is not None) == (way in ("hiredis", "plain"))
    app = Tidework("shop", settings=Settings(redis_url=url, namespace=namespace))

    @app.task
    def work(n: int, text: str) -> None: ...

    draw = random.Random(1)
    interruptions, inside = 0, False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal interruptions, inside
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.003))
        if inside:
            interruptions += 1
            inside = False
            raise InterruptedHere

    jobs: list[str] = []
    others: dict[str, int] = {}
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    n = 0
    while interruptions < wanted:
        n += 1
        try:
            inside = True
            one = f"job-{n}"
            job: Any = work.options(delay=n % 3 * 1000, job_id=one).enqueue_sync(n, "x")
            assert job.id == one, f"{one} got the reply of {job.id}"
            if n % 7 == 0:
                found = drive(app.client.blocking_broker().stats(app.client.queue("default")))
                assert found.counters["enqueued"] >= 0, "somebody else's reply"
            inside = False
            jobs.append(one)
        except InterruptedHere:
            pass
        except Exception as error:
            inside = False
            others[repr(error)] = others.get(repr(error), 0) + 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    for one in jobs[-200:]:
        assert app.client.get_sync(one, queue="default").id == one
    print(len(jobs), others)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
