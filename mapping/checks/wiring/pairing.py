"""Cables by their ends, and the pairing of planned cables with those that are present."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mapping.checks.finding import some
from mapping.checks.wiring.names import End
from registry.model import NO_PORT


class Wire(NamedTuple):
    """A cable by its ends, the smaller one first."""

    near: End
    far: End

    def __str__(self) -> str:
        return f"{self.near} - {self.far}"


class Mix(NamedTuple):
    """Planned cables, and the cables that use their ports instead."""

    planned: tuple[Wire, ...]
    found: tuple[Wire, ...]

    def __str__(self) -> str:
        found, planned = (some([str(wire) for wire in wires]) for wires in (self.found, self.planned))
        return f"{found} instead of {planned}"


class Planned(NamedTuple):
    """A planned cable with its row in the plan and its bytes/s."""

    row: int
    wire: Wire
    speed: float


def wire_between(one: End, other: End) -> Wire:
    return Wire(*sorted((one, other)))


def port_pair(wire: Wire) -> tuple[int, int]:
    return wire.near.port, wire.far.port


def match_cables(
    planned: Sequence[Planned], present: Sequence[tuple[Wire, float]]
) -> tuple[list[tuple[Planned, float]], list[Planned], list[Wire]]:
    """Match planned with present cables; return the pairs with bytes/s, and those left on either side.

    First the cables with the same ports; then cables with an unknown end match any that is compatible, the
    ones with more known ends first.
    """
    left: dict[Wire, list[float]] = {}
    for wire, rate in present:
        left.setdefault(wire, []).append(rate)
    pairs, vague = list[tuple[Planned, float]](), list[Planned]()
    for one in planned:
        if NO_PORT not in port_pair(one.wire) and left.get(one.wire):
            pairs.append((one, left[one.wire].pop()))
        else:
            vague.append(one)
    between: dict[tuple[str, str], list[tuple[Wire, float]]] = {}
    for wire, rates in left.items():
        rows = between.setdefault((wire.near.device, wire.far.device), [])
        rows += [(wire, rate) for rate in rates]
    missing = []
    for one in sorted(vague, key=lambda one: (port_pair(one.wire).count(NO_PORT), one.wire)):
        rest = between.get((one.wire.near.device, one.wire.far.device), [])
        match = next((other for other in rest if _may_be(one.wire, other[0])), None)
        if match is None:
            missing.append(one)
        else:
            rest.remove(match)
            pairs.append((one, match[1]))
    return pairs, missing, [wire for rest in between.values() for wire, _ in rest]


def _may_be(one: Wire, other: Wire) -> bool:
    # between two ports of one device the order of the ends is the ports'
    return all(map(_same_end, one, other)) or all(map(_same_end, one, other[::-1]))


def _same_end(one: End, other: End) -> bool:
    if one.device != other.device or (one.part and other.part and one.part != other.part):
        return False
    return one.port == other.port or NO_PORT in (one.port, other.port)


def known_ports(wires: Iterable[Wire]) -> set[End]:
    """Return the ends of cables whose ports are known."""
    return {end for wire in wires for end in wire if end.port != NO_PORT}


def pair_nameless(
    missing: Sequence[Planned], extra: Sequence[Wire], blank: set[str], planned: set[End]
) -> tuple[list[tuple[int | None, Wire]], list[Wire]]:
    """Match cables to nameless adapters with planned cables of the same switch port.

    Returns
    -------
    list of (int or None, Wire)
        Cables to nameless adapters; the row of the planned cable whose port they use, or None if their port
        is not planned.
    list of Wire
        The others: also those in a port that the plan gives to a cable that is present elsewhere.
    """
    at_port = {
        end: one
        for one in missing
        for end, other in (one.wire, one.wire[::-1])
        if end.port != NO_PORT and other.port == NO_PORT
    }
    unnamed, others = list[tuple[int | None, Wire]](), list[Wire]()
    for wire in extra:
        named = [end for end in wire if end.device not in blank]
        held = at_port.pop(named[0], None) if len(named) == 1 else None
        if held is not None:
            unnamed.append((held.row, wire))
        elif len(named) == 1 and named[0] not in planned:
            unnamed.append((None, wire))
        else:
            others.append(wire)
    return unnamed, others


def find_mixes(
    missing: Sequence[Wire], extra: Sequence[Wire]
) -> tuple[list[Mix], list[Mix], list[Wire], list[Wire]]:
    """Return swapped and moved cables, and those that are still missing and extra."""
    planned_by_end = {end: wire for wire in missing for end in known_ports([wire])}
    found_by_end = {end: wire for wire in extra for end in known_ports([wire])}
    swapped, moved, still_missing = list[Mix](), list[Mix](), list[Wire]()
    seen, used = set[Wire](), set[Wire]()
    for wire in missing:
        if wire in seen:
            continue
        planned, found = _together(wire, planned_by_end, found_by_end)
        seen |= set(planned)
        if found and {end for one in planned for end in one} == {end for one in found for end in one}:
            swapped.append(Mix(tuple(sorted(planned)), tuple(sorted(found))))
            used |= set(found)
            continue
        pairs = _moves(planned, found_by_end)
        moved += [Mix((one,), (other,)) for one, other in pairs.items()]
        used |= set(pairs.values())
        still_missing += [one for one in planned if one not in pairs]
    return swapped, moved, still_missing, [wire for wire in extra if wire not in used]


def _moves(planned: Iterable[Wire], found_by_end: dict[End, Wire]) -> dict[Wire, Wire]:
    """Pair planned cables with found ones that share an end, those between the same devices first."""
    sharing = {
        (one.near.device != other.near.device or one.far.device != other.far.device, one, other)
        for one in planned
        for end in known_ports([one])
        if (other := found_by_end.get(end)) is not None
    }
    pairs, taken = dict[Wire, Wire](), set[Wire]()
    for _, one, other in sorted(sharing):
        if one not in pairs and other not in taken:
            taken.add(other)
            pairs[one] = other
    return pairs


def _together(
    start: Wire, planned_by_end: dict[End, Wire], found_by_end: dict[End, Wire]
) -> tuple[dict[Wire, None], dict[Wire, None]]:
    """Return the planned and found cables that are connected with `start` through shared ports, in order."""
    planned, found, todo = {start: None}, dict[Wire, None](), [start]
    while todo:
        for end in todo.pop():
            for wire, known in ((planned_by_end.get(end), planned), (found_by_end.get(end), found)):
                if wire is not None and wire not in known:
                    known[wire] = None
                    todo.append(wire)
    return planned, found
