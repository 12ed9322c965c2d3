"""A fabric as Slurm's ``topology.conf`` for ``TopologyPlugin=topology/tree``, from the wiring that was seen.

A switch of the file stands for all that play its part (`registry.exports.tiers`); comments name them.
``LinkSpeed`` is the least Gbit/s of anything below towards it, which Slurm does not use; it is left out below
1. Hosts on no switch cannot stand in a tree: a comment names them. Source: topology.conf(5).
"""

from __future__ import annotations

from registry.exports.hostlists import fold
from registry.exports.tiers import GIGABIT, Tier, tiers
from registry.model import Fabric

_SHOWN = 8
"""Most switches that a comment names."""


def write(fabric: Fabric) -> str:
    """Lines of ``SwitchName=``, a switch above others after these.

    Raises
    ------
    InvalidValue
        No host is on a switch; a host's name that Slurm cannot take.
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
    """What a switch stands for, where that is more than its name says."""
    if tier.stands_for == (tier.name,) or not tier.stands_for:
        return []
    shown = [name.replace("\\", "/") for name in tier.stands_for[:_SHOWN]]
    more = len(tier.stands_for) - len(shown)
    return [f"# {tier.name}: {', '.join(shown)}" + (f" and {more} more" if more else "")]
