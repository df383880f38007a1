"""Workers of `tidework dev` reach its own Redis, whatever the environment around it names."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tidework.dev.console import Console
from tidework.dev.system import DevOptions, DevSystem
from tidework.settings import Settings

OWN = "redis://127.0.0.1:7000/0"


def test_no_other_redis_of_the_environment_reaches_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in Settings.model_fields:
        if name.startswith("redis_"):
            monkeypatch.setenv(f"TIDEWORK_{name.upper()}", f"{tmp_path}/{name}")
    system = DevSystem(DevOptions(()), Console(as_json=True, stream=io.StringIO()))

    for name, value in system._common_environment(OWN).items():
        monkeypatch.setenv(name, value)

    assert Settings.load().redis_url == OWN
