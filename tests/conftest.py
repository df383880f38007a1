"""Settings of plugins that hold for every test. Fixtures live beside the tests that use them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# The machine may be busy: a slow example is no failure (no test asserts a duration).
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "thorough: takes long; `make test` runs it, `make check` not"
    )
    config.addinivalue_line(
        "markers",
        "leaves_keys(what, reason): the test leaves behind what nothing owns, see support/leaks.py",
    )
