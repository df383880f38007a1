"""The program of the template process: imports the application once, then forks children from it.

It is our own fork server: it has no threads and runs nothing but its loop after the import. It
is the children's parent: it reports their pids at fork, with a pidfd where there are any, and
their ends, after killing what is left of their process groups. It never blocks on a child.
Where the application started threads at import, forking is unsafe: children start afresh.
Orders and reports are JSON frames on a socket; the supervisor going away ends it.
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
from tidework.app_loading import load_app
from tidework.errors import ConfigurationError
from tidework.worker import frames, process
from tidework.worker.child import ChildConfig, serve_and_exit, settle_in
from tidework.worker.execution import Execution

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
        with self._control, self._wakeup, self._wakeup_end:
            while self._open:
                ready = {descriptor for descriptor, _ in poll.poll()}
                if self._wakeup.fileno() in ready:
                    self._wakeup.recv(_CHUNK)
                    self._reap()
                if self._control.fileno() in ready:
                    self._obey()
            signal.set_wakeup_fd(-1)

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
            key = json.loads(payload)["key"]
            self._start_child(key, self._descriptors.popleft(), self._descriptors.popleft())

    def _start_child(self, key: int, pipe: int, permits: int) -> None:
        try:
            if self._fork:
                pid = self._fork_child(pipe, permits)
            else:
                pid = self._spawn_child(pipe, permits)
        except OSError as error:  # no memory, or no more processes allowed
            self._say({"op": "refused", "key": key, "reason": str(error)})
            return
        finally:
            os.close(pipe)
            os.close(permits)
        # It cannot have been reaped yet, that is ours to do: the pidfd names no other process.
        pidfd = process.open_pidfd(pid)
        self._say({"op": "started", "key": key, "pid": pid, "pidfd": pidfd is not None}, pidfd)

    def _fork_child(self, pipe: int, permits: int) -> int:
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns of threads that C libraries made; ours were looked for after the import.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                settle_in(parent)
                self._forget()
                serve_and_exit(socket.socket(fileno=pipe), permits, self._execution)
            except BaseException:
                logger.exception("the child process did not start")
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

    def _spawn_child(self, pipe: int, permits: int) -> int:
        command = [sys.executable, "-m", "tidework.worker.child", str(pipe), str(permits)]
        command += [str(os.getpid()), self._config.to_json()]
        child = subprocess.Popen(command, pass_fds=(pipe, permits), stdin=subprocess.DEVNULL)
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

    def _say(self, report: Mapping[str, Any], descriptor: int | None = None) -> None:
        try:
            _send(self._control, frames.document_frame(report), descriptor)
        except ConnectionError:
            self._open = False
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _note(_number: int, _frame: object) -> None:
    """The number of the signal goes into the wakeup socket; nothing else is to be done."""


def _send(control: socket.socket, frame: bytes, descriptor: int | None = None) -> None:
    if descriptor is None:
        control.sendall(frame)
    else:
        sent = socket.send_fds(control, [frame], [descriptor])
        control.sendall(frame[sent:])


def python_threads() -> list[str]:
    """Names of threads beside the main one that run Python code."""
    named = {thread.ident: thread.name for thread in threading.enumerate()}
    idents = set(named) | set(sys._current_frames())  # noqa: SLF001 - the only list of raw threads
    idents.discard(threading.main_thread().ident or 0)
    return sorted(named.get(ident, f"unnamed thread {ident}") for ident in idents)


def _import_app(config: ChildConfig) -> Tidework:
    """The application, or ConfigurationError whatever its import does."""
    try:
        return load_app(config.app)
    except ConfigurationError:
        raise
    except BaseException as error:
        trace = "".join(traceback.format_exception(error))
        raise ConfigurationError(f"the application {config.app!r} fails:\n{trace}") from error


def main(argv: Sequence[str]) -> int:
    """Descriptor of the control socket, pid of the supervisor; the config is the first frame."""
    control = socket.socket(fileno=int(argv[1]))
    if sys.platform == "linux":
        # Elsewhere the end of the control socket has to say it: a thread would forbid to fork.
        process.die_with_parent(int(argv[2]))
    config = ChildConfig.from_json(argv[3])
    config.configure_logs()
    # Objects made by the import are never collected in the children: pages stay shared.
    gc.disable()
    try:
        app = _import_app(config)
    except ConfigurationError as error:
        _send(control, frames.document_frame({"op": "failed", "error": str(error)}))
        return 2
    threads = python_threads()
    gc.collect()
    gc.freeze()
    tasks = [task.spec.to_document() for task in app.tasks.values()]
    try:
        _send(control, frames.document_frame({"op": "hello", "tasks": tasks, "threads": threads}))
    except ConnectionError:
        return 0  # the supervisor did not wait for us
    Template(control, config, app, fork=not threads).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
