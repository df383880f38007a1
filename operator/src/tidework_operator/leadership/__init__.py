"""Who leads: a Lease chooses (election.py), terms make it safe (terms.py)."""

from __future__ import annotations

from tidework_operator.leadership.election import Election
from tidework_operator.leadership.terms import ClusterLeadership
from tidework_operator.leadership.while_leading import TROUBLE, WhileLeading

__all__ = ["TROUBLE", "ClusterLeadership", "Election", "WhileLeading"]
