"""Changes of a fabric as text, one line each."""

from __future__ import annotations

from registry import units
from registry.fabrics.changes import Cable, Changes


def in_words(changes: Changes) -> list[str]:
    """Return a line per change of devices, cables, capacities and routes; empty if nothing changed."""
    lines = [f"switch {name} appeared" for name in changes.switches_appeared]
    lines += [f"switch {name} vanished" for name in changes.switches_vanished]
    lines += [f"host {name} appeared" for name in changes.hosts_appeared]
    lines += [f"host {name} vanished" for name in changes.hosts_vanished]
    lines += [f"{one.kind} {one.old} is now called {one.new}" for one in changes.renamed]
    lines += [f"{_count(cable)} {ends(cable)} appeared" for cable in changes.cables_appeared]
    lines += [f"{_count(cable)} {ends(cable)} vanished" for cable in changes.cables_vanished]
    lines += [
        f"cable {ends(one.after)} now carries {units.text(one.after.capacity, units.RATE)}, "
        f"before {units.text(one.before.capacity, units.RATE)}"
        for one in changes.capacity_changed
    ]
    if changes.switches_rerouted:
        lines.append(f"the forwarding tables of {len(changes.switches_rerouted)} switches changed")
    return lines


def summary(changes: Changes) -> str:
    """Return the numbers of changes in one line: ``2 cables vanished, 1 host appeared``."""
    counts = (
        *((len(getattr(changes, f"switches_{how}")), "switch", "switches", how) for how in _HOW),
        *((len(getattr(changes, f"hosts_{how}")), "host", "hosts", how) for how in _HOW),
        *((_cables(changes, how), "cable", "cables", how) for how in _HOW),
        (len(changes.renamed), "device", "devices", "renamed"),
        (len(changes.capacity_changed), "cable", "cables", "changed in speed"),
        (len(changes.switches_rerouted), "switch", "switches", "rerouted"),
    )
    parts = [f"{count:,} {one if count == 1 else many} {what}" for count, one, many, what in counts if count]
    return ", ".join(parts) or "nothing changed"


def ends(cable: Cable) -> str:
    """Return a cable by its ends: ``leaf1 port 4 - spine2 port 1``."""
    return f"{_end(cable.source, cable.source_port)} - {_end(cable.target, cable.target_port)}"


_HOW = ("appeared", "vanished")


def _cables(changes: Changes, how: str) -> int:
    return sum(cable.cables for cable in getattr(changes, f"cables_{how}"))


def _count(cable: Cable) -> str:
    return "cable" if cable.cables == 1 else f"{cable.cables} cables"


def _end(name: str, port: int) -> str:
    return name if port < 0 else f"{name} port {port}"
