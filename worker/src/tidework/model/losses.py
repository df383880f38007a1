"""Losses: the pause that a lost job makes before it runs again. It grows, so that what ends its
process and passes, a shortage of memory for instance, does not make a dead letter of it.

It is measured in leases, the time in which a job is back whose whole worker was lost: where that is
found out a lease has passed already, which is as long as the second pause.
"""

from __future__ import annotations

from datetime import timedelta

LOSS_PAUSES = (1, 10, 50)
"""Tenths of a lease after the first loss, the second, and any later one: of 12 s 1.2 s, 12 s and a
minute. As in fragments/finish.lua."""
_MS = timedelta(milliseconds=1)


def pause_after(losses: int, lease: timedelta, waited: timedelta = timedelta(0)) -> timedelta:
    """The pause after so many losses, the last one included, in whole milliseconds.

    waited: the part of it that is over when the loss is found
    """
    tenths = LOSS_PAUSES[min(losses, len(LOSS_PAUSES)) - 1]
    return max(timedelta(0), lease // _MS * tenths // 10 * _MS - waited)
