"""How long the operator waits where nobody sets it: one value, which is passed to what waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Of one operator.

    lease_look:    for an answer about the Lease. A request that hangs must not cost the lead:
                   within the renew deadline there has to be time for another one
    raise_term:    for Redis to raise the term of one queue
    relist_soon:   until the next list after the watch has begun
    first_list:    for the first complete list, before CronTasks are read from Redis
    watch_pause:   before the watch is started again; twice as long after each failure
    watch_resends: pauses in seconds before kopf resends a request that failed; after the last one
                   the watch ends
    """

    lease_look: timedelta = timedelta(seconds=5)
    raise_term: timedelta = timedelta(seconds=3)
    relist_soon: timedelta = timedelta(seconds=5)
    first_list: timedelta = timedelta(seconds=5)
    watch_pause: timedelta = timedelta(seconds=1)
    watch_resends: tuple[float, ...] = (1.0, 2.0)


USUAL = Patience()
