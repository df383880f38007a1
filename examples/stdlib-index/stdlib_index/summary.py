"""From numbers per file to numbers per package: what the page shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from stdlib_index.measuring import Measurement
from stdlib_index.record import Fault, Findings

TESTS = "test"
"""The library's own tests: more code than all the rest. Only the totals count it."""

SHOWN = 12
LEAST_DOCUMENTABLE = 20
"""A package with less than this says nothing about who documents well."""


@dataclass(frozen=True, slots=True)
class Share:
    """The numbers of some files together. ``name``: of their package."""

    name: str
    files: int
    lines: int
    functions: int
    classes: int
    documentable: int
    documented: int

    @classmethod
    def of(cls, name: str, found: Iterable[Measurement]) -> Share:
        """Add the files up."""
        files = list(found)
        return cls(
            name=name,
            files=len(files),
            lines=sum(file.lines for file in files),
            functions=sum(file.functions for file in files),
            classes=sum(file.classes for file in files),
            documentable=sum(file.documentable for file in files),
            documented=sum(file.documented for file in files),
        )

    @property
    def coverage(self) -> float:
        """The share of what can have a docstring that has one, 0 to 1."""
        return self.documented / self.documentable if self.documentable else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that the page says.

    total, tests:   of all measured files, and of the library's own tests among them
    largest:        packages by lines; best, worst: by docstring coverage; all without the tests
    faults:         why files have no numbers, in the order of their names
    missing:        files that nothing is known of
    """

    total: Share
    tests: Share
    largest: tuple[Share, ...]
    best: tuple[Share, ...]
    worst: tuple[Share, ...]
    faults: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def files(self) -> int:
        """How many files the run has."""
        return self.total.files + len(self.faults) + len(self.missing)


def summarize(findings: Findings) -> Summary:
    """Add up, sort and choose."""
    measured = {k: v for k, v in findings.entries.items() if isinstance(v, Measurement)}
    packages = by_package(measured)
    rest = [share for name, share in packages.items() if name != TESTS]
    judged = sorted(
        (share for share in rest if share.documentable >= LEAST_DOCUMENTABLE),
        key=lambda share: (-share.coverage, -share.documentable, share.name),
    )
    # No package is both: with few of them, each list gets half.
    shown = min(SHOWN, len(judged) // 2)
    return Summary(
        total=Share.of("all", measured.values()),
        tests=packages.get(TESTS, Share.of(TESTS, ())),
        largest=tuple(sorted(rest, key=attrgetter("lines"), reverse=True)[:SHOWN]),
        best=tuple(judged[:shown]),
        worst=tuple(reversed(judged[len(judged) - shown :])),
        faults=tuple(v.reason for v in findings.entries.values() if isinstance(v, Fault)),
        missing=findings.missing,
    )


def by_package(measured: Mapping[str, Measurement]) -> dict[str, Share]:
    """The shares of the top-level packages; a module at the top is a package of one file."""
    groups: dict[str, list[Measurement]] = {}
    for name, found in measured.items():
        package = name.partition("/")[0].removesuffix(".py")
        groups.setdefault(package, []).append(found)
    return {package: Share.of(package, found) for package, found in groups.items()}
