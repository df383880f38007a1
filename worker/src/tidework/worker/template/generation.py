"""A generation: one template and the children that it started, of one version of the application.

The keeper has several while a new version takes over: the old one lives until its last child has
ended. A generation hears what its template reports, keeps the books, and tells the keeper.
"""

from __future__ import annotations

import os
from typing import Protocol

from tidework.worker.child_config import ChildConfig
from tidework.worker.template.launch import TemplateProcess
from tidework.worker.template.link import Hello, TemplateLink


class GenerationEvents(Protocol):
    """Who is told what becomes of a generation: TemplateEvents, and whose template it is."""

    def on_hello(self, generation: Generation, hello: Hello) -> None:
        """Its application is imported."""

    def on_child_started(self, key: int, pid: int, pidfd: int | None) -> None:
        """A child runs. The pidfd is the receiver's to close."""

    def on_child_refused(self, key: int, reason: str) -> None:
        """The system does not give us another process."""

    def on_child_ended(self, generation: Generation, pid: int, code: int | None) -> None:
        """A child has ended."""

    def on_template_ended(self, generation: Generation, code: int | None) -> None:
        """The template has ended: so do its children."""


class Generation:
    """Implements TemplateEvents.

    link:    the template
    ordered: keys of children that it was asked for and that did not start yet
    keys:    of children that run, by pid
    files:   where they write their stacks, by pid
    failure: why the application does not import, '' if it does
    """

    def __init__(
        self, config: ChildConfig, events: GenerationEvents, first: TemplateProcess | None = None
    ) -> None:
        self.link = TemplateLink(config, self, first)
        self.ordered: set[int] = set()
        self.keys: dict[int, int] = {}
        self.files: dict[int, int] = {}
        self.failure = ""
        self._events = events

    @property
    def is_empty(self) -> bool:
        """Has it no children, and will it have none?"""
        return not self.keys and not self.ordered

    def order_child(self, key: int, places: int, pipe: int, permits: int) -> bool:
        sent = self.link.order_child(key, places, pipe, permits)
        if sent:
            self.ordered.add(key)
        return sent

    def take_children(self) -> set[int]:
        """Its template is gone: the keys of the children that it had, which are no more its."""
        found = {*self.ordered, *self.keys.values()}
        self.ordered.clear()
        for pid in list(self.keys):
            self._forget(pid)
        return found

    def on_hello(self, hello: Hello) -> None:
        self._events.on_hello(self, hello)

    def on_import_failed(self, reason: str) -> None:
        self.failure = reason

    def on_child_started(self, key: int, pid: int, file: int, pidfd: int | None) -> None:
        self.ordered.discard(key)
        self.keys[pid] = key
        self.files[pid] = file
        self._events.on_child_started(key, pid, pidfd)

    def on_child_refused(self, key: int, reason: str) -> None:
        self.ordered.discard(key)
        self._events.on_child_refused(key, reason)

    def on_child_ended(self, pid: int, code: int | None) -> None:
        if pid in self.keys:
            self._forget(pid)
        self._events.on_child_ended(self, pid, code)

    def on_template_ended(self, code: int | None) -> None:
        self._events.on_template_ended(self, code)

    def _forget(self, pid: int) -> None:
        del self.keys[pid]
        os.close(self.files.pop(pid))
