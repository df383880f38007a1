"""In which language a schedule is spoken of."""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """Languages of what is said about a schedule."""

    ENGLISH = "en"
    CHINESE = "zh"
