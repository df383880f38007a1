"""The program of the template process: imports the application once, then forks children from it.

It is our own fork server: it has no threads and runs nothing but its loop after the import. It
is the children's parent: it reports their pids at fork, with the file of their stacks and a pidfd
where there are any, and their ends, after killing what is left of their process groups. It never
blocks on a child.
Where the application started threads at import, forking is unsafe: children start afresh.
Orders and reports are JSON frames on a socket; the supervisor going away ends it, and before that
all that runs below it: the kernel would end the children alone, not what their jobs have started.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tidework.app import Tidework
from tidework.app_loading import load_app, refuse_for_loop
from tidework.errors import ConfigurationError
from tidework.worker import frames, process, stacks
from tidework.worker.child import shared_connections
from tidework.worker.child.child import serve_and_exit, settle_in
from tidework.worker.child.execution import Execution
from tidework.worker.child.leftovers import Leftovers
from tidework.worker.child_config import ChildConfig

_CHUNK = 65536
_MAX_DESCRIPTORS = 64

logger = logging.getLogger(__name__)


class Template:
    """Carries out the supervisor's orders until its socket is closed.

    control: the template's end of the control socket
    fork:    False = children are fresh interpreters
    """

    def __init__(
        self, control: socket.socket, config: ChildConfig, app: Tidework, *, fork: bool
    ) -> None:
        self._control = control
        self._config = config
        self._execution = Execution(app.tasks, config.queue_names())
        self._fork = fork
        self._buffer = frames.FrameBuffer()
        self._descriptors: deque[int] = deque()
        self._children: dict[int, subprocess.Popen[bytes] | None] = {}
        self._wakeup, self._wakeup_end = socket.socketpair()
        self._open = True
        self._supervisor = os.getppid()
        self._below = Leftovers()

    def serve(self) -> None:
        """Wait for orders and for the ends of children."""
        self._wakeup.setblocking(False)
        self._wakeup_end.setblocking(False)
        signal.set_wakeup_fd(self._wakeup_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _note)
        # These are the supervisor's to answer; its end is ours.
        signal.signal(signal.SIGINT, _note)
        signal.signal(signal.SIGTERM, _note)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        # Not SIGKILL any more: if the supervisor dies, what jobs have started is ours to end.
        told = process.told_of_parents_death(signal.SIGTERM)
        with self._control, self._wakeup, self._wakeup_end, told:
            while self._open and os.getppid() == self._supervisor:
                ready = {descriptor for descriptor, _ in poll.poll()}
                if self._wakeup.fileno() in ready:
                    self._wakeup.recv(_CHUNK)
                    self._reap()
                if self._control.fileno() in ready:
                    self._obey()
            signal.set_wakeup_fd(-1)
            # Whatever still runs below us: our supervisor is gone, or waits no longer for it.
            process.become_subreaper()
            self._below.kill()

    def _obey(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, _CHUNK, _MAX_DESCRIPTORS)
        except ConnectionError:
            data, descriptors = b"", []
        if not data:
            self._open = False
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
            self._descriptors.append(descriptor)
        for payload in self._buffer.feed(data):
            order = json.loads(payload)
            pipe, permits = self._descriptors.popleft(), self._descriptors.popleft()
            self._start_child(order["key"], order["places"], pipe, permits)

    def _start_child(self, key: int, places: int, pipe: int, permits: int) -> None:
        start = self._fork_child if self._fork else self._spawn_child
        own = [pipe, permits]
        try:
            own.append(stacks.open_file())
            pid = start(places, *own)
        except OSError as error:  # no memory, or no more processes or open files allowed
            _close_all(own)
            self._say({"op": "refused", "key": key, "reason": str(error)})
            return
        _close_all([pipe, permits])
        # It cannot have been reaped yet, that is ours to do: the pidfd names no other process.
        pidfd = process.open_pidfd(pid)
        passed = own[2:] if pidfd is None else [*own[2:], pidfd]
        self._say({"op": "started", "key": key, "pid": pid, "pidfd": pidfd is not None}, passed)

    def _fork_child(self, places: int, pipe: int, permits: int, file: int) -> int:
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns of threads that C libraries made; ours were looked for after the import.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                settle_in(parent)
                stacks.answer_signals(file)
                self._forget()
                end = socket.socket(fileno=pipe)
                serve_and_exit(end, permits, file, places, self._execution)
            except BaseException:
                logger.exception("the child process did not start", extra={"event": "child_failed"})
            finally:
                os._exit(70)
        self._children[pid] = None
        return pid

    def _forget(self) -> None:
        """In the child: close what is the template's, and the pipes of children yet to come."""
        for end in (self._control, self._wakeup, self._wakeup_end):
            end.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        gc.enable()

    def _spawn_child(self, places: int, pipe: int, permits: int, file: int) -> int:
        passed = (pipe, permits, file)
        command = [
            sys.executable,
            "-m",
            "tidework.worker.child.child",
            *map(str, passed),
            str(places),
        ]
        command += [str(os.getpid()), self._config.to_json()]
        child = subprocess.Popen(command, pass_fds=passed, stdin=subprocess.DEVNULL)
        self._children[child.pid] = child
        return child.pid

    def _reap(self) -> None:
        # By pid: what an imported library started is not ours to reap.
        for pid, child in list(self._children.items()):
            code = process.reap_leader(pid)
            if code is None:
                continue
            if child is not None:
                child.returncode = code
            del self._children[pid]
            self._say({"op": "ended", "pid": pid, "code": code})

    def _say(self, report: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            _send(self._control, frames.document_frame(report), descriptors)
        except ConnectionError:
            self._open = False
        finally:
            _close_all(descriptors)


def _note(_number: int, _frame: object) -> None:
    """The number of the signal goes into the wakeup socket; nothing else is to be done."""


def _send(control: socket.socket, frame: bytes, descriptors: Sequence[int] = ()) -> None:
    if not descriptors:
        control.sendall(frame)
    else:
        sent = socket.send_fds(control, [frame], descriptors)
        control.sendall(frame[sent:])


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def python_threads() -> list[str]:
    """Names of threads beside the main one that run Python code."""
    named = {thread.ident: thread.name for thread in threading.enumerate()}
    idents = set(named) | set(sys._current_frames())  # noqa: SLF001 - the only list of raw threads
    idents.discard(threading.main_thread().ident or 0)
    return sorted(named.get(ident, f"unnamed thread {ident}") for ident in idents)


def _import_app(config: ChildConfig) -> Tidework:
    """The application, or ConfigurationError whatever its import does."""
    try:
        app = load_app(config.app)
    except ConfigurationError:
        raise
    except BaseException as error:
        trace = "".join(traceback.format_exception(error))
        raise ConfigurationError(f"the application {config.app!r} fails:\n{trace}") from error
    if config.has_loop:
        refuse_for_loop(app, config.queues)
    return app


def main(argv: Sequence[str]) -> int:
    """Descriptors of the control socket and the file of stacks, the supervisor's pid, config."""
    control = socket.socket(fileno=int(argv[1]))
    os.set_inheritable(int(argv[2]), False)
    stacks.answer_signals(int(argv[2]))
    if sys.platform == "linux":
        # Elsewhere the end of the control socket has to say it: a thread would forbid to fork.
        process.die_with_parent(int(argv[3]))
    config = ChildConfig.from_json(argv[4])
    config.configure_logs()
    # Objects made by the import are never collected in the children: pages stay shared.
    gc.disable()
    try:
        app = _import_app(config)
    except ConfigurationError as error:
        _send(control, frames.document_frame({"op": "failed", "error": str(error)}))
        control.close()
        return 2
    threads = python_threads()
    app.client.close_sync()  # an enqueue at import: each process has its own
    gc.collect()
    gc.freeze()
    hello = {
        "op": "hello",
        "tasks": [task.spec.to_document() for task in app.tasks.values()],
        "async": [task.spec.name for task in app.tasks.values() if task.is_async],
        "threads": threads,
        "connections": [] if threads else shared_connections.peers(without={control.fileno()}),
    }
    try:
        _send(control, frames.document_frame(hello))
    except ConnectionError:
        return 0  # the supervisor did not wait for us
    Template(control, config, app, fork=not threads).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
