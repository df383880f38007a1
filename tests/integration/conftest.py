"""After every test of this folder nothing on its server may be without an owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.leaks import no_leaks

__all__ = ["no_leaks"]

NOT_MIRRORED = ("which is not mirrored", "a row admits what only a row before it would mirror")
EXCUSED = {
    "broker/test_late_requests.py": NOT_MIRRORED,
    "broker/test_lost_replies.py": NOT_MIRRORED,
    "broker/test_proxy.py": ("has neither a TTL", "a key of its own shows what came through"),
}
"""File -> what its tests may leave behind, and why."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        excuse = (
            EXCUSED.get(str(item.path.relative_to(here))) if here in item.path.parents else None
        )
        if excuse:
            item.add_marker(pytest.mark.leaves_keys(*excuse))
