"""Names in errors: those closest to an unknown one, and the first of many."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

LISTED = 12
"""Most names that an error lists."""
_NUMBER = re.compile(r"([0-9]{1,18})")


def close_names(name: str, known: Sequence[str], count: int = 3) -> tuple[str, ...]:
    """Return the closest of the known names, best first; case is ignored.

    Names that are equal up to the first dot come first, then those that differ in their numbers only, the
    closest numbers before others: ``node0001`` for ``node001``, whatever the number of zeros; then the names
    with most letters in common, which come first if the name is only a number, as of a job.
    """
    folded = {candidate.casefold(): candidate for candidate in known}
    wanted = name.casefold()
    alike = []
    for key in folded if _NUMBER.search(wanted) else ():
        both = (
            [key, wanted]
            if ("." in key) == ("." in wanted)
            else [one.partition(".")[0] for one in (key, wanted)]
        )
        (own_text, own), (text, numbers) = map(_parts, both)
        if own_text == text:
            alike.append(([abs(a - b) for a, b in zip(own, numbers, strict=True)], key != wanted, key))
    head = wanted.partition(".")[0]
    first = [key for key in folded if key.partition(".")[0] == head and not head.isdecimal()]
    numbered = [key for *_, key in sorted(alike)[:count]]
    lettered = difflib.get_close_matches(wanted, list(folded), n=2 * count, cutoff=0.5)
    found = [*lettered, *numbered] if wanted.isdecimal() else [*first, *numbered, *lettered]
    return tuple(folded[key] for key in list(dict.fromkeys(found))[:count])


def list_names(names: Sequence[str]) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _parts(name: str) -> tuple[tuple[str, ...], list[int]]:
    """Return what is between the numbers of a name, and the numbers."""
    parts = _NUMBER.split(name)
    return tuple(parts[::2]), [int(part) for part in parts[1::2]]
