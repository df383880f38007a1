"""Looks at processes by way of /proc: who descends from whom, and who is still there."""

from __future__ import annotations

from pathlib import Path


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and parent of a process; None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1])


def is_alive(pid: int) -> bool:
    """A zombie is not alive."""
    found = _stat(pid)
    return found is not None and found[0] not in "ZX"


def children_of(pid: int) -> list[int]:
    """Living children, sorted."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            stat = _stat(int(path.name))
            if stat is not None and stat[1] == pid and stat[0] not in "ZX":
                found.append(int(path.name))
    return sorted(found)


def descendants_of(pid: int) -> list[int]:
    """All living descendants, parents before children."""
    found = []
    for child in children_of(pid):
        found += [child, *descendants_of(child)]
    return found


def command_of(pid: int) -> str:
    """The command line, '' if the process is gone."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()
