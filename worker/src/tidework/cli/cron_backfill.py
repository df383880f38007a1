"""The command that runs past instants of a CronTask."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import click

from tidework.broker.connection.transport import drive
from tidework.cli.cron_acts import by_option, open_crontask
from tidework.cli.options import namespace_option, past_moment, redis_option
from tidework.clock import SystemClock
from tidework.crontasks.backfill import BackfillPlan, go_on, plan_backfill

_LOOK_EVERY_S = 1.0


@click.command("backfill")
@click.argument("name")
@click.option(
    "--since", required=True, callback=past_moment, help="A time, or so long ago: 15m 2h 7d."
)
@click.option("--until", callback=past_moment, help="As --since; now by default.")
@click.option("--dry-run", is_flag=True, help="Show the instants, run none.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@click.option("--reason", default="", help="Kept in its history.")
@by_option
@redis_option
@namespace_option
def backfill(
    name: str, since: datetime, until: datetime | None, reason: str, by: str, **options: Any
) -> None:
    """Run the instants of a time that has passed of the CronTask NAME, at most 1,000.

    Each instant runs at most once: what ran, or was asked for before, is left alone. So a backfill
    that was aborted goes on when it is asked for again. Unless its concurrencyPolicy is Allow, the
    command waits for the end of each run.
    """
    broker, found = open_crontask(name, options["redis_url"], options["namespace"])
    now = SystemClock().now()
    record = drive(broker.cron_record(found.queue, found.uid))
    plan = plan_backfill(found.spec, record, since, until or now)
    if options["dry_run"]:
        _show(plan, every=True)
        return
    if not options["yes"]:
        _show(plan, every=False)
        click.confirm(f"run {len(plan.fires)} instants of {name}?", abort=True, err=True)
    note = f"{by}: {reason}" if reason else by
    enqueued = known = 0
    left, waits_for = plan.fires, ""
    while left:
        step = drive(go_on(broker, found, left, SystemClock().now(), note=note))
        enqueued, known, left = enqueued + step.enqueued, known + step.known, step.left
        if left:
            if step.waits_for != waits_for:
                click.echo(f"{len(left)} left; waits for the end of {step.waits_for}", err=True)
            waits_for = step.waits_for
            time.sleep(_LOOK_EVERY_S)
    click.echo(f"{enqueued} enqueued, {known} had run or were asked for before")


def _show(plan: BackfillPlan, *, every: bool) -> None:
    if every:
        for at in plan.fires:
            click.echo(at.isoformat())
    first, last = plan.fires[0].isoformat(), plan.fires[-1].isoformat()
    click.echo(f"{len(plan.fires)} instants, {first} to {last}", err=True)
    if plan.one_at_a_time:
        click.echo(
            "one at a time: its concurrencyPolicy is not Allow. Fires that fall due while one runs "
            "meet it as any run",
            err=True,
        )
    if plan.until is not None:
        click.echo(
            f"its fires are decided up to {plan.until.isoformat()}; the scheduler decides the rest",
            err=True,
        )
