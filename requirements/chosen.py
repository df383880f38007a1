"""Prints the part of all.txt, hashes included, that an image needs: chosen.py worker[worker] ...

An argument is a distribution of this tree with extras, or a requirement such as hatchling. pip
resolves them without installing anything, and nothing but the versions of all.txt; what is printed
is then installed with `--require-hashes --no-deps`. Needs only the folders' pyproject.toml, so
that an image's layer of dependencies lasts until one of them changes.
"""

# ruff: noqa: INP001 - a program beside what it reads, no package
from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"tidework": "worker", "tidework-operator": "operator"}
# name, extras, the rest; the names of extras are plain in this tree
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?(.*)", re.DOTALL)
SECTION = re.compile(r"^([A-Za-z0-9._-]+)(==[^\n]+(?:\n[ \t]+[^\n]*)*)", re.MULTILINE)
REMARK = re.compile(r"\n\s*#[^\n]*")
HASH = re.compile(r"\\\n|--hash=\S+")

Resolver = Callable[[Iterable[str], str], list[str]]


def main(arguments: list[str]) -> None:
    """Print the sections, or exit with what is wrong."""
    if not arguments:
        sys.exit("usage: chosen.py worker[EXTRA,...]|operator|REQUIREMENT ...")
    chosen = choose(arguments, (ROOT / "requirements/all.txt").read_text("utf-8"), resolve)
    sys.stdout.write(f"{chosen}\n")


def choose(arguments: Iterable[str], text: str, resolver: Resolver) -> str:
    """The sections of `text` (all.txt) that the arguments need, in its order.

    Exits if the resolver names something that `text` doesn't pin.
    """
    sections = {normalized(found[1]): REMARK.sub("", found[0]) for found in SECTION.finditer(text)}
    pins = "\n".join(HASH.sub("", section) for section in sections.values())
    wanted = sorted({need for argument in arguments for need in expand(argument)})
    names = set(map(normalized, resolver(wanted, pins)))
    if names - sections.keys():
        missing = ", ".join(sorted(names - sections.keys()))
        sys.exit(f"requirements/all.txt does not pin {missing}: run `make requirements`")
    return "\n".join(section for name, section in sections.items() if name in names)


def expand(argument: str) -> Iterator[str]:
    """What pip has to resolve: a distribution of this tree is replaced by what it asks for."""
    found = REQUIREMENT.fullmatch(argument)
    if found is None:
        sys.exit(f"{argument!r} is no requirement")
    folder = FOLDERS.get(found[1], found[1])
    if folder not in FOLDERS.values():
        yield argument
        return
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"]]
    for extra in filter(None, re.split(r"\s*,\s*", found[2] or "")):
        offered = project.get("optional-dependencies", {})
        if extra not in offered:
            sys.exit(f"{folder} has no extra {extra!r}, but {', '.join(sorted(offered))}")
        lists.append(offered[extra])
    for requirement in (each for one in lists for each in one):
        yield from expand(requirement)


def resolve(wanted: Iterable[str], pins: str) -> list[str]:
    """Names of all that pip would install on this Python."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    constraints = ["--report", "-", "--constraint", "/dev/stdin"]
    done = subprocess.run(
        [*command, *constraints, *wanted], input=pins, text=True, stdout=subprocess.PIPE, check=True
    )
    return [each["metadata"]["name"] for each in json.loads(done.stdout)["install"]]


def normalized(name: str) -> str:
    """A name as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
