"""What a run found, as a file of JSON: written after each result, so that an end of the run before
its time costs nothing of what was measured; tables can be made from it at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks import report
from benchmarks.run import Result


@dataclass(slots=True)
class Document:
    """A run so far.

    facts:    of the machine and of the run
    systems:  name -> what produce.py says of it; missing: name -> why it is not there
    plan:     see workloads/__init__.py; rounds: of what varies
    best_pace: see pace.py; complete: did the run come to its end?
    """

    facts: dict[str, Any]
    systems: Mapping[str, Mapping[str, Any]]
    missing: Mapping[str, str]
    plan: Mapping[str, Any]
    rounds: int
    best_pace: float = 0.0
    complete: bool = False
    results: list[Result] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write all of it, or leave the file as it was. Raises OSError."""
        document = {
            "machine": self.facts,
            "rounds": self.rounds,
            "complete": self.complete,
            "best_pace": self.best_pace,
            "plan": self.plan,
            "systems": self.systems,
            "missing": self.missing,
            "results": [asdict(result) for result in self.results],
        }
        draft = path.with_name(path.name + ".part")
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what was saved. Raises OSError, and ValueError if it is something else."""
        try:
            found = json.loads(path.read_text())
            results = [Result(**result) for result in found["results"]]
            last = max((result.round for result in results), default=0)
            return cls(
                facts=found["machine"],
                systems=found["systems"],
                missing=found["missing"],
                plan=found["plan"],
                rounds=found.get("rounds", last + 1),
                best_pace=found["best_pace"],
                complete=found.get("complete", True),
                results=results,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{path} was not written by 'python -m benchmarks --json': {error!r}"
            ) from error

    def text(self) -> str:
        """Markdown: the facts, all tables, the systems' settings and what went wrong."""
        facts = ", ".join(f"{name}: {value}" for name, value in self.facts.items())
        unfinished = "" if self.complete else " (the run was ended before its time)"
        summary = report.summarize(self.results, self.best_pace)
        parts = [
            f"{facts} rounds: {self.rounds}{unfinished}\n",
            report.tables(summary, list(self.systems)),
            "### Systems\n",
            report.settings(self.systems, self.missing),
        ]
        if found := report.faults(self.results):
            parts.append(f"### Faults\n\n{found}")
        return "\n".join(parts)
