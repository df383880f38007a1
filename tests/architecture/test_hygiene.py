"""What a clone must not contain: hosts, somebody's paths, large files, leftovers of tools."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.architecture.source import ROOT

MAX_BYTES = 300_000
LARGE: dict[str, str] = {}  # path -> why it may be larger

# In parts, so that this file does not name what it forbids.
HOSTS = (
    "python" + "hosted",
    "pypi" + ".org",
    "registry" + ".npmjs",
    "proxy.golang" + ".org",
    "static.crates" + ".io",
    "repo.maven" + ".apache",
    "deb.debian" + ".org",
)
PLACES = (
    "/ro" + "ot/",
    "/ho" + "me/",
    "/wo" + "rk/",
    "/opt/whe" + "els",
    "py" + "env",
    "/Us" + "ers/",
)
FORBIDDEN = re.compile("|".join(map(re.escape, (*HOSTS, *PLACES))))


def files() -> list[Path]:
    """What is or would be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=30,
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_file_names_a_registry_host_or_a_place_on_a_machine() -> None:
    found = []
    for path in files():
        text = path.read_text("utf-8", errors="replace")
        found += [
            f"{path.relative_to(ROOT)}:{line}: {match[0]}"
            for line, content in enumerate(text.splitlines(), 1)
            for match in FORBIDDEN.finditer(content)
        ]

    assert found == []


def test_no_file_is_large() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in files()}
    large = {name: size for name, size in sizes.items() if size > MAX_BYTES and name not in LARGE}

    assert sizes, "git lists no files"
    assert large == {}


# Where tools write while they work; nobody wrote these by hand.
LEFT_BEHIND = re.compile(
    r"(^|/)(\.kube|\.cache|\.durations|__pycache__|node_modules|\.tidework)(/|$)"
)


def test_no_file_was_left_by_a_tool() -> None:
    """The index too: what was committed once stays there although it is ignored since."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True, timeout=30
    )

    assert [name for name in listed.stdout.splitlines() if LEFT_BEHIND.search(name)] == []
