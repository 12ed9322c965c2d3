"""Slurm's ``topology.conf`` for ``TopologyPlugin=topology/tree``, from the observed wiring.

A switch of the file represents all switches with its function (`registry.exports.switch_tree`); comments list
them. ``LinkSpeed`` is the least Gbit/s from anything below to it, which Slurm does not use; it is left out
below 1. Hosts without a switch are listed in a comment. Source: topology.conf(5).
"""

from __future__ import annotations

from registry.exports.switch_tree import GIGABIT, Tier, fold, tiers
from registry.model import Fabric

_SHOWN = 8
"""Most switches that a comment lists."""


def write(fabric: Fabric) -> str:
    """Return lines with ``SwitchName=``; a switch comes after those below it.

    Raises
    ------
    InvalidValue
        No host is on a switch, or Slurm cannot accept a host's name.
    """
    found = tiers(fabric)
    lines = ["# Slurm topology/tree, from the wiring as it was seen"]
    lines += [f"# on no switch: {fold(found.left_out)}"] if found.left_out else []
    for tier in reversed(found.tiers):
        lines += _comment(tier)
        below = f"Switches={fold(tier.children)}" if tier.children else f"Nodes={fold(tier.hosts)}"
        speed = round(tier.capacity / GIGABIT)
        lines.append(f"SwitchName={tier.name} {below}" + (f" LinkSpeed={speed}" if speed > 1 else ""))
    return "\n".join(lines) + "\n"


def _comment(tier: Tier) -> list[str]:
    """Return a comment with the switches that a switch represents, unless it is only itself."""
    if tier.stands_for == (tier.name,) or not tier.stands_for:
        return []
    shown = [name.replace("\\", "/") for name in tier.stands_for[:_SHOWN]]
    more = len(tier.stands_for) - len(shown)
    return [f"# {tier.name}: {', '.join(shown)}" + (f" and {more} more" if more else "")]
