"""A real server in trouble: full, a replica, loading, away, without its disk; and the end of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum

from tests.support.servers import ValkeyServer, free_port, loading


class Trouble(Enum):
    """What is the matter with it; the value: what an error of ours says of it."""

    FULL = "is out of memory and refuses new work"
    REPLICA = "is a read-only replica; point the URL at the primary"
    LOADING = "is still loading its data; try again"
    AWAY = "cannot be reached"
    DISK = "cannot write to its disk and takes no writes"


NO_ANSWER = [Trouble.REPLICA, Trouble.LOADING, Trouble.AWAY]
"""In which nothing is done for anybody."""
NO_WRITES = [*NO_ANSWER, Trouble.DISK]
"""In which nothing is changed for anybody."""


class Troubled:
    """A server of the test's own, which is in trouble from ``begin`` to ``mend``."""

    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self._loading = ExitStack()

    @property
    def url(self) -> str:
        """Database 0 of it."""
        return self.server.url

    def begin(self, trouble: Trouble) -> None:
        """What it has acknowledged so far stays."""
        match trouble:
            case Trouble.FULL:
                with self.server.client() as client:
                    client.config_set("maxmemory", 1)
            case Trouble.REPLICA:
                with self.server.client() as client:
                    # Of nobody: it keeps what it has.
                    client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
            case Trouble.LOADING:
                self._loading.enter_context(loading(self.server))
            case Trouble.AWAY:
                self.server.sync_and_kill()
            case Trouble.DISK:
                self.server.deny_disk()

    def mend(self, trouble: Trouble) -> None:
        """The server serves as before."""
        match trouble:
            case Trouble.FULL:
                with self.server.client() as client:
                    client.config_set("maxmemory", 0)
            case Trouble.REPLICA:
                with self.server.client() as client:
                    client.execute_command("REPLICAOF", "NO", "ONE")
            case Trouble.LOADING:
                self._loading.close()
            case Trouble.AWAY:
                self.server.restart()
            case Trouble.DISK:
                self.server.allow_disk()


@contextmanager
def troubled_server() -> Iterator[Troubled]:
    """A running server that gets into trouble when it is told to."""
    with ValkeyServer() as server:
        yield Troubled(server)
