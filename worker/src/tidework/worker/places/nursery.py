"""The nursery: has children started for the pool, a bounded number at once.

What is ordered and what has to wait for its order; a child that runs is the pool's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tidework.clock import Clock
from tidework.worker.places.child_link import ChildEvents, ChildLink
from tidework.worker.places.places import START_PATIENCE
from tidework.worker.places.slot import Slot
from tidework.worker.template.link import Orders

ORDERS_AT_ONCE = 64
"""Children that the template is asked for at once; its socket holds some 270 orders."""


class Nursery:
    """Of one pool, whose ``links`` by key it adds to.

    orders:  carries orders out
    events:  told by the children
    look_by: have children looked at by then (monotonic seconds)
    is_open: may children be started?
    """

    def __init__(
        self,
        orders: Orders,
        events: ChildEvents,
        links: dict[int, ChildLink],
        clock: Clock,
        look_by: Callable[[float], None],
    ) -> None:
        self.is_open = False
        self._orders = orders
        self._events = events
        self._links = links
        self._clock = clock
        self._look_by = look_by
        self._keys = 0
        self._ordered: set[int] = set()
        self._waiting: deque[Slot] = deque()

    def fill(self, slot: Slot) -> None:
        """Have a child started for a slot that has none, now or once others have been."""
        if not self.is_open or slot.link is not None:
            return
        if len(self._ordered) >= ORDERS_AT_ONCE:
            self._waiting.append(slot)
        else:
            slot.link = self._order(slot, slot.places, solitary=False)

    def order(self, slot: Slot, *, solitary: bool = False) -> ChildLink | None:
        """One more child for ``slot``, beside the one that it has. None if that cannot be now.

        solitary: for one job alone
        """
        if not self.is_open or len(self._ordered) >= ORDERS_AT_ONCE:
            return None
        return self._order(slot, 1 if solitary else slot.places, solitary=solitary)

    def _order(self, slot: Slot, places: int, *, solitary: bool) -> ChildLink | None:
        self._keys += 1
        now = self._clock.monotonic()
        link = ChildLink(self._keys, slot.index, self._events, now, places, solitary=solitary)
        if not self._orders.order_child(link.key, places, *link.descriptors()):
            link.close()  # the template is away: the pool opens with the next one
            return None
        self._links[link.key] = link
        self._ordered.add(link.key)
        self._look_by(now + START_PATIENCE)
        return link

    def note_answered(self, key: int) -> None:
        """The template carried the order out, or never will."""
        self._ordered.discard(key)
        while self._waiting and len(self._ordered) < ORDERS_AT_ONCE:
            self.fill(self._waiting.popleft())
