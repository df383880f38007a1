"""How long schedules take to compute: ``python -m benchmarks.schedules``. CPU time of this process.

Ten thousand schedules, no two alike in what they compute, in six zones, asked for their next fire
as after a change of all of them; then the next hour of as many that fire every minute, as
pre-scaling asks for. Each round is a new process, since answers about days are kept.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median

from tidework.model.schedules.cron import DstPolicy, parse_cron

COUNT = 10_000
ROUNDS = 5
NOW = datetime(2026, 11, 30, 7, 10, 3, tzinfo=UTC)
ZONES = ("UTC", "America/New_York", "Europe/London", "Asia/Shanghai", "Australia/Lord_Howe")


def mixed(choice: random.Random) -> Iterator[str]:
    """Expressions as people write them, most with day fields that no other has."""

    def some(low: int, high: int, most: int) -> str:
        values = choice.sample(range(low, high + 1), choice.randint(1, most))
        return ",".join(map(str, sorted(values)))

    while True:
        minute, hour, days = some(0, 59, 1), some(0, 23, 2), some(1, 31, 4)
        yield f"{minute} {hour} * * *"
        yield f"*/5 {hour} * * {some(0, 6, 3)}"
        yield f"{minute} * {days} * *"
        yield f"{minute} {hour} {days} {some(1, 12, 5)} *"
        yield f"{minute} {hour} {days} * {some(0, 6, 2)}"
        yield f"{minute} {hour} L-{choice.randint(1, 9)} {some(1, 12, 5)} {some(0, 6, 2)}"
        yield f"{minute} {hour} 29 2 *"


def measure() -> dict[str, float]:
    """CPU seconds of each step, in this process."""
    choice = random.Random(1)
    source = mixed(choice)
    texts = [(next(source), choice.choice(ZONES)) for _ in range(COUNT)]
    begin = time.process_time()
    schedules = [parse_cron(text, time_zone=zone) for text, zone in texts]
    parsed = time.process_time()
    for schedule in schedules:
        schedule.next(NOW)
    computed = time.process_time()
    for schedule in schedules:
        schedule.next(NOW + timedelta(days=1))
    again = time.process_time()
    minutely = [
        parse_cron("* * * * *", time_zone=choice.choice(ZONES), dst=DstPolicy.ONCE)
        for _ in range(COUNT)
    ]
    start = time.process_time()
    fires = sum(len(each.between(NOW, NOW + timedelta(hours=1), 100)) for each in minutely)
    expanded = time.process_time()
    if fires != COUNT * 60:
        raise AssertionError(f"{fires} fires instead of {COUNT * 60}")
    return {
        "parse 10,000 schedules": parsed - begin,
        "next fire of each, nothing known": computed - parsed,
        "next fire of each, a day later": again - computed,
        "the next hour of 10,000 every-minute schedules": expanded - start,
    }


def main() -> None:
    """Print the medians and the worst of some rounds."""
    if "--once" in sys.argv:
        print(json.dumps(measure()))
        return
    rounds = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "benchmarks.schedules", "--once"]
        ended = subprocess.run(command, check=True, capture_output=True, text=True)
        rounds.append(json.loads(ended.stdout))
    print(f"| step | CPU, median of {ROUNDS} | worst |\n| --- | --- | --- |")
    for step in rounds[0]:
        each = [found[step] for found in rounds]
        print(f"| {step} | {median(each):.2f} s | {max(each):.2f} s |")


if __name__ == "__main__":
    main()
