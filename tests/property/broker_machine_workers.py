"""Acts of workers: they exchange, renew and beat, or stop doing so; and what time does to them."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from tests.property.broker_machine_acts import Player, act, pick
from tests.property.broker_machine_draws import (
    ANNOUNCED,
    ENDS,
    ERRORS,
    FEW,
    GIVEN_BACK,
    MOMENTS,
    MOSTLY,
    OUTCOMES,
    TASKS,
    WORKERS,
)
from tests.property.broker_machine_twins import START, Sent
from tidework.broker.documents import MARKER
from tidework.model.backlog import Presence, StacksAnswer
from tidework.model.lease import ExchangeReply, ExchangeRequest, Lease, RunTimes, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.progress import ProgressNote

UPKEEP_MS = 4_000
DAY_MS = 86_400_000
"""Often enough for the reaper not to stand still."""
REPEATED = frozenset({"counters"})
MOVED_ON = {
    # What takes a bounded number of something takes the next ones.
    "intake": REPEATED | {"inbox", "intake"},
    "upkeep": None,
    "take_term": None,
    "wait_for_document": None,
}
"""What a copy of a request that arrives at once may change; None: anything."""


class WorkerActs(Player):
    """What workers do."""

    @act(
        8,
        worker=WORKERS,
        want=st.integers(1, 3),
        outcomes=st.lists(OUTCOMES, max_size=3),
        woken=MOSTLY,
    )
    def work(self, worker: int, want: int, outcomes: list[Outcome], *, woken: bool = True) -> None:
        """What is running ends, something new begins. Only when a marker is gone shows the next."""
        woken = woken and self.twins.stored.inbox[-1:] == [MARKER]
        if woken:
            self.wait()
        self.exchange(worker, want, list(enumerate(outcomes)), woken=woken)

    def wait(self) -> None:
        """For a document that is there."""
        self.twins.ask("wait_for_document", timedelta(seconds=5))

    @act(3, worker=WORKERS, want=st.integers(0, 3), ends=ENDS, woken=st.booleans())
    def exchange(
        self, worker: int, want: int, ends: list[tuple[int, Outcome]], woken: bool
    ) -> None:
        """Whatever was ever claimed, by whomever, may be settled."""
        leases = self.leases()
        settlements = tuple(
            Settlement(*pick(leases, which), outcome) for which, outcome in ends if leases
        )
        self.settle(worker, want, settlements, woken=woken)

    @act(2, worker=WORKERS, want=st.integers(0, 3), most_held=st.integers(0, 4))
    def exchange_ahead(self, worker: int, want: int, most_held: int) -> None:
        """As it is made behind a wait."""
        woken = self.twins.stored.inbox[-1:] == [MARKER]
        if woken:
            self.wait()
        self.settle(worker, want, (), woken=True, most_held=most_held)

    def settle(
        self,
        worker: int,
        want: int,
        settlements: tuple[Settlement, ...],
        *,
        woken: bool = False,
        most_held: int | None = None,
    ) -> None:
        """The worker's next exchange."""
        count = len(settlements)
        ran = RunTimes(count, 0.75 * want, {want: 1, 20: count - 1} if count > 1 else {want: 1})
        served = {TASKS[count % 2]: ran} if count else {}
        name = self.incarnations[worker]
        sequence = self.sequences[name] = self.sequences.get(name, 0) + 1
        request = ExchangeRequest(name, sequence, want, settlements, woken, served, most_held)
        reply = self.twins.ask("exchange", request)
        if isinstance(reply, ExchangeReply):
            self.claims += [(c.id, c.token) for c in reply.claimed]

    @act(2, error=st.sampled_from(ERRORS), lost=st.booleans(), again=st.booleans())
    def perish(self, error: JobError, lost: bool, again: bool) -> None:
        """All that runs dies, of two losses or at once, and may be replayed."""
        outcome = Outcome.loss(error) if lost else Outcome.bury(error)
        self.work(0, 2, [])
        self.exchange(0, 2, [(i, outcome) for i in range(5)], woken=False)
        self.exchange(0, 0, [(i, outcome) for i in range(5)], woken=False)
        if again and self.twins.stored.dead:
            self.twins.ask("replay", sorted(self.twins.stored.dead))

    @act(2, worker=WORKERS, which=FEW)
    def renew(self, worker: int, which: list[int]) -> None:
        leases = self.leases() or [("nobody", "w0:1")]
        self.twins.ask("renew", self.incarnations[worker], [pick(leases, i) for i in which])

    @act(1, worker=WORKERS, seconds=st.sampled_from((30, 5)), answers=st.integers(0, 2))
    def beat(self, worker: int, seconds: int, answers: int) -> None:
        """An answer may be to a request that nobody made."""
        name = self.incarnations[worker]
        presence = Presence(name, START, {"number": len(self.twins.sent)})
        ttl = timedelta(seconds=seconds)
        if not answers:
            self.twins.ask("beat", presence, ttl=ttl)
            return
        asked = self.twins.stored.stack_requests.get(name, (0,))[0]
        answer = StacksAnswer(max(1, asked + 1 - answers), {"number": len(self.twins.sent)})
        self.twins.ask("beat", presence, ttl=ttl, stacks=answer)

    @act(1, worker=WORKERS, answered=st.booleans())
    def ask_stacks(self, worker: int, answered: bool) -> None:
        """A person wants to know what a worker does."""
        name = self.incarnations[worker]
        self.twins.ask("ask_stacks", name)
        if answered:
            self.beat(worker, 30, 1)
        self.twins.ask("stacks", name)

    @act(2, which=FEW, key=st.sampled_from("ab"), seconds=st.sampled_from((None, 5, 5)))
    def do_once(self, which: list[int], key: str, seconds: int | None) -> None:
        """Jobs begin a block; the last one to ask ends it, whether or not it is at it."""
        leases = [Lease(*lease) for lease in self.leases()] or [Lease("nobody", "w0:1")]
        for i in which:
            self.twins.ask("once_begin", pick(leases, i), key)
        if which:
            ttl = None if seconds is None else timedelta(seconds=seconds)
            self.twins.ask("once_end", pick(leases, which[-1]), key, ttl=ttl)

    @act(
        2,
        which=FEW,
        sequence=st.integers(1, 3),
        progress=st.sampled_from((b"", b'[1,null,""]')),
        positions=st.sampled_from((b"", b'{"":7}')),
    )
    def tell(self, which: list[int], sequence: int, progress: bytes, positions: bytes) -> None:
        """Jobs say how far they are, some of them after their end, or twice."""
        leases = self.leases() or [("nobody", "w0:1")]
        notes = [ProgressNote(*pick(leases, i), sequence, progress, positions) for i in which]
        self.twins.ask("note_progress", notes)
        for i in which:
            self.twins.ask("checkpoints", pick(leases, i)[0])

    @act(1, version=st.sampled_from(("v1", "v2")), tasks=st.sampled_from(ANNOUNCED))
    def announce(self, version: str, tasks: tuple[str, ...]) -> None:
        """A worker says which tasks it knows; some were unknown to others."""
        self.twins.ask("announce", version, tasks)
        self.twins.ask("tasks")

    @act(1, worker=WORKERS, undo=st.booleans())
    def cordon(self, worker: int, undo: bool) -> None:
        """A person does."""
        self.twins.ask("uncordon" if undo else "cordon", self.incarnations[worker])

    @act(1, worker=WORKERS, in_order=st.booleans())
    def end(self, worker: int, in_order: bool) -> None:
        """It never says a word again; another one comes."""
        if in_order:
            self.twins.ask("leave", self.incarnations[worker])
        self.incarnations[worker] += "'"


class TimeActs(WorkerActs):
    """Time goes by, and requests arrive twice or late."""

    is_ahead = False

    @act(2, ms=MOMENTS)
    def let_pass(self, ms: int) -> None:
        self.twins.let_pass(ms)

    @act(3, rounds=st.sampled_from((0, 1, 3, 3)))
    def live_on(self, rounds: int) -> None:
        """Time under the eyes of a leader: whoever does not renew is reaped."""
        self.twins.ask("upkeep")
        for _ in range(rounds):
            self.twins.let_pass(UPKEEP_MS)
            self.twins.ask("upkeep")

    @act(1, ms=st.sampled_from((300, 2_000, 8_000)))
    def set_clock_back(self, ms: int) -> None:
        self.twins.set_back(ms)

    @act(1, rounds=st.sampled_from((0, 1)))
    def run_ahead(self, rounds: int) -> None:
        """The clock is a day ahead from now on."""
        self.twins.let_pass(DAY_MS)
        self.live_on(rounds)
        self.is_ahead = True

    @act(2, rounds=st.sampled_from((0, 1)))
    def come_back(self, rounds: int) -> None:
        """And right again."""
        if self.is_ahead:
            self.is_ahead = False
            self.twins.set_back(DAY_MS)
            self.live_on(rounds)

    @act(1)
    def send_twice(self) -> None:
        """A copy arrives at once."""
        sent = self.twins.last
        if sent is not None:
            changes = MOVED_ON.get(sent.method, REPEATED)
            if changes is not None:
                self.twins.send_again(sent, changes=changes)

    @act(2, age=st.integers(1, 12))
    def arrive_late(self, age: int) -> None:
        """A copy arrives after newer requests."""
        sent = pick(self.twins.sent[::-1], age)
        # Nobody admits what is not mirrored (see queue_scheduler.py).
        strays = sent.method == "admit_cron" and sent.args[1] not in self.twins.stored.crontasks
        if sent.method != "wait_for_document" and not strays:
            self.twins.send(sent)

    @act(2, outcome=GIVEN_BACK)
    def snatch(self, outcome: Outcome) -> None:
        """What one worker holds becomes another's, then comes a copy of the first one's claim."""
        self.work(0, 3, [])
        sent, leases = self.twins.last, self.leases()
        held = len(self.twins.stored.leases)
        self.exchange(1, 3, [(i, outcome) for i in range(held)], woken=False)
        if sent is not None:
            self.twins.send(sent)
        self.twins.ask("renew", self.incarnations[0], leases)
        self.settle(0, 0, tuple(Settlement(*lease, Outcome.complete()) for lease in leases))

    @act(
        3,
        which=st.integers(0, 2),
        back=st.sampled_from((1, 1, 2)),
        ms=st.sampled_from((0, 4_900)),
    )
    def exchange_again(self, which: int, back: int, ms: int) -> None:
        """The last or last but one of a worker, whatever became of its jobs since."""
        self.twins.let_pass(ms)
        sent: dict[str, list[Sent]] = {}
        for each in self.twins.sent:
            if each.method == "exchange":
                sent.setdefault(each.args[0].incarnation, []).append(each)
        self.twins.send(pick(pick([*sent.values()], which)[::-1], back - 1))
