"""`tidework job why`: why a job does not run."""

from __future__ import annotations

import json

import click

from tidework.broker.connection.transport import drive
from tidework.cli.options import (
    QueueCommand,
    client_of,
    namespace_option,
    output_option,
    redis_option,
)
from tidework.why.explain import explain
from tidework.why.facts import gather_facts
from tidework.why.finding import Case, Explanation


@click.command("why", cls=QueueCommand)
@click.argument("job_id")
@click.option("-q", "--queue", help="Queue of the job.  [default: the one that has it]")
@redis_option
@namespace_option
@output_option
def why_job(
    job_id: str, queue: str | None, redis_url: str | None, namespace: str | None, output: str
) -> None:
    """Why the job JOB_ID does not run, and what to do; or what it does."""
    client = client_of(redis_url, namespace)
    broker = client.blocking_broker()
    name = client.queue(queue or "default")
    facts = drive(gather_facts(broker, name, job_id))
    if queue is None and facts.elsewhere is not None:
        facts = drive(gather_facts(broker, facts.elsewhere, job_id))
    found = explain(facts)
    click.echo(_as_json(found) if output == "json" else _as_text(found))
    if found.main.case in (Case.UNKNOWN, Case.ELSEWHERE, Case.FORGOTTEN):
        raise click.exceptions.Exit(1)


def _as_text(found: Explanation) -> str:
    lines = []
    for number, each in enumerate(found.findings):
        lines.append(each.text if number == 0 else f"Then: {each.text}")
        if each.remedy:
            lines.append(f"  {each.remedy}")
    return "\n".join(lines)


def _as_json(found: Explanation) -> str:
    findings = [
        {
            "code": each.case.value,
            "text": each.text,
            "remedy": each.remedy or None,
            "until": each.until and each.until.isoformat(timespec="milliseconds"),
            "ahead": each.ahead,
            "wait_seconds": each.wait_s,
        }
        for each in found.findings
    ]
    return json.dumps({"findings": findings}, indent=2)
