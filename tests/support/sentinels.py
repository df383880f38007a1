"""Three Sentinels over a primary and a replica, all plain processes."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.servers import (
    AWAY,
    ServerProcess,
    ValkeyServer,
    replica_of,
    wait_until_linked,
)
from tests.support.waiting import wait_until

SERVICE = "jobs"
_CONFIGURATION = """\
sentinel monitor {service} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {service} 700
sentinel failover-timeout {service} 4000
sentinel parallel-syncs {service} 1
{more}
"""


class SentinelProcess(ServerProcess):
    """A Sentinel that watches the server at port ``primary``.

    more: further lines of its configuration
    """

    def __init__(self, primary: int, binary: Path | None = None, more: str = "") -> None:
        super().__init__(binary)
        self._file = self.folder / "sentinel.conf"
        text = _CONFIGURATION.format(service=SERVICE, primary=primary, more=more)
        self._file.write_text(text)

    def command(self) -> list[str]:
        """Program and arguments."""
        program, *options = super().command()
        return [program, str(self._file), "--sentinel", *options, "--dir", str(self.folder)]

    def names(self, port: int) -> bool:
        """Does it hold the server at this port for the primary?"""
        with self.client() as client:
            _, found = client.sentinel_get_master_addr_by_name(SERVICE)
        return int(found) == port

    def is_complete(self) -> bool:
        """Does it know of the replica and of the two other Sentinels?"""
        with self.client() as client:
            found = client.sentinel_master(SERVICE)
        return (found["num-slaves"], found["num-other-sentinels"]) == (1, 2)


class WatchedPair:
    """A primary and a replica under three Sentinels. A context manager.

    servers: the first is the primary until it fails
    """

    def __init__(self, binary: Path | None = None) -> None:
        primary = ValkeyServer(binary)
        self.servers = (primary, replica_of(primary, binary))
        self.sentinels = tuple(SentinelProcess(primary.port, binary) for _ in range(3))
        self._stack = ExitStack()

    def url(self, *, first: str = "") -> str:
        """Of the primary, by the Sentinels. ``first``: a place asked before them."""
        places = [f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels]
        return f"redis+sentinel://{','.join([*filter(None, [first]), *places])}/{SERVICE}/0"

    def wait_until_promoted(self) -> None:
        """Wait until all Sentinels name the second server, and it is a primary."""
        port = self.servers[1].port
        for sentinel in self.sentinels:
            wait_until(partial(sentinel.names, port), "all name the new primary", errors=AWAY)

        def is_primary() -> bool:
            with self.servers[1].client() as client:
                return bool(client.info("replication")["role"] == "master")

        wait_until(is_primary, "the replica is promoted", errors=AWAY)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for process in (*self.servers, *self.sentinels):
                stack.enter_context(process)
            wait_until_linked(self.servers[0])
            for sentinel in self.sentinels:
                wait_until(
                    sentinel.is_complete, "they know each other and the replica", errors=AWAY
                )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
