"""A horizontal bar chart as inline SVG: no script, no library, colours by the page's CSS."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_ROW = 26
_BAR = 16
_LABELS = 170
_BARS = 440
_VALUES = 80
_LONGEST_LABEL = 22


def bar_chart(title: str, bars: Sequence[tuple[str, int]]) -> str:
    """An SVG element with one bar per (label, value), in the order given; values are >= 0."""
    width, height = _LABELS + _BARS + _VALUES, _ROW * len(bars)
    greatest = max((value for _, value in bars), default=0) or 1
    rows = [_row(number, label, value, greatest) for number, (label, value) in enumerate(bars)]
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}">\n' + "\n".join(rows) + "\n</svg>"
    )


def _row(number: int, label: str, value: int, greatest: int) -> str:
    top = number * _ROW
    middle = top + _ROW // 2
    length = round(_BARS * value / greatest, 1)
    return (
        f"<g><title>{escape(label)}: {value:,}</title>"
        f'<text class="label" x="{_LABELS - 10}" y="{middle}">{escape(_shorten(label))}</text>'
        f'<rect class="bar" x="{_LABELS}" y="{top + (_ROW - _BAR) // 2}" width="{length}" '
        f'height="{_BAR}" rx="2"/>'
        f'<text class="value" x="{_LABELS + length + 8}" y="{middle}">{value:,}</text></g>'
    )


def _shorten(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
