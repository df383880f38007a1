"""What was meant by a name that nobody knows, for errors that say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_NAMED = 20
"""Names in one message."""


def nearest(found: str, known: Iterable[str]) -> str | None:
    """The known name that was meant, '_', '-' and case aside; None if none is close enough."""
    import difflib  # here, since those who mistype nothing need not import it

    folded = {_fold(name): name for name in known}
    close = difflib.get_close_matches(_fold(found), folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """``; did you mean 'send'?``, empty if no name is close enough."""
    meant = nearest(found, known)
    return "" if meant is None else f"; did you mean {meant!r}?"


def listed(names: Sequence[str]) -> str:
    """Names in words, bounded: ``a, b and 40 more``; ``none`` without any."""
    shown = ", ".join(names[:MOST_NAMED]) or "none"
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
