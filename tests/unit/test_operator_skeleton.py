"""The operator of this release says that it is none, and never looks healthy."""

from __future__ import annotations

import pytest

from tidework_operator.__main__ import main, without_password


def test_it_says_what_to_run_meanwhile_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEWORK_REDIS_URL", "redis://shop:secret@redis.example:6380/1?password=x")

    assert main() == 2

    said = capsys.readouterr().err
    assert "comes with a later release" in said
    assert "tidework dev FILES" in said
    assert "tidework scheduler FILES" in said
    assert "redis://***@redis.example:6380/1" in said
    assert "secret" not in said
    assert "password" not in said


def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEWORK_REDIS_URL", "http://redis.example")

    assert main() == 2

    assert "TIDEWORK_REDIS_URL" in capsys.readouterr().err


def test_a_url_without_credentials_is_shown_as_it_is() -> None:
    assert without_password("unix:///run/redis.sock") == "unix:///run/redis.sock"
