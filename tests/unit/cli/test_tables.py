"""What stands in the cells of tables."""

from __future__ import annotations

import pytest

from tidework.cli.tables import span_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0.00 ms"),
        (0.00042, "0.42 ms"),
        (0.0042, "4.2 ms"),
        (0.25, "250 ms"),
        (1.5, "1.5 s"),
        (42.4, "42 s"),
        (90, "1.5 min"),
        (5400, "1.5 h"),
        (200_000, "2.3 d"),
    ],
)
def test_a_span_is_told_in_its_unit(seconds: float | None, text: str) -> None:
    assert span_text(seconds) == text
