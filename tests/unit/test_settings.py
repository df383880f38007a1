"""Settings: the login of Redis is read from the environment, and no secret is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidework.errors import ConfigurationError
from tidework.model.redis_url import Login, read_redis_url
from tidework.settings import Settings, WorkerSettings

FILE = "/run/secrets/redis"


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_REDIS_USERNAME", "worker")
    monkeypatch.setenv("TIDEWORK_REDIS_PASSWORD_FILE", FILE)


@pytest.mark.usefixtures("login")
@pytest.mark.parametrize("kind", [Settings, WorkerSettings])
def test_user_and_password_file_become_part_of_the_url(
    kind: type[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Login("worker", "", Path(FILE))

    by_default = kind.load().redis_url
    assert read_redis_url(by_default).login == wanted
    assert by_default.startswith("redis://127.0.0.1:6379/0?")
    monkeypatch.setenv("TIDEWORK_REDIS_URL", "redis+cluster://a,b")
    assert read_redis_url(kind.load().redis_url).login == wanted
    given = kind.load(redis_url="redis://c/1").redis_url
    assert read_redis_url(given).login == wanted
    assert kind.load(redis_url=given).redis_url == given, "as it is handed on to a process"


@pytest.mark.usefixtures("login")
def test_a_second_password_is_refused_and_not_told() -> None:
    with pytest.raises(ConfigurationError, match=r"REDIS_PASSWORD_FILE.*keep one") as refused:
        Settings.load(redis_url="redis://:hidden@h")

    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://:hidden@h", "redis://:hidden@h:port", "redis://:hidden@h?x=1"]
)
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--redis-url / TIDEWORK_REDIS_URL: ") as refused:
        Settings.load(redis_url=url)

    assert "hidden" not in str(refused.value)


def test_no_option_is_named_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_MEMORY_MOST_PERCENT", "200")
    monkeypatch.setenv("TIDEWORK_SLOTS", "0")

    with pytest.raises(ConfigurationError) as refused:
        WorkerSettings.load(slots=None)

    assert "--slots / TIDEWORK_SLOTS: " in str(refused.value)
    assert "; TIDEWORK_MEMORY_MOST_PERCENT: " in str(refused.value)
    assert "--memory-most-percent" not in str(refused.value)


def test_other_values_are_told() -> None:
    with pytest.raises(ConfigurationError, match=r"--slots / TIDEWORK_SLOTS: .*\(got 0\)"):
        WorkerSettings.load(slots=0)
