#!/usr/bin/python3 -S
"""runc, asked only for the capabilities that this machine can give.

`docker run --privileged` asks for every capability that the kernel knows, and runc fails where one
of them is outside the bounding set. What is asked for is cut down to that set, both for a new
container (`config.json` of its bundle) and for a process that joins one (the file given to `exec`).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

NAMES = """
    CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
    NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO
    SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME
    SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
    WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
""".split()  # noqa: SIM905 - in the order of their bits; a list would have 41 lines


def value(arguments: list[str], *options: str) -> str | None:
    """What follows the first of the options that is there."""
    return next(
        (arguments[arguments.index(name) + 1] for name in options if name in arguments), None
    )


def document(arguments: list[str]) -> Path | None:
    """The file that says what the new process may do."""
    if "exec" in arguments:
        given = value(arguments, "--process", "-p")
        return Path(given) if given else None
    if "create" in arguments or "run" in arguments:
        return Path(value(arguments, "--bundle", "-b") or ".") / "config.json"
    return None


def available() -> set[str]:
    """The capabilities of this process's bounding set."""
    status = Path("/proc/self/status").read_text("utf-8").splitlines()
    bits = int(next(line for line in status if line.startswith("CapBnd")).split()[1], 16)
    return {f"CAP_{name}" for bit, name in enumerate(NAMES) if bits >> bit & 1}


def bound(path: Path) -> None:
    """Take out of the document what this machine can't give."""
    have = available()
    content = json.loads(path.read_text("utf-8"))
    process = content.get("process", content)
    for kind, asked in (process.get("capabilities") or {}).items():
        process["capabilities"][kind] = [name for name in asked if name in have]
    # only CAP_SYS_RESOURCE may lower a process's score
    if "CAP_SYS_RESOURCE" not in have and (process.get("oomScoreAdj") or 0) < 0:
        process["oomScoreAdj"] = 0
    path.write_text(json.dumps(content), "utf-8")


if __name__ == "__main__":
    to_bound = document(sys.argv[1:])
    if to_bound:
        bound(to_bound)
    os.execvp("runc", ["runc", *sys.argv[1:]])
