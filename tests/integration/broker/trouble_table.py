"""What every request meets on a server in trouble: a new script or plain command gets a row here.

A row says what a full server does with it; in every other trouble all requests that change
something fare alike, and so do all that only look. What is refused has changed nothing, and is
worth another try when the trouble is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from tests.integration.broker.request_steps import BROKEN
from tests.integration.broker.request_table import ROWS
from tests.integration.broker.rig import Request, Rig, Step, nothing
from tidework.errors import BrokerError, BrokerFullError, BrokerUnavailableError
from tidework.model.job import JobState


class Trouble(Enum):
    """What is the matter with the server."""

    FULL = "full"
    """At maxmemory, which evicts nothing."""
    REPLICA = "a replica at the first request"
    DEMOTED = "becomes a replica"
    """Its connections stay."""
    CUT_OFF = "becomes a replica that serves no old data"
    """MASTERDOWN: its primary is away."""
    AWAY = "away at the first request"
    GOES = "goes away with the request"
    LOADING = "loads its data"
    DISK = "cannot write to its disk"
    """MISCONF."""


@dataclass(frozen=True, slots=True)
class End:
    """What the caller gets: nothing amiss, or an error with these words."""

    kind: type[BrokerError] | None = None
    words: str = ""


DONE = End()
FULL = End(BrokerFullError, "is out of memory and refuses new work")
REPLICA = End(BrokerUnavailableError, "is a read-only replica; point the URL at the primary")
CUT_OFF = End(BrokerUnavailableError, "does not serve this now")
AWAY = End(BrokerUnavailableError, "cannot be reached")
DISK = End(BrokerUnavailableError, "cannot write to its disk and takes no writes")
LOADING = End(BrokerUnavailableError, "is still loading its data; try again")

_OF_ALL = {
    Trouble.REPLICA: REPLICA,
    Trouble.CUT_OFF: REPLICA,
    Trouble.AWAY: AWAY,
    Trouble.GOES: AWAY,
    Trouble.LOADING: LOADING,
    Trouble.DISK: DISK,
}
LOOKS: Mapping[Trouble, End] = _OF_ALL | {
    Trouble.FULL: DONE,
    Trouble.DEMOTED: DONE,
    Trouble.CUT_OFF: CUT_OFF,
    Trouble.DISK: DONE,
}
"""It changes nothing: a replica that was asked before goes on to answer."""
GOES_ON: Mapping[Trouble, End] = _OF_ALL | {Trouble.FULL: DONE, Trouble.DEMOTED: REPLICA}
"""It ends or shrinks work, carries accepted work on, or is small and bounded."""
NEW_WORK: Mapping[Trouble, End] = _OF_ALL | {Trouble.FULL: FULL, Trouble.DEMOTED: REPLICA}
"""It adds something: a full server refuses it."""

TABLE: Mapping[str, Mapping[Trouble, End]] = {
    "admit_cron": NEW_WORK,  # its fires are; the scheduler comes again every second
    "announce": GOES_ON,
    "ask_stacks": GOES_ON,
    "backfill": NEW_WORK,
    "beat": GOES_ON,
    "cancel": GOES_ON,
    "configure": GOES_ON,
    "cordon": GOES_ON,
    "cron_record": LOOKS,
    "decide_fire": NEW_WORK,  # not missed: the watermark stays, the fire comes later
    "delete_job": GOES_ON,
    "drain": GOES_ON,
    "enqueue": NEW_WORK,
    "exchange": GOES_ON,
    "gather": LOOKS,
    "get_job": LOOKS,
    "get_jobs": LOOKS,
    "intake": NEW_WORK,  # the worker sends intake_full then
    "intake_full": GOES_ON,
    "lead": GOES_ON,
    "leave": GOES_ON,
    "list_acts": LOOKS,
    "list_errors": LOOKS,
    "list_jobs": LOOKS,
    "note_act": GOES_ON,
    "note_progress": GOES_ON,
    "note_scaling": GOES_ON,
    "once_begin": GOES_ON,
    "once_end": GOES_ON,
    "open_queue": GOES_ON,
    "pause": GOES_ON,
    "promote": GOES_ON,
    "promote_job": GOES_ON,
    "prune": GOES_ON,
    "purge": GOES_ON,
    "put_crontasks": NEW_WORK,
    "reap": GOES_ON,
    "register": GOES_ON,
    "renew": GOES_ON,
    "replay": GOES_ON,  # what was acknowledged is not new work
    "resign": GOES_ON,
    "resume": GOES_ON,
    "resume_cron": GOES_ON,
    "run_now": NEW_WORK,
    "statistics": LOOKS,
    "stats": LOOKS,
    "stranded": GOES_ON,
    "suspend_cron": GOES_ON,
    "take_term": GOES_ON,
    "uncordon": GOES_ON,
    "workers": LOOKS,
    # Plain commands.
    "blmove": NEW_WORK,
    "get": LOOKS,
    "hget": LOOKS,
    "hgetall": LOOKS,
    "lrange": LOOKS,
    "smembers": LOOKS,
    "zrange": LOOKS,
    "zrank": LOOKS,
}

PLAIN = frozenset({"blmove", "get", "hget", "hgetall", "lrange", "smembers", "zrange", "zrank"})
"""The commands that we send without a script."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A request of that name. unseen: the state of the queue does not show that it was done."""

    call: Request
    before: Step = nothing
    unseen: bool = False


async def put_broken(rig: Rig) -> None:
    """A document lies in the inbox, and nothing else."""
    await rig.forget("inbox")
    rig.put_document(BROKEN)


SECOND = timedelta(seconds=1)
LOOKING: Mapping[str, Request] = {
    "cron_record": lambda rig, broker: broker.cron_record(rig.queue, "c0"),
    "gather": lambda rig, broker: broker.gather(rig.queue, horizon=SECOND),
    "get_job": lambda rig, broker: broker.get_job(rig.queue, "running"),
    "get_jobs": lambda rig, broker: broker.get_jobs(rig.queue, ["running"]),
    "list_acts": lambda rig, broker: broker.acts(rig.queue.namespace),
    "list_errors": lambda rig, broker: broker.list_errors(rig.queue),
    "list_jobs": lambda rig, broker: broker.list_jobs(rig.queue, JobState.READY),
    "statistics": lambda rig, broker: broker.statistics(rig.queue),
    "stats": lambda rig, broker: broker.stats(rig.queue),
    "workers": lambda rig, broker: broker.workers(rig.queue),
    "get": lambda rig, broker: broker.scaling(rig.queue),
    "lrange": lambda rig, broker: broker.scaling(rig.queue),
    "zrank": lambda rig, broker: broker.ahead_of(rig.queue, "ready1"),
    "hget": lambda rig, broker: broker.stacks(rig.queue, "old"),
    "hgetall": lambda rig, broker: broker.crontasks(rig.queue),
    "smembers": lambda rig, broker: broker.queues(),
    "zrange": lambda rig, broker: broker.tasks(rig.queue),
}

SAMPLES: Mapping[str, Sample] = (
    {row.script: Sample(row.call, row.before, row.unseen) for row in reversed(ROWS)}
    | {name: Sample(call, unseen=True) for name, call in LOOKING.items()}
    | {
        "blmove": Sample(
            lambda rig, broker: broker.wait_for_document(rig.queue, SECOND), put_broken, unseen=True
        ),
    }
)
