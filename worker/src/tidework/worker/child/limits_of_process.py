"""The limits of this process (setrlimit), and putting them back."""

from __future__ import annotations

import resource

_NAMES = {
    number: name
    for name, number in vars(resource).items()
    if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"  # BSD's name of RLIMIT_NOFILE
}

Bounds = dict[int, tuple[int, int]]
"""By number: soft, hard."""


def bounds() -> Bounds:
    """The limits of this process, as they are now."""
    return {number: resource.getrlimit(number) for number in _NAMES}


def restore(wanted: Bounds, changed: list[str]) -> str | None:
    """Put back what differs, and add its name to ``changed``.

    Returns in words what cannot be put back: who lowers a hard limit needs a right to raise it.
    """
    refused = None
    for number, bound in wanted.items():
        if resource.getrlimit(number) == bound:
            continue
        try:
            resource.setrlimit(number, bound)
            changed.append(_NAMES[number])
        except (ValueError, OSError):
            refused = f"a job lowered its limit {_NAMES[number]} for good"
    return refused


def most_descriptors(most: int) -> int:
    """How many files this process may open, ``most`` if it may open more."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else min(soft, most)
