"""The one rule by which names of hosts of two sources are the same, in short and in full.

Two names are the same if they are equal; else if they are equal up to the first dot, as ``node1`` and
``node1.cluster.example`` are, and no other name of either source is so, too. The part before the dot needs a
letter: addresses such as ``10.0.0.1`` are never shortened. See docs/reference/formats.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping


def without_domain(name: str) -> str:
    """Return a host's name up to the first dot; the whole name if there is no letter before it."""
    head, dot, _ = name.partition(".")
    return head if dot and any(letter.isalpha() for letter in head) else name


def same_hosts(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the known name of each name, without those that have none or of which several are possible.

    All names of one source are to be given at once: two of them that are equal up to the first dot cannot be
    the same known host.
    """
    wanted, whole = dict.fromkeys(names), dict.fromkeys(known)
    found = {name: name for name in wanted if name in whole}
    left = [name for name in wanted if name not in found]
    if not left:
        return found
    askers, owners = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for name in left:
        askers[without_domain(name)].append(name)
    for name in whole:
        if (short := without_domain(name)) in askers:
            owners[short].append(name)
    for short, asking in askers.items():
        owning = owners[short]
        if len(asking) == len(owning) == 1 and owning[0] not in found:
            found[asking[0]] = owning[0]
    return found


def doubtful(same: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning, or none, about names that `same_hosts` matched though both are in full and differ."""
    pairs = [
        f"{name} is taken as {known}"
        for name, known in same.items()
        if name != known and without_domain(name) != name and without_domain(known) != known
    ]
    if not pairs:
        return ()
    more = f" and {len(pairs) - 1:,} more" if len(pairs) > 1 else ""
    return (f"{pairs[0]}{more}, though the domains differ: correct the names if these are other hosts",)
