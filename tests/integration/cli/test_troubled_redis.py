"""Every command that asks Redis, while that is in trouble of any kind: one line says which."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import click
import pytest

from tests.support.troubles import Trouble, Troubled, troubled_server
from tidework.broker.redis.redis_broker import connect
from tidework.cli.__main__ import main
from tidework.cli.commands import root
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job

WITHOUT_REDIS = frozenset({"cron explain", "cron import", "cron lint", "cron next", "lint"})
PROGRAMS = frozenset({"dashboard", "dev", "scheduler"})
"""They run for long, as a worker does: tests of their own."""
COMMANDS: Mapping[str, str] = {
    "cron backfill": "tick --since 2023-11-14T20:00:00Z --yes",
    "cron list": "",
    "cron resume": "tick",
    "cron run": "tick",
    "cron runs": "tick",
    "cron suspend": "tick --reason x",
    "dead errors": "-q q",
    "dead list": "-q q",
    "dead purge": "dead -q q --yes",
    "dead replay": "dead -q q",
    "enqueue": "t -q q",
    "job cancel": "a -q q",
    "job get": "a -q q",
    "job why": "a -q q",
    "queue list": "",
    "queue pause": "q",
    "queue resume": "q",
    "queue stats": "q",
    "queue trend": "q",
    "worker drain": "w -q q",
    "worker get": "w -q q",
    "worker list": "-q q",
    "worker stacks": "w -q q --timeout 1",
}
NEW_WORK = frozenset({"cron backfill", "cron run", "enqueue"})
"""What a full server refuses."""
CHANGES = NEW_WORK | {
    "cron resume",
    "cron suspend",
    "dead purge",
    "dead replay",
    "job cancel",
    "queue pause",
    "queue resume",
    "worker drain",
}
"""What a server refuses that takes no writes."""


def commands(command: click.Command, *path: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, *path, name)


def test_every_command_has_a_row() -> None:
    assert {*commands(root)} == COMMANDS.keys() | WITHOUT_REDIS | PROGRAMS


@pytest.fixture(params=Trouble, scope="module")
def redis(request: pytest.FixtureRequest) -> Iterator[tuple[Troubled, Trouble]]:
    """In trouble all the while, with something for every command to find."""
    trouble: Trouble = request.param
    with troubled_server() as found:
        asyncio.run(fill(found.url))
        found.begin(trouble)
        yield found, trouble
        found.mend(trouble)


async def fill(url: str) -> None:
    queue = QueueName("default", "q")
    broker = connect(url)
    await broker.enqueue(queue, [Job("a", "t", {})])
    term = await broker.take_term(queue)
    document = (
        b'{"apiVersion":"tidework.dev/v1alpha1","kind":"CronTask","metadata":{"name":"tick",'
        b'"namespace":"default","uid":"c1"},"spec":{"queue":"q","task":"t","every":"1h"}}'
    )
    await broker.put_crontasks(queue, term, {"c1": document})
    await broker.admit_cron(queue, term, "c1", "f", 1_700_000_000, reset=False)
    presence = Presence("w", datetime.fromtimestamp(0, UTC), {"answers_stacks": False})
    await broker.beat(queue, presence, ttl=timedelta(minutes=5))
    await broker.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(
    redis: tuple[Troubled, Trouble],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    troubled, trouble = redis
    monkeypatch.setenv("TIDEWORK_REDIS_URL", troubled.url)
    monkeypatch.setattr(sys, "argv", ["tidework", *name.split(), *COMMANDS[name].split()])

    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr().err
    refused = {Trouble.FULL: NEW_WORK, Trouble.DISK: CHANGES}.get(trouble, COMMANDS.keys())
    if name in refused:
        assert ended.value.code == 2
        (line,) = said.splitlines()
        assert line.startswith(f"tidework: Redis at 127.0.0.1:{troubled.server.port} ")
        assert trouble.value in line
    else:
        assert "Redis at" not in said, said
