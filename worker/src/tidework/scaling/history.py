"""What earlier decisions left behind: recommendations for the windows, changes for the policies.

Kept small: of the recommendations within a window only those matter that no later one tops (for
shrinking) or undercuts (for growing), so there are never more of them than there are counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidework.manifests import Behavior


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A count that the load asked for, not yet bounded by anything."""

    at: float
    replicas: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the replicas that was seen, whoever made it; ``by`` is negative for fewer."""

    at: float
    by: int


@dataclass(frozen=True, slots=True)
class Held:
    """A count that a window allows; ``seconds`` until the window alone would allow another."""

    replicas: int
    seconds: float


@dataclass(frozen=True, slots=True)
class History:
    """Empty at first. Times are those of ``ScalingInput.now``.

    replicas:      as last seen
    highs, lows:   recommendations, falling and rising with time
    idle_since:    since when nothing waited, ran or was due soon; None while something does
    failing_since: since when the load cannot be read; None while it can
    """

    replicas: int | None = None
    highs: tuple[Recommendation, ...] = ()
    lows: tuple[Recommendation, ...] = ()
    changes: tuple[Change, ...] = ()
    idle_since: float | None = None
    failing_since: float | None = None

    def seen(self, replicas: int, now: float) -> History:
        """Note the present count.

        The first one is also the first recommendation, as in the HPA: a new leader does not shrink
        what it just found.
        """
        if self.replicas is None:
            first = (Recommendation(now, replicas),)
            return replace(self, replicas=replicas, highs=first, lows=first)
        if replicas == self.replicas:
            return self
        change = Change(now, replicas - self.replicas)
        return replace(self, replicas=replicas, changes=(*self.changes, change))

    def recommended(self, replicas: int, now: float, behavior: Behavior) -> History:
        """Note a recommendation, and forget what no window or period reaches any more."""
        new = Recommendation(now, replicas)
        up, down = behavior.scale_up, behavior.scale_down
        lowest = now - up.stabilization_window_seconds
        highest = now - down.stabilization_window_seconds
        period = max(rule.period_seconds for rule in (*up.policies, *down.policies))
        highs = [seen for seen in self.highs if seen.at > highest and seen.replicas > replicas]
        lows = [seen for seen in self.lows if seen.at > lowest and seen.replicas < replicas]
        return replace(
            self,
            highs=(*highs, new),
            lows=(*lows, new),
            changes=tuple(change for change in self.changes if change.at > now - period),
        )

    def hold_down(self, current: int, target: int, now: float, window: int) -> Held:
        """The count to shrink to: the highest recommendation of the window, at most ``current``."""
        alive = [seen for seen in self.highs if seen.at > now - window]
        held = min(current, max([target, *(seen.replicas for seen in alive)]))
        last = max((seen.at for seen in alive if seen.replicas >= held), default=now - window)
        return Held(held, last + window - now)

    def hold_up(self, current: int, target: int, now: float, window: int) -> Held:
        """The count to grow to: the lowest recommendation of the window, at least ``current``."""
        alive = [seen for seen in self.lows if seen.at > now - window]
        held = max(current, min([target, *(seen.replicas for seen in alive)]))
        last = max((seen.at for seen in alive if seen.replicas <= held), default=now - window)
        return Held(held, last + window - now)

    def change_within(self, seconds: float, now: float) -> int:
        """The sum of all changes of the last ``seconds``."""
        return sum(change.by for change in self.changes if change.at > now - seconds)
