"""The supervisor's side of the template process: start it, order children, hear of their ends.

Everything that happens is told to a TemplateEvents, in the order in which it happened; a child's
end always comes after its start. The link never waits for the template.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tidework.model.task import TaskSpec
from tidework.worker import frames, process
from tidework.worker.child_config import ChildConfig
from tidework.worker.template import launch as template_process
from tidework.worker.template.launch import TemplateProcess

_CHUNK = 65536
_MAX_DESCRIPTORS = 64

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hello:
    """What the template says once the application is imported.

    async_tasks: names of those that are async functions
    threads:     names of the threads that forbid to fork
    connections: peers of those that all children share
    """

    specs: Mapping[str, TaskSpec]
    async_tasks: frozenset[str]
    threads: tuple[str, ...]
    connections: tuple[str, ...] = ()


class Orders(Protocol):
    """What the pool asks of the template."""

    def order_child(self, key: int, places: int, pipe: int, permits: int) -> bool:
        """Have a child started; False if that cannot be asked now."""

    def kill(self) -> None:
        """End the template and all its children."""


class TemplateEvents(Protocol):
    """Who is told what the template reports."""

    def on_hello(self, hello: Hello) -> None:
        """The application is imported; children may be ordered."""

    def on_import_failed(self, reason: str) -> None:
        """The application does not import."""

    def on_child_started(self, key: int, pid: int, file: int, pidfd: int | None) -> None:
        """A child runs. The file of its stacks and the pidfd are the receiver's to close."""

    def on_child_refused(self, key: int, reason: str) -> None:
        """The system does not give us another process."""

    def on_child_ended(self, pid: int, code: int | None) -> None:
        """A child has ended and was reaped; code as in process.reap_leader."""

    def on_template_ended(self, code: int | None) -> None:
        """The template has ended: so do its children."""


class TemplateLink:
    """One template process at a time.

    first: one that runs already, to begin with
    """

    def __init__(
        self, config: ChildConfig, events: TemplateEvents, first: TemplateProcess | None = None
    ) -> None:
        self._config = config
        self._events = events
        self._first = first
        self._process: TemplateProcess | None = None
        self._control: socket.socket | None = None
        self._buffer = frames.FrameBuffer()
        self._descriptors: deque[int] = deque()
        self._ended = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """Of the running template."""
        found = self._process or self._first
        return None if found is None else found.pid

    @property
    def file(self) -> int | None:
        """Where the running template writes its stacks."""
        return None if self._process is None else self._process.file

    def start(self) -> None:
        """Start a template. Its hello, its failure or its end follows as an event."""
        self._ended.clear()
        first, self._first = self._first, None
        try:
            self._process = first or template_process.start(self._config)
        except OSError as error:  # no memory, or no more processes or open files allowed
            self._events.on_import_failed(f"no new process: {error}")
            self._events.on_template_ended(None)
            return
        control = self._control = self._process.control
        control.setblocking(False)
        self._buffer = frames.FrameBuffer()
        loop = asyncio.get_running_loop()
        loop.add_reader(control.fileno(), self._read)
        if first is not None:
            loop.call_soon(self.reap)  # it may have ended before anybody listened

    def order_child(self, key: int, places: int, pipe: int, permits: int) -> bool:
        """Have a child started on these descriptors, which the caller keeps and may close.

        places: for async jobs on its event loop, 0 = one job of any kind at a time

        False if the template is not there to do it, or does not listen.
        """
        if self._control is None:
            return False
        try:
            order = frames.document_frame({"key": key, "places": places})
            socket.send_fds(self._control, [order], [pipe, permits])
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End the template at once; its children die with it."""
        if self._process is not None:
            process.kill(self._process.pid, None)

    def close(self) -> None:
        """Have the template end by itself."""
        self._close_control()

    def reap(self) -> None:
        """Look whether the template has ended; to be called at SIGCHLD."""
        running = self._process
        if running is None:
            return
        try:
            code = process.reap_leader(running.pid)
        except ChildProcessError:
            code = -1
        if code is None:
            return
        running.note_end(code)
        self._process = None
        self._read()  # what it said last
        self._close_control()
        os.close(running.file)
        self._ended.set()
        self._events.on_template_ended(code)

    async def wait_ended(self) -> None:
        """Wait until the template that was started last has been reaped."""
        if self._process is not None:
            await self._ended.wait()

    def _close_control(self) -> None:
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control.fileno())
            self._control.close()
            self._control = None
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def _read(self) -> None:
        control = self._control
        while control is not None and control is self._control:
            try:
                data, descriptors, _, _ = socket.recv_fds(control, _CHUNK, _MAX_DESCRIPTORS)
            except BlockingIOError:
                return
            except ConnectionError:
                data, descriptors = b"", []
            if not data:
                self._close_control()
                # It closed its end but may live on: whoever cannot be ordered is of no use.
                self.kill()
                return
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
                self._descriptors.append(descriptor)
            for payload in self._buffer.feed(data):
                self._tell(json.loads(payload))

    def _tell(self, report: Mapping[str, Any]) -> None:
        match report["op"]:
            case "hello":
                specs = [TaskSpec.from_document(found) for found in report["tasks"]]
                by_name = {spec.name: spec for spec in specs}
                threads, connections = tuple(report["threads"]), tuple(report["connections"])
                hello = Hello(by_name, frozenset(report["async"]), threads, connections)
                self._events.on_hello(hello)
            case "failed":
                self._events.on_import_failed(report["error"])
            case "started":
                file = self._descriptors.popleft()
                pidfd = self._descriptors.popleft() if report["pidfd"] else None
                self._events.on_child_started(report["key"], report["pid"], file, pidfd)
            case "refused":
                self._events.on_child_refused(report["key"], report["reason"])
            case "ended":
                self._events.on_child_ended(report["pid"], report["code"])
