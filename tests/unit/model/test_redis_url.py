"""Redis URLs: what each form says, and what is refused with a remedy and without the secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidework.model.redis_url import Kind, Login, Place, RedisUrl, add_login, read_redis_url

FILE = Path("/run/secrets/redis")


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("redis://", RedisUrl(Kind.SINGLE, (Place("localhost", 6379),))),
        ("redis://h:1/2", RedisUrl(Kind.SINGLE, (Place("h", 1),), database=2)),
        ("redis://h/?db=3", RedisUrl(Kind.SINGLE, (Place("h", 6379),), database=3)),
        (
            "rediss://u%40x:p%2Fw@[::1]:7/1?ssl_ca_certs=/ca",
            RedisUrl(
                Kind.SINGLE,
                (Place("::1", 7),),
                database=1,
                tls=True,
                login=Login("u@x", "p/w"),
                options="ssl_ca_certs=%2Fca",
            ),
        ),
        ("redis://:pw@h", RedisUrl(Kind.SINGLE, (Place("h", 6379),), login=Login("", "pw"))),
        (
            "redis://u@h?password_file=/run/secrets/redis",
            RedisUrl(Kind.SINGLE, (Place("h", 6379),), login=Login("u", "", FILE)),
        ),
        (
            "redis+sentinel://a/jobs?url_file=/run/secrets/redis",
            RedisUrl(
                Kind.SENTINEL,
                (Place("a", 26379),),
                service="jobs",
                login=Login(url_file=FILE),
                sentinel_login=Login(url_file=FILE, is_of_sentinels=True),
            ),
        ),
        ("unix:///run/r%20s", RedisUrl(Kind.SINGLE, (Place(path="/run/r s"),))),
        (
            "unix://u:p@/run/r",
            RedisUrl(Kind.SINGLE, (Place(path="/run/r"),), login=Login("u", "p")),
        ),
        (
            "redis+sentinel://u:p@a,b:2,[::2]:3/jobs/4?sentinel_username=s&sentinel_password=t",
            RedisUrl(
                Kind.SENTINEL,
                (Place("a", 26379), Place("b", 2), Place("::2", 3)),
                service="jobs",
                database=4,
                login=Login("u", "p"),
                sentinel_login=Login("s", "t"),
            ),
        ),
        (
            "rediss+sentinel://a/jobs?sentinel_password_file=/run/secrets/redis",
            RedisUrl(
                Kind.SENTINEL,
                (Place("a", 26379),),
                service="jobs",
                tls=True,
                sentinel_login=Login("", "", FILE),
            ),
        ),
        (
            "redis+cluster://u:p@a,b:2",
            RedisUrl(Kind.CLUSTER, (Place("a", 6379), Place("b", 2)), login=Login("u", "p")),
        ),
        ("rediss+cluster://a/0", RedisUrl(Kind.CLUSTER, (Place("a", 6379),), tls=True)),
    ],
)
def test_what_a_url_says(url: str, wanted: RedisUrl) -> None:
    assert read_redis_url(url) == wanted


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://h", r"use redis://HOST:PORT/DB.*redis\+sentinel://.*redis\+cluster://"),
        ("redis+other://h", "use redis://"),
        ("unix+cluster://h", "use redis://"),
        ("localhost:6379", "use redis://"),
        ("redis://h:port", "HOST:PORT"),
        ("redis://h:65536", "port 65536"),
        ("redis://h:0", "port 0"),
        ("redis://::1", "IPv6 address in brackets"),
        ("redis://h/one", "the database is a number"),
        ("redis://h/?db=-1", "the database is a number"),
        ("redis+cluster://h/1", "database 0 only"),
        ("redis+sentinel://h", "name of the service"),
        ("redis+sentinel://h/jobs/x", "the database is a number"),
        ("redis://h?socket_timeout=1", "unknown option 'socket_timeout'; known are username"),
        ("redis://h?ssl_ca_certs=/ca", "unknown option 'ssl_ca_certs'"),
        ("redis://h?sentinel_password=x", "unknown option 'sentinel_password'"),
        ("redis://u@h?username=v", "two users"),
        ("redis://:p@h?password_file=/f", "both a password and a password_file"),
    ],
)
def test_what_is_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_redis_url(url)


def test_secrets_are_not_shown() -> None:
    found = read_redis_url("redis+sentinel://u:hidden@a/jobs?sentinel_password=hidden")

    assert "hidden" not in repr(found)
    assert str(found) == "a:26379"
    assert str(read_redis_url("redis+cluster://a,[::1]:2")) == "a:6379, [::1]:2"
    assert str(read_redis_url("unix:///run/r")) == "/run/r"


@pytest.mark.parametrize("url", ["redis://h", "redis://h/1?client_name=x", "redis+cluster://a,b"])
def test_a_login_becomes_part_of_a_url(url: str) -> None:
    found = add_login(url, username="u&v", password_file=Path("/a b/c"))

    assert read_redis_url(found).login == Login("u&v", "", Path("/a b/c"))
    assert read_redis_url(found).places == read_redis_url(url).places
    assert add_login(found, username="u&v", password_file=Path("/a b/c")) == found
    assert add_login(url) == url


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://v@h", "another user"),
        ("redis://:p@h", "a password of its own"),
        ("redis://h?password_file=/other", "a password of its own"),
    ],
)
def test_two_logins_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        add_login(url, username="u", password_file=FILE)
