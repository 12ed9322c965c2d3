"""Hosts and devices in the data of an ingest that the fabric lacks: one rule for all kinds of data.

What is known is saved, and a warning counts and names the rest. The data are rejected if nothing of them is
known, since they are probably of another cluster, or if the caller wants that (`Intake.strict`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from registry.errors import AlmanacError, UnknownName
from registry.fabrics.layouts import match_hosts
from registry.model import CounterSweep, Fabric, HostOrder
from registry.model.host_layout import HostLayout
from registry.model.host_names import doubtful, same_hosts

NAMES_SHOWN = 5
"""Names that a warning lists."""

Data = TypeVar("Data")


class Known(NamedTuple, Generic[Data]):
    """The data that can be saved, the names of all that the fabric lacks, and warnings about those."""

    data: Data
    unknown: tuple[str, ...]
    warnings: tuple[str, ...]


def warn_or_reject(
    unknown: Sequence[str], text: str, *, reject: bool, error: Callable[[], AlmanacError]
) -> tuple[str, ...]:
    """Return the warning about unknown names; none if all names are known.

    Parameters
    ----------
    text : str
        Text of the warning.
    reject : bool
        True to raise the error instead.
    """
    if unknown and reject:
        raise error()
    return (f"{text} (--strict rejects the files)",) if unknown else ()


def first_names(names: Sequence[str]) -> str:
    """Return the first names and the number of the others."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def known_placements(
    orders: Sequence[HostOrder], fabric: Fabric, *, strict: bool
) -> Known[tuple[HostOrder, ...]]:
    """Return the placements with all ranks on hosts of the fabric.

    A placement is stored by vertices of a fabric and compared by the cost of all its ranks, so that one
    without the hosts of some ranks is of no use.
    """
    hosts = {fabric.names[vertex] for vertex in fabric.hosts.tolist()}
    same = {order: same_hosts(order.hosts, hosts) for order in orders}
    lacking = {order: set(order.hosts) - same[order].keys() for order in orders}
    placed = tuple(order for order in orders if not lacking[order])
    left_out = [order for order in orders if lacking[order]]
    unknown = tuple(sorted(set().union(*lacking.values())))
    warnings = warn_or_reject(
        unknown,
        f"{len(left_out)} of {len(orders)} placements have ranks on hosts that the fabric lacks and are not "
        f"saved: {first_names([order.name for order in left_out])}; hosts: {first_names(unknown)}",
        reject=strict or not placed,
        error=lambda: UnknownName("host", unknown[0], sorted(hosts), path=left_out[0].name or None),
    )
    taken = {name: host for order in placed for name, host in same[order].items()}
    return Known(placed, unknown, (*doubtful(taken), *warnings))


def known_layouts(
    layouts: Sequence[HostLayout], fabric: Fabric, *, strict: bool
) -> Known[dict[str, HostLayout]]:
    """Return the layouts of hosts of the fabric, by host."""
    match = match_hosts(layouts, fabric)
    unknown = tuple(error.name for error in match.unknown)
    warnings = warn_or_reject(
        unknown,
        f"{len(unknown)} of {len(layouts)} layouts are of hosts that the fabric lacks and are not saved: "
        f"{first_names(unknown)}",
        reject=strict or not match.known,
        error=lambda: match.unknown[0],
    )
    return Known(match.known, unknown, (*match.warnings, *warnings))


def known_sweeps(
    sweeps: Sequence[CounterSweep], fabric_at: Callable[[datetime], Fabric], *, strict: bool
) -> Known[tuple[CounterSweep, ...]]:
    """Return the sweeps that have a device of the fabric, by time, with GUIDs in place of LIDs.

    Ports of other devices are kept if they have a GUID, since a later scan may contain them. Without a GUID
    they are left out: LIDs are given to other devices in time.

    Parameters
    ----------
    fabric_at : callable
        Returns the fabric valid at a time.
    """
    known, devices, unknown = list[CounterSweep](), set[str](), dict[str, None]()
    for sweep in sorted(sweeps, key=lambda sweep: sweep.at):
        fabric = fabric_at(sweep.at)
        lacking = sweep.unknown_devices(fabric)
        unknown |= dict.fromkeys(lacking)
        devices.update(sweep.devices)
        if len(lacking) < len(sweep.devices) or not len(sweep):
            known.append(sweep.with_guids(fabric))
    names = tuple(unknown)
    without_guid = any(name.startswith("LID") for name in names)
    fate = "those with a LID only are left out" if without_guid else "they are saved by their GUIDs"
    if len(known) < len(sweeps):
        fate += f", as are {len(sweeps) - len(known)} of {len(sweeps)} sweeps without any known device"
    count = f"the fabric lacks {len(names)} of {len(devices)} devices with counters"
    warnings = warn_or_reject(
        names,
        f"{count}: {first_names(names)}; {fate}",
        reject=strict or not known,
        error=lambda: UnknownName(*names[0].split(), remedy=f"{count}: are these counters of this cluster?"),
    )
    return Known(tuple(known), names, warnings)
