"""Redis URLs: one server, a primary that Sentinels know, or a Cluster.

    redis://[USER:PASSWORD@]HOST[:6379][/DB]                rediss://... with TLS, unix://PATH
    redis+sentinel://[USER:PASSWORD@]HOST[:26379][,HOST...]/SERVICE[/DB]     rediss+sentinel://
    redis+cluster://[USER:PASSWORD@]HOST[:6379][,HOST...]                    rediss+cluster://

Options behind ``?``: password_file (read whenever a connection is made, so that a rotated
password needs no restart), username, ssl_* of redis-py with TLS, client_name, db, and for
Sentinels of their own sentinel_username, sentinel_password, sentinel_password_file. url_file
names a file with a URL, such as a mounted Secret: its user and password count, read likewise.
A pure value: nothing is looked up or read here. No message repeats what may be a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

DEFAULT_HOST = "localhost"
REDIS_PORT = 6379
SENTINEL_PORT = 26379
SCHEMES = frozenset(
    {"unix"} | {f"redis{s}{kind}" for s in ("", "s") for kind in ("", "+sentinel", "+cluster")}
)
FORMS = (
    "redis://HOST:PORT/DB, rediss://... (TLS), unix://PATH, "
    "redis+sentinel://HOST:26379,HOST:26379/SERVICE or redis+cluster://HOST:PORT"
)

# urlsplit refuses several IPv6 addresses in one URL.
_URL = re.compile(r"(?P<scheme>[a-z+]+)://(?P<server>[^/?]*)(?P<path>[^?]*)(\?(?P<query>.*))?")
_PLACE = re.compile(r"(?P<host>\[[^\[\]]+\]|[^:\[\]]*)(:(?P<port>\d+))?")
_OPTIONS = ("username", "password", "password_file", "url_file", "client_name", "db")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password", "sentinel_password_file")
_TLS_OPTIONS = (
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "ssl_ciphers",
)


class Kind(StrEnum):
    """Who says which server has a key."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class Place(NamedTuple):
    """Where a server listens: ``path`` of a socket, else host and port."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Login:
    """User and password; ``password_file`` counts instead of ``password`` where it is given.

    url_file:        the login of the URL in this file counts, as long as there is such a file
    is_of_sentinels: of that URL, the login for the Sentinels themselves
    """

    username: str = ""
    password: str = field(default="", repr=False)
    password_file: Path | None = None
    url_file: Path | None = None
    is_of_sentinels: bool = False

    @property
    def file(self) -> Path | None:
        """What is read whenever a connection is made; None if nothing is."""
        return self.url_file or self.password_file


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """What a URL says.

    places:         the servers to begin with: the server, the Sentinels, or some of the Cluster
    service:        the name by which Sentinels know the primary
    options:        further ones as a query string, in redis-py's spelling
    sentinel_login: for the Sentinels themselves
    """

    kind: Kind
    places: tuple[Place, ...]
    service: str = ""
    database: int = 0
    tls: bool = False
    login: Login = Login()
    sentinel_login: Login = Login()
    options: str = ""

    def __str__(self) -> str:
        return ", ".join(str(place) for place in self.places)


def read_redis_url(url: str) -> RedisUrl:
    """Parse a URL. Raises ValueError."""
    parts = _URL.fullmatch(url)
    if parts is None or parts["scheme"] not in SCHEMES:
        raise ValueError(f"use {FORMS}")
    scheme, _, kind_name = parts["scheme"].partition("+")
    kind = Kind(kind_name or "single")
    options = _read_options(parts["query"] or "", kind, tls=scheme == "rediss")
    sentinel_login = _take_login(options, "sentinel_")
    login_text, _, hosts = parts["server"].rpartition("@")
    login = _join_logins(login_text, _take_login(options, ""))
    if file := options.pop("url_file", ""):
        login = replace(login, url_file=Path(file))
        if kind is Kind.SENTINEL:
            sentinel_login = replace(sentinel_login, url_file=Path(file), is_of_sentinels=True)
    if scheme == "unix":
        places: tuple[Place, ...] = (Place(path=unquote(hosts + parts["path"])),)
        service, database = "", "0"
    else:
        port = SENTINEL_PORT if kind is Kind.SENTINEL else REDIS_PORT
        found = hosts.split(",") if kind is not Kind.SINGLE else [hosts]
        places = tuple(_read_place(text, port) for text in found)
        service, database = _read_path(parts["path"], kind)
    return RedisUrl(
        kind,
        places,
        service=service,
        database=_read_database(options.pop("db", database), kind),
        tls=scheme == "rediss",
        login=login,
        sentinel_login=sentinel_login,
        options=urlencode(options),
    )


def add_login(url: str, *, username: str = "", password_file: Path | None = None) -> str:
    """The URL with these as its options; the same once more changes nothing.

    Raises ValueError if the URL says otherwise already.
    """
    found = read_redis_url(url)
    added: dict[str, str] = {}
    if username and username != found.login.username:
        if found.login.username:
            raise ValueError("the Redis URL names another user: keep one of the two")
        added["username"] = username
    if password_file is not None and password_file != found.login.password_file:
        if found.login.password or found.login.password_file is not None:
            raise ValueError("the Redis URL has a password of its own: keep one of the two")
        added["password_file"] = str(password_file)
    if not added:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(added, safe='/')}"


def read_url_file(file: Path) -> str:
    """The URL in a file; '' if there is no file, or nothing in it.

    Raises ValueError for what is not a URL, or cannot be read.
    """
    try:
        # Editors and `echo` end a line; no URL does.
        text = file.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the file {file} cannot be read: {error}") from error
    try:
        if text:
            read_redis_url(text)
    except ValueError as error:
        raise ValueError(f"the URL in the file {file} is wrong: {error}") from error
    return text


def add_url_file(url: str, file: Path) -> str:
    """The URL with the file as its option; the same once more changes nothing.

    A URL whose password is in a file of its own stays as it is: that file is read anyway.
    """
    login = read_redis_url(url).login
    if login.file is not None:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'url_file': str(file)}, safe='/')}"


def _read_options(query: str, kind: Kind, *, tls: bool) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    known = [*_OPTIONS]
    known += _SENTINEL_OPTIONS if kind is Kind.SENTINEL else ()
    known += _TLS_OPTIONS if tls else ()
    for name in options:
        if name not in known:
            raise ValueError(f"it has an unknown option {name!r}; known are {', '.join(known)}")
    return options


def _take_login(options: dict[str, str], prefix: str) -> Login:
    file = options.pop(f"{prefix}password_file", "")
    return Login(
        options.pop(f"{prefix}username", ""),
        options.pop(f"{prefix}password", ""),
        Path(file) if file else None,
    )


def _join_logins(text: str, given: Login) -> Login:
    user, _, password = (unquote(part) for part in text.partition(":"))
    if user and given.username not in ("", user):
        raise ValueError("it names two users")
    password = password or given.password
    if password and given.password_file is not None:
        raise ValueError("it has both a password and a password_file: keep one of the two")
    return Login(user or given.username, password, given.password_file)


def _read_place(text: str, port: int) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError("a server is written HOST or HOST:PORT, an IPv6 address in brackets")
    number = int(found["port"] or port)
    if not 0 < number < 65_536:
        raise ValueError(f"port {number} is not within 1 to 65535")
    return Place(unquote(found["host"].strip("[]")) or DEFAULT_HOST, number)


def _read_path(path: str, kind: Kind) -> tuple[str, str]:
    """Service and database."""
    if kind is not Kind.SENTINEL:
        return "", path.strip("/") or "0"
    service, _, database = path.strip("/").partition("/")
    if not service:
        raise ValueError(
            "behind the Sentinels' hosts stands the name of the service: "
            "redis+sentinel://HOST:26379/SERVICE"
        )
    return unquote(service), database or "0"


def _read_database(text: str, kind: Kind) -> int:
    if not text.isdecimal():
        raise ValueError("the database is a number, 0 or greater")
    if kind is Kind.CLUSTER and int(text):
        raise ValueError("a Cluster has database 0 only")
    return int(text)
