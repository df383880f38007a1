"""kopf, used with its grain: two watches that feed the inventory. No decisions are made here."""

from __future__ import annotations

from tidework_operator.handlers.objects import Access
from tidework_operator.handlers.watch import Watch

__all__ = ["Access", "Watch"]
