"""Host lists as Slurm reads them, ``node[01-16],login``: one bracket a name, at its end."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(?:.*\D)?\d{1,9}", re.ASCII)


def fold(names: Iterable[str]) -> str:
    """The names as one list; those that end in a number of at most 9 digits are folded, and come first.

    Parameters
    ----------
    names : iterable of str
        Made of letters, digits, ``_``, ``.`` and ``-``.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    given = sorted(set(names))
    ends = [name for name in given if _NUMBERED.fullmatch(name)]
    numbered = NodeSet.fromlist(ends, resolver=RESOLVER_NOGROUP)
    numbered.fold_axis = (-1,)
    others = sorted(set(given).difference(ends))
    return ",".join(part for part in (str(numbered), *others) if part)
