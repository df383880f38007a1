"""The supervisor's ends of a child's pipes, for a test that is the supervisor."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

from tidework.worker import frames


class Pipes:
    """A socket pair and the pipe of permits; what serves the other ends runs in a thread."""

    def __init__(self) -> None:
        self.pipe, self.theirs = socket.socketpair()
        self.pipe.settimeout(10)
        self.permits_read, self.permits_write = os.pipe()
        os.set_blocking(self.permits_read, False)
        self._buffer = frames.FrameBuffer()
        self._found: list[bytes] = []
        self._thread: threading.Thread

    def serve(self, target: Callable[[], None]) -> None:
        """Start the thread; it ends when the pipe does."""
        self._thread = threading.Thread(target=target)
        self._thread.start()

    def send(self, *numbers: int, ahead: bool = False, body: bytes = b"{}") -> None:
        """Jobs; with their permits if they are sent ``ahead``."""
        if ahead:
            os.write(self.permits_write, b"".join(map(frames.PERMIT.pack, numbers)))
        jobs = [frames.JobFrame(number, ahead, 0, 1, 1, 5.0, body).encode() for number in numbers]
        self.pipe.sendall(b"".join(jobs))

    def report(self) -> frames.Report:
        """The next one, waited for."""
        while not self._found:
            self._found += self._buffer.feed(self.pipe.recv(65536))
        return frames.decode_report(self._found.pop(0))

    def close(self) -> None:
        """The end of the supervisor: the child ends, too."""
        self.pipe.close()
        self._thread.join(10)
        assert not self._thread.is_alive(), "it ends with its pipe"
        self.theirs.close()
        os.close(self.permits_read)
        os.close(self.permits_write)
