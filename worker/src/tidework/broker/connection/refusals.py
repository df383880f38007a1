"""What went wrong between us and Redis, in our words: what, where, and how to mend it.

An error of ours says one of three things: try again (BrokerUnavailableError), mend something
first (BrokerRefusedError), make room first (BrokerFullError). Secrets are never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from tidework.errors import (
    BrokerError,
    BrokerFullError,
    BrokerRefusedError,
    BrokerUnavailableError,
)
from tidework.model.redis_url import Kind, Place, RedisUrl, read_redis_url, read_url_file

OLDEST_REDIS = (7, 0)
OLDEST_WITH_WAITAOF = (7, 2)
_RIGHT_MISSING_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")
"""Valkey's words, Redis' words: neither has a code of its own."""
_FOR_NOW = {
    "NOREPLICAS": "has fewer replicas than its min-replicas-to-write and takes no writes now",
    "MISCONF": "cannot write to its disk and takes no writes until it can; look at its disk",
    "BUSY": "is busy with a script of somebody else; it ends, or SCRIPT KILL ends it",
}
"""Error codes that redis-py has no class for, and that are over some day: what each means."""


def is_role_lost(error: BaseException) -> bool:
    """Does the server say that it does not serve this (any more)? It did nothing then."""
    if isinstance(error, (ReadOnlyError, ClusterDownError)):
        return True
    return isinstance(error, ResponseError) and _text(error).startswith("UNBLOCKED")


def is_right_missing(error: BaseException) -> bool:
    """Does the user lack a right, on a command or on a key? Within a script that says so late."""
    if isinstance(error, NoPermissionError):
        return True
    text = _text(error) if isinstance(error, ResponseError) else ""
    return text.startswith(_RIGHT_MISSING_IN_SCRIPT)


def is_refusal(error: BaseException) -> bool:
    """Did the server answer, and would it answer the same again?"""
    return isinstance(error, (ResponseError, AuthenticationError))


def unanswered(what: str, heard: Mapping[Place, Exception | str], remedy: str) -> BrokerError:
    """Nobody among several servers could say what was asked.

    heard: what each of them said, or the error of asking it
    """
    each = "; ".join(
        f"{place}: {_text(said) if isinstance(said, Exception) else said}"
        for place, said in heard.items()
    )
    refused = all(isinstance(said, str) or is_refusal(said) for said in heard.values())
    kind = BrokerRefusedError if refused else BrokerUnavailableError
    return kind(f"{what} ({each}); {remedy}")


class Refusals:
    """Translates errors for the servers of one URL.

    named_by: where a person sets the URL, for the remedy
    """

    def __init__(self, url: RedisUrl, named_by: str) -> None:
        self._url = url
        self._named_by = named_by

    def translate(self, error: Exception, place: Place) -> BrokerError:
        """The error of ours for an error of redis-py or of the system."""
        if isinstance(error, BrokerError):
            return error
        at = f"Redis at {place}"
        text = _text(error)
        if isinstance(error, OutOfMemoryError):
            return BrokerFullError(
                f"{at} is out of memory and refuses new work ({text}); "
                "raise its maxmemory or let the workers catch up"
            )
        if isinstance(error, ReadOnlyError):
            return self.replica(place)
        if isinstance(error, AuthenticationError):
            return BrokerRefusedError(
                f"{at} refuses the credentials ({text}); {self._login_remedy()} ({self._named_by})"
            )
        if is_right_missing(error):
            return BrokerRefusedError(
                f"{at} does not allow this to user {self._url.login.username or 'default'!r} "
                f"({text}): it lacks a command, or the keys are another namespace's. `ACL LOG` on "
                "the server names what was refused; docs/redis-access.md has the rules of each "
                f"role ({self._named_by})"
            )
        if isinstance(error, BusyLoadingError):
            return BrokerUnavailableError(f"{at} is still loading its data; try again")
        if is_role_lost(error):
            return BrokerUnavailableError(f"{at} does not serve this now ({text}); try again")
        if isinstance(error, AskError):
            return self._elsewhere(at, text)
        if isinstance(error, TryAgainError):
            return BrokerUnavailableError(f"{at} is moving these keys; try again ({text})")
        if isinstance(error, ResponseError):
            for_now = _FOR_NOW.get(text.partition(" ")[0])
            if for_now is not None:
                return BrokerUnavailableError(f"{at} {for_now} ({text})")
            return BrokerError(f"{at} answered: {text}")
        return BrokerUnavailableError(
            f"{at} cannot be reached ({text}); check that it runs and that "
            f"{self._named_by} names it{self._moved()}"
        )

    def _elsewhere(self, at: str, text: str) -> BrokerError:
        if self._url.kind is Kind.CLUSTER:
            return BrokerUnavailableError(
                f"{at} and others point at each other ({text}); try again"
            )
        return BrokerRefusedError(
            f"{at} is one of a Cluster ({text}); write the URL as redis+cluster://HOST:PORT "
            f"({self._named_by})"
        )

    def _login_remedy(self) -> str:
        login = self._url.login
        if login.url_file is not None:
            return (
                f"user and password are those of the URL in the file {login.url_file}: put it "
                f"right there{self._moved()}"
            )
        if login.password_file is None:
            return "set user and password in the URL: redis://USER:PASSWORD@HOST:PORT/DB"
        user = f"of user {login.username!r} " if login.username else ""
        return (
            f"the password {user}is the one in the file {login.password_file}: put it right there"
        )

    def _moved(self) -> str:
        """A word on a file whose URL names other servers by now: its login alone is read again."""
        file = self._url.login.url_file
        try:
            text = "" if file is None else read_url_file(file)
        except ValueError as error:
            return f"; {error}"
        if not text or read_redis_url(text).places == self._url.places:
            return ""
        return (
            f"; the URL in the file {file} names {read_redis_url(text)} by now, "
            "which counts after a restart of this program"
        )

    def replica(self, place: Place) -> BrokerError:
        """The server is a replica: for good, or until it is promoted or the address moves."""
        at = f"Redis at {place} is a read-only replica"
        if self._url.kind is Kind.SINGLE:
            return BrokerUnavailableError(
                f"{at}; point the URL at the primary ({self._named_by}), or try again once it is "
                "promoted"
            )
        return BrokerUnavailableError(f"{at}, and no other is known as the primary yet; try again")

    def check_info(self, info: Mapping[str, Any], place: Place) -> None:
        """Raises BrokerRefusedError for a server that cannot serve, and ``replica``'s error."""
        if version_of(info) < OLDEST_REDIS:
            raise BrokerRefusedError(
                f"Redis at {place} is version {info.get('redis_version')}; "
                "Tidework needs Redis 7.0 or Valkey 7.2, or later"
            )
        if info.get("role") in ("slave", "replica"):
            raise self.replica(place)


def version_of(info: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor version; of Valkey the Redis version that it is compatible with."""
    major, minor = str(info.get("redis_version", "0.0")).split(".")[:2]
    return int(major), int(minor)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
