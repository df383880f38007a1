"""Settings of plugins that hold for every test. Fixtures live beside the tests that use them."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The machine may be busy: a slow example is no failure (no test asserts a duration).
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")
