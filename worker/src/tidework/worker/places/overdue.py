"""Overdue: looks at children, and kills those that are overdue. Asked by the pool's timer."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidework.worker.held import StopReason
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.places import START_PATIENCE, Places

READY_PATIENCE = 300.0
"""Seconds in which a child has to be ready: a fresh one imports the application first."""
RETIRE_PATIENCE = 5.0
"""Seconds in which a retired child has to end."""

logger = logging.getLogger(__name__)


class Overdue:
    """Of one pool.

    places:        which look at the jobs of children
    kill_template: ends the template and all its children
    """

    def __init__(self, places: Places, kill_template: Callable[[], None]) -> None:
        self._places = places
        self._kill_template = kill_template

    def look_at(self, link: ChildLink, now: float) -> float | None:
        """Kill it if it is overdue; returns when to look at this child again."""
        if link.retired_at is not None:
            if now < link.retired_at + RETIRE_PATIENCE:
                return link.retired_at + RETIRE_PATIENCE
            link.force()
            return now + RETIRE_PATIENCE
        if link.pid is None:
            if now < link.ordered_at + START_PATIENCE:
                return link.ordered_at + START_PATIENCE
            logger.error(
                "the template does not answer: another one is started",
                extra={"event": "template_silent"},
            )
            self._kill_template()
            return now + START_PATIENCE
        if link.killed_at is not None:
            return None
        if not link.ready:
            if now >= link.ordered_at + READY_PATIENCE:
                link.kill(StopReason.BROKEN, None, now)
            return link.ordered_at + READY_PATIENCE
        return self._places.look(link, now)
