"""Settings: frozen objects, read from TIDEWORK_* variables, validated before anything starts."""

from __future__ import annotations

import os
import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from tidework.errors import ConfigurationError
from tidework.model.identity import is_dns_label
from tidework.model.lease import LEASE, POISON_CAP, RELEASE_CAP, QueueLimits
from tidework.model.redis_url import add_login, add_url_file, read_redis_url, read_url_file

DASHBOARD_PORT = 8090

LogFormat = Literal["auto", "human", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
_EMPTY_IS_NONE = BeforeValidator(lambda found: None if found == "" else found)
_ANY_CASE = BeforeValidator(lambda found: found.lower() if isinstance(found, str) else found)


def is_another_url(given: str | None) -> bool:
    """Does somebody ask for another Redis than the environment names?

    Options of the command line hand on what they found in the environment.
    """
    return given not in (None, os.environ.get("TIDEWORK_REDIS_URL"))


class _Frozen(BaseSettings):
    # A URL in an error could tell a password.
    model_config = SettingsConfigDict(
        env_prefix="TIDEWORK_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    @classmethod
    def load(cls, **given: Any) -> Self:
        """Given values win over the environment, another URL over a file that it names; None
        counts as not given. Who passes a name, with None or not, has an option of that name.

        Raises ConfigurationError that names each variable or option at fault.
        """
        values = {name: value for name, value in given.items() if value is not None}
        if is_another_url(values.get("redis_url")):
            values.setdefault("redis_url_file", None)
        try:
            return cls(**values)
        except ValidationError as error:
            faults = []
            for fault in error.errors(include_url=False):
                name = str(fault["loc"][0]) if fault["loc"] else ""
                option = f"--{name.replace('_', '-')} / " if name in given else ""
                where = f"{option}TIDEWORK_{name.upper()}: " if name else ""
                # A URL may hold a password.
                got = f" (got {fault['input']!r})" if name not in ("", "redis_url") else ""
                faults.append(f"{where}{fault['msg'].removeprefix('Value error, ')}{got}")
            raise ConfigurationError("; ".join(faults)) from error


class Settings(_Frozen):
    """What every program needs: where Redis is, which namespace, how to log.

    redis_url:           see model/redis_url.py; the next two become options of it
    redis_username:      '' = that of the URL
    redis_password_file: read whenever a connection is made, so that a password may be rotated
    redis_url_file:      the URL in it counts instead of redis_url while there is such a file; its
                         user and password are read again whenever a connection is made
    """

    redis_url: str = "redis://127.0.0.1:6379/0"
    redis_username: str = ""
    redis_password_file: Path | None = None
    redis_url_file: Path | None = None
    namespace: str = "default"
    log_format: Annotated[LogFormat, _ANY_CASE] = "auto"
    log_level: Annotated[LogLevel, _ANY_CASE] = "info"

    @field_validator("log_format", "log_level", mode="before")
    @classmethod
    def _in_any_case(cls, found: Any) -> Any:
        return found.lower() if isinstance(found, str) else found

    @field_validator("namespace")
    @classmethod
    def _namespace(cls, found: str) -> str:
        if not is_dns_label(found):
            raise ValueError("use a DNS label: a-z, 0-9 and '-', at most 63 characters")
        return found

    @field_validator("redis_url")
    @classmethod
    def _redis_url(cls, found: str) -> str:
        read_redis_url(found)
        return found

    @model_validator(mode="before")
    @classmethod
    def _complete_url(cls, found: dict[str, Any]) -> dict[str, Any]:
        return cls._add_url_file(cls._add_login(cls._read_url_file(found)))

    @classmethod
    def _read_url_file(cls, found: dict[str, Any]) -> dict[str, Any]:
        if not (file := found.get("redis_url_file")):
            return found
        try:
            text = read_url_file(Path(file))
        except ValueError as error:
            raise ValueError(f"TIDEWORK_REDIS_URL_FILE: {error}") from error
        if not text and not found.get("redis_url"):
            raise ValueError(
                f"TIDEWORK_REDIS_URL_FILE: there is no URL in the file {file}; "
                "write it there, or give TIDEWORK_REDIS_URL"
            )
        return {**found, "redis_url": text} if text else found

    @classmethod
    def _add_url_file(cls, found: dict[str, Any]) -> dict[str, Any]:
        if not (file := found.get("redis_url_file")):
            return found
        try:
            return {**found, "redis_url": add_url_file(found["redis_url"], Path(file))}
        except ValueError:
            return found  # a wrong URL is told by the check of its own field

    @classmethod
    def _add_login(cls, found: dict[str, Any]) -> dict[str, Any]:
        username, file = found.get("redis_username", ""), found.get("redis_password_file")
        url = found.get("redis_url", cls.model_fields["redis_url"].default)
        if not url or not (username or file):
            return found
        password_file = Path(file) if file else None
        try:
            with_login = add_login(url, username=username, password_file=password_file)
        except ValueError as error:
            raise ValueError(
                f"TIDEWORK_REDIS_USERNAME, TIDEWORK_REDIS_PASSWORD_FILE: {error}"
            ) from error
        return {**found, "redis_url": with_login}


class DashboardSettings(Settings):
    """Where the HTTP API listens, and who may call.

    dashboard_port: 0 = any free one
    dashboard_tokens_file: see access/tokens.py; without it the API is for the loopback, to read
    dashboard_access_file: see access/access_file.py
    dashboard_kubernetes: callers by tokens of the cluster around this process
    dashboard_redact: fields that no answer shows, besides the usual ones (access/redaction.py)
    dashboard_origins: of pages that may act, if a proxy changes the Host header (access/guard.py)
    """

    dashboard_host: str = "127.0.0.1"
    dashboard_port: int = Field(default=DASHBOARD_PORT, ge=0, le=65535)
    dashboard_tokens_file: Path | None = None
    dashboard_access_file: Path | None = None
    dashboard_kubernetes: bool = False
    dashboard_redact: str = ""
    dashboard_origins: Annotated[frozenset[str], NoDecode] = frozenset()

    @field_validator("dashboard_origins", mode="before")
    @classmethod
    def _split_origins(cls, found: Any) -> Any:
        return found.split() if isinstance(found, str) else found

    @field_validator("dashboard_origins")
    @classmethod
    def _are_origins(cls, found: frozenset[str]) -> frozenset[str]:
        for origin in found:
            if not re.fullmatch(r"https?://[^/?#@,*\s]+", origin):
                raise ValueError(
                    f"{origin!r} is not an origin: write scheme and host, as "
                    "https://tasks.example.com, and a space between two"
                )
        return found


class WorkerSettings(Settings):
    """What a worker needs besides. Durations are seconds, memory is MiB.

    app_version: as whoever scales the worker knows it, who has one look whether a new version
    knows tasks that were unknown before
    slots, async_slots: jobs at once, of any task in a process each, or of async tasks on one event
    loop; a worker has one of the two, and one slot where neither is given
    cancel_grace_seconds: in which a cancelled job has to end
    recycle_jobs, recycle_memory_mib: a child is replaced after so many jobs, or above so much
    PSS, always between two jobs. probe_port 0 = any free port, None = no probes.
    memory_limit_mib: of all processes of the worker, besides that of the container
    memory_most_percent: of the smaller limit; from there on the largest child is ended
    """

    app: str = ""
    app_version: str = ""
    queue: tuple[str, ...] = ("default",)
    slots: Annotated[int | None, Field(ge=1, le=1000), _EMPTY_IS_NONE] = None
    async_slots: int = Field(default=0, ge=0, le=1000)
    worker_name: str = Field(default_factory=socket.gethostname)
    hard_timeout_seconds: float = Field(default=600.0, gt=0)
    cancel_grace_seconds: float = Field(default=5.0, ge=0)
    max_grace_seconds: float = Field(default=3600.0, gt=0)
    unknown_task_grace_seconds: float = Field(default=600.0, ge=0)
    recycle_jobs: int = Field(default=1000, ge=1)
    recycle_memory_mib: int = Field(default=128, ge=16)
    memory_limit_mib: int | None = Field(default=None, ge=64)
    memory_most_percent: int = Field(default=90, ge=10, le=100)
    probe_host: str = "127.0.0.1"
    probe_port: int | None = Field(default=None, ge=0, le=65535)
    lease_seconds: float = Field(default=LEASE.total_seconds(), ge=0.2)
    poison_cap: int = Field(default=POISON_CAP, ge=1)
    release_cap: int = Field(default=RELEASE_CAP, ge=1)
    keep_succeeded_seconds: float = Field(default=3600.0, gt=0)
    keep_dead_seconds: float = Field(default=7 * 86400.0, gt=0)
    keep_count: int = Field(default=10_000, ge=1)

    @model_validator(mode="after")
    def _has_one_kind_of_place(self) -> Self:
        if self.slots and self.async_slots:
            raise ValueError(
                "--slots / TIDEWORK_SLOTS and --async-slots / TIDEWORK_ASYNC_SLOTS are both given "
                f"({self.slots} and {self.async_slots}), and a worker has places of one kind; keep "
                "--async-slots for a queue of async tasks, which share an event loop, or --slots "
                "for any other queue"
            )
        return self

    @property
    def has_loop(self) -> bool:
        """Do its jobs share an event loop? Else each has a slot."""
        return self.async_slots > 0

    @property
    def places(self) -> int:
        """How many jobs run at once."""
        return self.async_slots or self.slots or 1

    @property
    def lease(self) -> timedelta:
        """Time after which a job of a dead worker is reaped."""
        return timedelta(seconds=self.lease_seconds)

    @property
    def grace(self) -> timedelta:
        """How long a drain waits for running jobs: the hard timeout and 10 s, capped."""
        return timedelta(seconds=min(self.hard_timeout_seconds + 10, self.max_grace_seconds))

    @property
    def limits(self) -> QueueLimits:
        """The bounds that the scripts apply."""
        return QueueLimits(
            lease=self.lease,
            poison_cap=self.poison_cap,
            release_cap=self.release_cap,
            keep_succeeded=timedelta(seconds=self.keep_succeeded_seconds),
            keep_dead=timedelta(seconds=self.keep_dead_seconds),
            keep_count=self.keep_count,
        )
