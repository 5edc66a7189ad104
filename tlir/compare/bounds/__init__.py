"""Rigorous bounds: what every permitted execution of a graph may give, element by element.

``resolve`` makes a named policy definite for a frontend; ``enclose`` propagates enclosures through a graph beside the
reference's evaluation; ``local`` gives those of one node on given operands.
"""

from __future__ import annotations

from tlir.compare.bounds.enclosure import Enclosure, Reason, Reasons, certain
from tlir.compare.bounds.policy import DEFAULT_POLICY, POLICIES, Freedoms, Policy, resolve
from tlir.compare.bounds.propagate import RULES, SEVERAL_RULES, UNBOUNDED, enclose, local, propagate

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "RULES",
    "SEVERAL_RULES",
    "UNBOUNDED",
    "Enclosure",
    "Freedoms",
    "Policy",
    "Reason",
    "Reasons",
    "certain",
    "enclose",
    "local",
    "propagate",
    "resolve",
]
