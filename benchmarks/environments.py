"""Each peer's own environment, outside of the tree: made once for a list of pinned versions."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

PEERS = Path(__file__).parent / "peers"
CACHE_VARIABLE = "TIDEWORK_BENCHMARKS_CACHE"


def cache_folder() -> Path:
    """TIDEWORK_BENCHMARKS_CACHE, else a folder in the user's cache."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tidework-benchmarks"


def environment_of(peer: str) -> Path:
    """The ``bin`` folder to run a peer from; Tidework's is that of this Python.

    Raises RuntimeError if the environment cannot be made.
    """
    requirements = PEERS / peer / "requirements.txt"
    if not requirements.exists():
        return Path(sys.executable).parent
    content = requirements.read_bytes() + sys.version.encode()
    folder = cache_folder() / f"{peer}-{hashlib.sha256(content).hexdigest()[:12]}"
    if not (folder / "ready").exists():
        print(f"making the environment of {peer}", file=sys.stderr)
        _make(folder, requirements)
        (folder / "ready").touch()
    return folder / "bin"


def _make(folder: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    if uv is None:
        venv.create(folder, with_pip=True)
        commands = [[str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]]
    else:
        commands = [[uv, "venv", "--quiet", "--python", sys.executable, str(folder)]]
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode"]
        commands += [[*install, "--python", str(folder / "bin/python")]]
    commands[-1] += ["--requirement", str(requirements)]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "failed")
