"""Each process of a running `tidework dev` is killed in turn: no job lost, no process orphaned."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import redis

from tests.support.dev_process import DevProcess
from tests.support.process_tree import children_of, is_alive
from tests.support.servers import free_port, write_to_disk
from tests.support.waiting import wait_until
from tidework import JobState, Settings, Tidework
from tidework.errors import BrokerError

APP = """
import os, time
from tidework import Tidework

app = Tidework("chaos", queue="chaos")

@app.task(max_attempts=50, delays=[0])
def note(n: int) -> int:
    time.sleep(0.05)
    with open(os.environ["CHAOS_NOTES"], "a") as notes:
        notes.write(f"{n}\\n")
    return n
"""

DOCUMENTS = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {{name: chaos}}
spec:
  app: chaos_app
  slots: 2
  minReplicas: 1
  maxReplicas: 2
  leaseSeconds: 3
  env: [{{name: CHAOS_NOTES, value: "{notes}"}}]
  scaling: {{idleSeconds: 5}}
"""


class Scene:
    """A folder with an application, a `tidework dev` that can be started again, and a producer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes.txt"
        self.notes.touch()
        (folder / "chaos_app.py").write_text(APP)
        (folder / "chaos.yaml").write_text(DOCUMENTS.format(notes=self.notes))
        self.port = free_port()
        self.app = Tidework(
            "producer", settings=Settings(redis_url=f"redis://127.0.0.1:{self.port}/0")
        )
        self.note = self.app.task(name="note", queue="chaos", max_attempts=50)(lambda n: n)
        self.acknowledged: set[str] = set()
        self.dev = self.start()

    def start(self) -> DevProcess:
        data = str(self.folder / "data")
        dev = DevProcess(
            self.folder, "chaos.yaml", "--data-dir", data, "--redis-port", str(self.port)
        )
        self.dev = dev
        dev.wait_for("started")
        return dev

    def produce(self, count: int) -> None:
        """Enqueue, again after an error with the same id, as a careful producer does."""
        for _ in range(count):
            job_id = f"job-{len(self.acknowledged)}"
            note, n = self.note.options(job_id=job_id), len(self.acknowledged)
            wait_until(
                partial(note.enqueue_sync, n),
                "Redis takes it",
                errors=(BrokerError,),
                story=self.dev.story,
            )
            self.acknowledged.add(job_id)

    def write_to_disk(self) -> None:
        """The server syncs by the second: a slow disk would make it lose what it answered."""
        with redis.Redis(port=self.port) as client:
            write_to_disk(client)

    def in_state(self, state: JobState) -> set[str]:
        found: set[str] = set()
        cursor: str | None = None
        more = True
        while more:
            page = self.app.client.jobs_sync("chaos", state, cursor=cursor, limit=500)
            found |= set(page.ids)
            cursor, more = page.cursor, page.cursor is not None
        return found

    def finished(self) -> bool:
        try:
            stats = self.app.client.stats_sync("chaos")
        except BrokerError:
            return False
        return stats.unfinished == 0

    def wait_until_some_run(self, more: int = 5) -> None:
        """Jobs are running and being finished just now."""
        before = len(self.notes.read_text().splitlines())
        self.dev.wait_until(lambda: len(self.notes.read_text().splitlines()) >= before + more)

    def wait_for_child(self) -> tuple[int, int]:
        """A template and a child of it; a worker that has just started has none yet."""
        found: list[tuple[int, int]] = []

        def look() -> bool:
            templates = [pid for s in self.dev.supervisors() for pid in children_of(s)]
            found[:] = [(pid, child) for pid in templates for child in children_of(pid)]
            return bool(found)

        self.dev.wait_until(look)
        return found[0]

    def check(self) -> None:
        self.dev.wait_until(self.finished, within=60)
        assert self.in_state(JobState.SUCCEEDED) == self.acknowledged, self.dev.story()
        noted = {f"job-{line}" for line in self.notes.read_text().split()}
        assert noted == self.acknowledged
        assert self.in_state(JobState.DEAD) == set()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    found = Scene(tmp_path)
    yield found
    found.dev.end()
    found.app.client.close_sync()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(240)
def test_every_process_is_killed_in_turn(scene: Scene) -> None:
    scene.produce(150)
    scene.wait_until_some_run()

    template, child = scene.wait_for_child()
    kill(child)
    scene.wait_until_some_run()

    kill(template)
    scene.produce(50)
    scene.wait_until_some_run()

    (supervisor, *_) = scene.dev.supervisors()
    below = [pid for pid in scene.dev.tree() if pid in _under(supervisor)]
    kill(supervisor)
    scene.dev.wait_until(lambda: not any(is_alive(pid) for pid in below))
    scene.dev.wait_for("worker_exited")
    scene.produce(50)
    scene.wait_until_some_run()

    scene.write_to_disk()
    kill(scene.dev.server_pid())
    scene.produce(50)
    scene.dev.wait_for("server_restarted")
    scene.wait_until_some_run()

    everything = scene.dev.tree()
    assert len(everything) >= 4
    scene.write_to_disk()
    scene.dev.process.kill()
    scene.dev.process.wait(timeout=20)
    scene.dev.wait_until(lambda: not any(is_alive(pid) for pid in everything))
    scene.dev.end()

    scene.start()
    scene.produce(50)
    scene.check()
    everything = scene.dev.tree()
    assert scene.dev.interrupt() == 0
    assert not any(is_alive(pid) for pid in everything)
    assert "Traceback" not in scene.dev.stderr, scene.dev.stderr


def _under(pid: int) -> list[int]:
    found = []
    for child in children_of(pid):
        found += [child, *_under(child)]
    return found
