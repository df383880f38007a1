"""Make the checked-in cron data from the measured one: ``convert.py SOURCE_DIRECTORY``.

The source holds ``cases.json`` and ``random.json``: what robfig/cron v3.0.1, the scheduler inside
Kubernetes' CronJob, printed for each row, and what a look at every single minute gave where that
differs (then robfig is wrong, and the minute-by-minute answer is kept here). Times become seconds
since the Unix epoch, fires become the steps between them, so that the files stay small.
"""

from __future__ import annotations

import argparse
import json
import math
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def seconds(text: str) -> float:
    """Whole seconds as an int, so that only the few starts between seconds are long."""
    moment = datetime.fromisoformat(text).timestamp()
    return int(moment) if moment == int(moment) else moment


def steps(after: str, fires: list[str]) -> list[int]:
    """Seconds from ``after``, rounded down, to the first fire, from that to the next, and so on."""
    marks = [math.floor(seconds(each)) for each in (after, *fires)]
    return [later - earlier for earlier, later in pairwise(marks)]


def convert_case(case: dict[str, Any]) -> list[Any]:
    fires = case.get("expected_brute", case["expected_next"])
    return [
        case["id"],
        case["schedule"],
        case["timezone"],
        seconds(case["after"]),
        steps(case["after"], fires),
    ]


def convert_row(row: list[Any]) -> list[Any]:
    kind, _start, schedule, zone, after, robfig, *brute = row
    return [kind, schedule, zone, seconds(after), steps(after, brute[0] if brute else robfig)]


def write(name: str, about: str, **parts: Any) -> None:
    """One row a line: a change of the data is readable as a difference."""
    lines = [f'"about": {json.dumps(about)}']
    for part, rows in parts.items():
        body = ",\n".join(json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows)
        lines.append(f'"{part}": [\n{body}\n]')
    (HERE / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="directory with cases.json and random.json")
    source = parser.parse_args().source
    cases = json.loads((source / "cases.json").read_text(encoding="utf-8"))
    rows = json.loads((source / "random.json").read_text(encoding="utf-8"))["rows"]
    write(
        "cases.json",
        "cases: id, schedule, zone, after, steps; invalid and quirks: id, schedule, reason",
        cases=[convert_case(case) for case in cases["cases"]],
        invalid=[[each["id"], each["schedule"], each["reason"]] for each in cases["invalid"]],
        quirks=[
            [each["id"], each["schedule"], each["what"]]
            for each in cases["quirks_accepted_by_robfig"]
        ],
    )
    write("random.json", "rows: kind, schedule, zone, after, steps", rows=map(convert_row, rows))


if __name__ == "__main__":
    main()
