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


def test_a_url_in_a_file_wins_and_is_read_again_for_its_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    monkeypatch.setenv("TIDEWORK_REDIS_URL", "redis://:started-with@a")
    monkeypatch.setenv("TIDEWORK_REDIS_URL_FILE", str(file))

    without = read_redis_url(WorkerSettings.load().redis_url)
    assert (str(without), without.login) == ("a:6379", Login("", "started-with", url_file=file))
    file.write_text("redis://u:fresh@b/1\n")
    found = WorkerSettings.load().redis_url
    assert str(read_redis_url(found)) == "b:6379"
    assert read_redis_url(found).login == Login("u", "fresh", url_file=file)
    assert Settings.load().redis_url == found, "as the processes of its jobs read it"

    monkeypatch.setenv("TIDEWORK_REDIS_URL", found)
    assert Settings.load().redis_url == found
    by_option = Settings.load(redis_url=found).redis_url
    assert by_option == found, "an option hands on what it found in the environment"
    given = Settings.load(redis_url="redis://c").redis_url
    assert given == "redis://c", "who names a URL means that one"


def test_a_file_without_a_url_is_refused_and_a_wrong_one_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    monkeypatch.delenv("TIDEWORK_REDIS_URL", raising=False)
    monkeypatch.setenv("TIDEWORK_REDIS_URL_FILE", str(file))
    with pytest.raises(ConfigurationError, match=r"there is no URL in the file .*; write it there"):
        Settings.load()

    file.write_text("http://:hidden@h")
    with pytest.raises(ConfigurationError, match=r"URL_FILE: the URL in the file .* wrong") as told:
        Settings.load()
    assert "hidden" not in str(told.value)


def test_a_url_file_does_not_meet_a_password_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    file.write_text("redis://h")
    monkeypatch.setenv("TIDEWORK_REDIS_URL_FILE", str(file))
    monkeypatch.setenv("TIDEWORK_REDIS_PASSWORD_FILE", FILE)

    assert read_redis_url(Settings.load().redis_url).login == Login("", "", Path(FILE))


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


@pytest.mark.parametrize(
    ("given", "places", "has_loop"),
    [
        ({}, 1, False),
        ({"slots": 4}, 4, False),
        ({"async_slots": 0}, 1, False),
        ({"async_slots": 100}, 100, True),
        ({"slots": 4, "async_slots": 0}, 4, False),
    ],
)
def test_a_worker_has_slots_or_async_slots(
    given: dict[str, int], places: int, *, has_loop: bool
) -> None:
    settings = WorkerSettings.load(**given)

    assert (settings.places, settings.has_loop) == (places, has_loop)


def test_an_empty_number_of_slots_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_SLOTS", "")
    monkeypatch.setenv("TIDEWORK_ASYNC_SLOTS", "7")

    assert WorkerSettings.load().places == 7


def test_a_worker_with_both_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_SLOTS", "4")

    with pytest.raises(ConfigurationError) as refused:
        WorkerSettings.load(async_slots=100)

    assert str(refused.value) == (
        "--slots / TIDEWORK_SLOTS and --async-slots / TIDEWORK_ASYNC_SLOTS are both given (4 and "
        "100), and a worker has places of one kind; keep --async-slots for a queue of async "
        "tasks, which share an event loop, or --slots for any other queue"
    )
