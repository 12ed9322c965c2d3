"""Names in errors: those closest to an unknown one, and the first of many."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

LISTED = 12
"""Most names that an error lists."""


def close_names(name: str, known: Sequence[str], count: int = 3) -> tuple[str, ...]:
    """Return the closest of the known names, best first; case is ignored."""
    folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), list(folded), n=count, cutoff=0.5)
    return tuple(folded[key] for key in found)


def list_names(names: Sequence[str]) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
