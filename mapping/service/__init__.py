"""The functions of `mapping` on data from the registry, loaded on first use.

Input: names of profiles, jobs and clusters, and an open registry.
Output: reports; placements and circuit plans saved in the registry.

The only room of this wing that touches the database, through `registry.registry.Registry`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.service.advising import Advised, advise_all
    from mapping.service.answers.answer import Answer, Judgement
    from mapping.service.answers.answering import solve
    from mapping.service.asking import Question, answer, case_of, judge, placement_on, save, subject_of
    from mapping.service.live import Live, Unloaded, imagine, pairs_on, traffic, traffic_of, traffics
    from mapping.service.naming import change_of, link_of
    from mapping.service.reconfiguring import (
        OnSwitch,
        machine_of,
        next_circuits,
        on_switch,
        save_circuits,
        save_next_circuits,
        topology_of,
    )

__all__ = [
    "Advised",
    "Answer",
    "Judgement",
    "Live",
    "OnSwitch",
    "Question",
    "Unloaded",
    "advise_all",
    "answer",
    "case_of",
    "change_of",
    "imagine",
    "judge",
    "link_of",
    "machine_of",
    "next_circuits",
    "on_switch",
    "pairs_on",
    "placement_on",
    "save",
    "save_circuits",
    "save_next_circuits",
    "solve",
    "subject_of",
    "topology_of",
    "traffic",
    "traffic_of",
    "traffics",
]

_HOMES = {
    **dict.fromkeys(("Answer", "Judgement"), "mapping.service.answers.answer"),
    "solve": "mapping.service.answers.answering",
    **dict.fromkeys(("Advised", "advise_all"), "mapping.service.advising"),
    **dict.fromkeys(
        ("Question", "answer", "case_of", "judge", "placement_on", "save", "subject_of"),
        "mapping.service.asking",
    ),
    **dict.fromkeys(
        ("Live", "Unloaded", "imagine", "pairs_on", "traffic", "traffic_of", "traffics"),
        "mapping.service.live",
    ),
    **dict.fromkeys(("change_of", "link_of"), "mapping.service.naming"),
    **dict.fromkeys(
        (
            "OnSwitch",
            "machine_of",
            "next_circuits",
            "on_switch",
            "save_circuits",
            "save_next_circuits",
            "topology_of",
        ),
        "mapping.service.reconfiguring",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mapping.service' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
