"""The checks of a fabric: one line each.

Each is a function that takes a `Subject` and yields findings; none if the subject lacks what the check needs
(forwarding tables, ports, intended wiring).

Cables that run slower than both of their ends allow, or than nearly all similar cables.

Devices with fewer cables than similar devices: rails of hosts, uplinks of leaf switches.

Ports without a working link, if the source lists them; most sources list only ports that are up.

Cables that went down more often than the limit, by the counters of their ports or in the scans.

Faults of forwarding tables: broken routes, and credit loops.

A packet in the buffer at the end of a cable waits for space on the next one. If such waits form a cycle, a
credit loop, the fabric can deadlock (Dally and Seitz, "Deadlock-free message routing in multiprocessor
interconnection networks", 1987). Only the tables are checked: routing engines that use several virtual lanes
(LASH, DFSSSP, torus-2QoS) break cycles of the tables by lanes, which this check does not see.

Names, GUIDs and LIDs that two devices share, so that tools and tables mistake one for the other.

Ports whose error counters grow beyond their limits, and counters that are full.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from mapping.checks.finding import (
    WORDS,
    Finding,
    PortErrors,
    Severity,
    Subject,
    cable_text,
    some,
    unnamed_text,
)
from mapping.routing.forwarding_tables import vertex_of_switch
from mapping.routing.kernels import forwarding_tables as kernel
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.catalog import Catalog, Entry, PlugIns
from registry.errors import shorten
from registry.model import (
    HOST,
    Bools,
    Fabric,
    Floats,
    Guids,
    Ints,
    Longs,
    claimed_name,
    format_guid,
    is_made_up,
)
from registry.model.fabric import end_name, port_name
from registry.model.host_names import without_domain
from registry.model.links import (
    ARMED,
    DISABLED,
    DOWN,
    FAR_BELOW,
    INITIALIZE,
    MANY,
    NEARLY_ALL,
    PORT_STATES,
    TRAINING,
)
from registry.progress import Progress, silent
from registry.units import RATE, moment_text, text

FEWEST = 3
"""Smallest number of hosts of one kind for which a usual number of cables is derived."""
USUAL_SHARE = 0.75
"""Part of the leaf switches that must have the same number of cables before a lower one is reported."""
NUMBERS = re.compile(r"\d+")
"""Parts of names in which devices of one kind differ."""


def find_rails(subject: Subject) -> Iterator[Finding]:
    """Return findings for hosts with fewer working cables than most of their kind.

    Hosts are of one kind if their names are the same except for numbers.
    """
    fabric = subject.fabric
    links = fabric.links
    up = np.bincount(links.source, weights=links.cables, minlength=len(fabric)).astype(np.int64)
    kinds: dict[str, list[int]] = defaultdict(list)
    for host in np.setdiff1d(fabric.hosts, fabric.unnamed).tolist():
        kinds[NUMBERS.sub("#", fabric.names[host])].append(host)
    for kind, members in sorted(kinds.items()):
        if len(members) < FEWEST:
            continue
        usual = _most_common(int(up[host]) for host in members)[0]
        for count, names in _with_fewer(fabric, members, up, usual):
            cables = f"{count} cable{'' if count == 1 else 's'}" if count else "no cable"
            text = f"{some(names)}: {cables} up, most hosts named {kind} have {usual}{unnamed_text(fabric)}"
            yield Finding(_severity(count), names[0], text, len(names))


def find_uplinks(subject: Subject) -> Iterator[Finding]:
    """Return findings for leaf switches with too few uplinks; none for irregular networks."""
    fabric = subject.fabric
    links, cables = fabric.links, fabric.links.cables.astype(np.int64)
    to_host = fabric.kind[links.target] == HOST
    uplinks = np.bincount(links.source[~to_host], weights=cables[~to_host], minlength=len(fabric))
    serves = np.bincount(links.source[to_host], minlength=len(fabric)) > 0
    leaves = [vertex for vertex in fabric.switches.tolist() if serves[vertex]]
    if not leaves:
        return
    usual, frequency = _most_common(int(uplinks[leaf]) for leaf in leaves)
    if frequency < USUAL_SHARE * len(leaves):
        return
    rest = f"{frequency} of {len(leaves)} leaf switches have {usual}"
    for count, names in _with_fewer(fabric, leaves, uplinks.astype(np.int64), usual):
        text = f"{some(names)}: {count} cables to other switches, {rest}"
        yield Finding(_severity(count), names[0], text, len(names))


def _most_common(counts: Iterable[int]) -> tuple[int, int]:
    """Return the most frequent count and its frequency; of equally frequent ones the larger."""
    return max(Counter(counts).items(), key=lambda item: (item[1], item[0]))


def _with_fewer(
    fabric: Fabric, devices: Iterable[int], cables: Longs, usual: int
) -> list[tuple[int, list[str]]]:
    """Return the names of devices with fewer cables than usual, by their number of cables."""
    names: dict[int, list[str]] = defaultdict(list)
    for device in devices:
        if cables[device] < usual:
            names[int(cables[device])].append(fabric.names[device])
    return sorted(names.items())


def _severity(cables: int) -> Severity:
    return Severity.WARNING if cables else Severity.ERROR


HOSTS, SWITCHES = "hosts' cables", "cables between switches"
OTHER_GENERATION = 8.0
"""Factor from which nearly all cables are rather misread by a tool than set to their speed."""
MOST = 4
"""Largest number of kinds of different speeds that one finding names."""


def find_slow_links(subject: Subject) -> Iterator[Finding]:
    """Return findings for cables that could be faster, then for cables with an unusual speed.

    The first are those that a source lists as degraded, or that are slow for the models of both ends.
    """
    fabric = subject.fabric
    kinds = _kinds(fabric)
    degraded = _degraded(fabric)
    speeds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, could_be in degraded.items():
        speeds[text(float(fabric.links.capacity[row]), RATE), text(could_be, RATE)].append(row)
    for (actual, possible), rows in speeds.items():
        what = f"at {actual}, both ends support {possible}"
        yield from _could_be_faster(fabric, kinds, rows, degraded[rows[0]], what)
    yield from _unusual(fabric, kinds, set(degraded))


def _kinds(fabric: Fabric) -> dict[str, list[int]]:
    """Return the lower rows of all cables, by what a message calls their kind.

    Cables are of one kind if the names of their ends differ only in numbers, and hosts' cables and the others
    are each one kind, too.
    """
    links = fabric.links
    of_host: Bools = (fabric.kind[links.source] == HOST) | (fabric.kind[links.target] == HOST)
    once: Longs = np.flatnonzero(links.source < links.target)
    kinds: dict[str, list[int]] = defaultdict(list)
    names = [NUMBERS.sub("#", name) for name in fabric.names]
    for row in once.tolist():
        ends = sorted((names[links.source[row]], names[links.target[row]]))
        kinds[f"cables {ends[0]} - {ends[1]}"].append(row)
    of_hosts, others = once[of_host[once]].tolist(), once[~of_host[once]].tolist()
    return kinds | {HOSTS: of_hosts, SWITCHES: others}


def _could_be_faster(
    fabric: Fabric, kinds: dict[str, list[int]], slow: list[int], possible: float, what: str
) -> Iterator[Finding]:
    """Return one finding for nearly all cables of a kind, which may be meant, else one for each cable."""
    links = fabric.links
    actual, left = float(links.capacity[slow[0]]), set(slow)
    everything = {"cables": np.flatnonzero(links.source < links.target).tolist()}
    broad_first = dict(reversed(kinds.items()))
    meant = actual >= FAR_BELOW * possible
    misread = possible >= OTHER_GENERATION * actual
    why = "is the tool that printed the scan older than this speed?" if misread else "is it set so?"
    for kind, members in (everything | (broad_first if meant else {})).items():
        rows = sorted(left.intersection(members))
        if len(rows) >= MANY and len(rows) >= NEARLY_ALL * len(members):
            left.difference_update(rows)
            reason = f"{len(rows):,} of {len(members):,} {kind} run {what}: {why}"
            severity = Severity.WARNING if misread else Severity.NOTE
            yield Finding(severity, cable_text(fabric, rows[0]), reason, len(rows))
    for cable in (cable_text(fabric, row) for row in slow if row in left):
        yield Finding(Severity.WARNING, cable, f"cable {cable} runs {what}")


def _degraded(fabric: Fabric) -> dict[int, float]:
    """Return the possible data bytes/s of degraded cables, by the lower row of the two directions."""
    links, ports = fabric.links, fabric.ports
    rows = np.flatnonzero(ports.could_be > 0).tolist()
    ends = zip(links.source.tolist(), links.source_adapter.tolist(), links.source_port.tolist(), strict=True)
    link_of = {end: row for row, end in enumerate(ends)} if rows else {}
    back = _reverse_rows(fabric) if rows else {}
    found: dict[int, float] = {}
    for port in rows:
        end = (int(ports.vertex[port]), int(ports.adapter[port]), int(ports.number[port]))
        link = link_of.get(end)
        if link is not None and ports.could_be[port] > links.capacity[link]:
            found.setdefault(min(link, back.get(link, link)), float(ports.could_be[port]))
    return found


def _reverse_rows(fabric: Fabric) -> dict[int, int]:
    """Return the row of the other direction of each cable whose ports are known."""
    links = fabric.links
    ends = links.source, links.source_port, links.target, links.target_port
    there = list(zip(*(column.tolist() for column in ends), strict=True))
    row_of = {ends: row for row, ends in enumerate(there)}
    pairs = ((row, row_of.get((c, d, a, b))) for row, (a, b, c, d) in enumerate(there))
    return {row: other for row, other in pairs if other is not None}


def _unusual(fabric: Fabric, kinds: dict[str, list[int]], known: set[int]) -> Iterator[Finding]:
    """Return a finding for each cable below the speed of nearly all of its kind, and one for all mixed kinds.

    A kind by names that has one speed explains it: two kinds of hosts may well differ.
    """
    each = fabric.links.capacity / fabric.links.cables
    reported, explained, mixed, different = set(known), set[int](), list[str](), list[int]()
    for what, rows in kinds.items():
        speeds, counts = np.unique(each[rows], return_counts=True)
        usual = len(counts) - 1 - int(np.argmax(counts[::-1])) if rows else 0
        slower = [row for row in rows if each[row] < speeds[-1] and row not in reported]
        if rows and counts[usual] >= NEARLY_ALL * len(rows):
            slower = [row for row in slower if each[row] < speeds[usual]]
            others = f"{counts[usual]:,} of {len(rows):,} {what} run at {text(float(speeds[usual]), RATE)}"
            yield from (_slower(fabric, row, float(speeds[usual]), others) for row in slower)
        elif len(rows) >= MANY and not explained.issuperset(slower):
            different += slower
            mixed.append(_speeds(speeds, counts, usual, what))
        explained.update(rows if len(rows) >= MANY else ())
        reported.update(slower)
    if mixed:
        more = f"; and {len(mixed) - MOST:,} more kinds of cables" if len(mixed) > MOST else ""
        first = cable_text(fabric, different[0])
        yield Finding(Severity.NOTE, first, "; ".join(mixed[:MOST]) + more, len(different))


def _slower(fabric: Fabric, row: int, usual: float, others: str) -> Finding:
    """Return the finding for a cable that is slower than the usual data bytes/s of its kind."""
    links, cable = fabric.links, cable_text(fabric, row)
    far_below = links.capacity[row] / links.cables[row] <= FAR_BELOW * usual
    reason = f"cable {cable} runs at {text(float(links.capacity[row]), RATE)}, {others}"
    return Finding(Severity.WARNING if far_below else Severity.NOTE, cable, reason)


def _speeds(speeds: Floats, counts: Longs, usual: int, what: str) -> str:
    """Return how many cables of a kind run at which speed, and which one is usual if most have it."""
    total, shown = int(counts.sum()), [text(float(speed), RATE) for speed in speeds]
    first, *others = (f"{count:,} at {speed}" for speed, count in zip(shown, counts.tolist(), strict=True))
    parts = [first.replace(" at ", f" of {total:,} run at "), *others]
    if 2 * counts[usual] > total and usual == len(speeds) - 1:
        parts[-1] = f"usual is {shown[usual]} ({counts[usual]:,} cables)"
    return f"{what}: {', '.join(parts)}"


def _check(name: str, function: str, about: str) -> Entry:
    return Entry(name=name, target=f"mapping.checks.{function}", about=about)


CHECKS = Catalog(
    "check",
    (
        _check("vanished", "vanished:find", "switches, hosts and cables that earlier scans showed"),
        _check(
            "slow-links",
            "checks:find_slow_links",
            "cables slower than both of their ends allow, or than nearly all similar cables",
        ),
        _check(
            "link-errors", "checks:find_link_errors", "ports whose error counters grow beyond their limits"
        ),
        _check(
            "flapping-links", "checks:find_flapping_links", "cables that went down several times in a day"
        ),
        _check(
            "down-ports", "checks:find_down_ports", "ports without a working link, if the source lists them"
        ),
        _check(
            "rails",
            "checks:find_rails",
            "hosts with fewer working cables than most hosts of their kind",
        ),
        _check(
            "uplinks",
            "checks:find_uplinks",
            "leaf switches with fewer cables to other switches than nearly all have",
        ),
        _check(
            "wiring",
            "wiring:find",
            "cables that are missing, unexpected, in a wrong port or at a wrong speed by the intended wiring",
        ),
        _check(
            "identities", "checks:find_shared_identities", "names, GUIDs or LIDs that several devices share"
        ),
        _check(
            "reachability",
            "checks:find_unreachable",
            "broken routes of the forwarding tables: no entry, a wrong port, or a loop",
        ),
        _check(
            "credit-loops",
            "checks:find_credit_loops",
            "cables that may wait for each other in a cycle (deadlock)",
        ),
    ),
    PlugIns(group="checks", entry=Entry),
)
"""All checks."""


def check(
    subject: Subject, names: Sequence[str] | None = None, progress: Progress = silent
) -> tuple[Finding, ...]:
    """Run checks and return their findings, worst first, then in the order of the catalog.

    Args:
        names: Checks to run; default: all. An unknown one raises `UnknownName`.
    """
    chosen = [CHECKS.find(name) for name in names] if names else list(CHECKS)
    findings: list[Finding] = []
    for done, one in enumerate(chosen):
        progress(f"checking {one.name}", done, len(chosen))
        findings += [replace(finding, check=one.name) for finding in _findings(one, subject)]
    progress("checking", len(chosen), len(chosen))
    return tuple(sorted(findings, key=lambda finding: -finding.severity))


def _findings(entry: Entry, subject: Subject) -> list[Finding]:
    """Return what a check finds; of a plug-in that fails its error."""
    try:
        return list(entry.load()(subject))
    except Exception as error:
        if not entry.package:
            raise
        text = f"the check {entry.name} of {entry.package} failed: {type(error).__name__}: {error}"
        return [Finding(Severity.WARNING, entry.name, shorten(text))]


def worst(findings: Sequence[Finding]) -> Severity | None:
    """Return the highest severity, or None if there are no findings."""
    return max((finding.severity for finding in findings), default=None)


_SEVERITY = {
    DOWN: Severity.NOTE,
    DISABLED: Severity.NOTE,
    TRAINING: Severity.WARNING,
    INITIALIZE: Severity.WARNING,
    ARMED: Severity.WARNING,
}
"""Severity by port state. An empty port is down, which is no fault; one that tries to come up has a
partner."""


def find_down_ports(subject: Subject) -> Iterator[Finding]:
    """Return one finding per device and state."""
    fabric = subject.fabric
    ports = fabric.ports
    for state, severity in _SEVERITY.items():
        rows = np.flatnonzero(ports.state == state)
        for vertex in np.unique(ports.vertex[rows]).tolist():
            numbers = [str(number) for number in ports.number[rows[ports.vertex[rows] == vertex]].tolist()]
            name, plural = fabric.names[vertex], "" if len(numbers) == 1 else "s"
            text = f"{name} port{plural} {some(numbers, 12)}: {PORT_STATES[state]}"
            yield Finding(severity, name, text, len(numbers))


COUNTER = "link_downed"

Ends = tuple[str, ...]
"""Ports of a cable, such as ``leaf01:3``, in order; only one of them if no cable is in it now."""


def find_flapping_links(subject: Subject) -> Iterator[Finding]:
    """Return a finding for each cable that went down too often, the most frequent first."""
    limit = subject.limits.errors.get(COUNTER, np.inf)
    texts: dict[Ends, list[str]] = {}
    worst: dict[Ends, int] = {}
    counted, since = _counted(subject)
    seen = {
        _ends((one.source, one.source_port), (one.target, one.target_port)): one.times
        for one in (() if subject.losses is None else subject.losses.interruptions)
        if one.times > limit
    }
    for found, how in ((counted, f"by its counters since {since}"), (seen, "in the scans")):
        for ends, times in found.items():
            texts.setdefault(ends, []).append(f"{times:,} times {how}")
            worst[ends] = max(times, worst.get(ends, 0))
    for ends in sorted(texts, key=lambda ends: (-worst[ends], ends)):
        cable = " - ".join(ends)
        yield Finding(
            Severity.WARNING, cable, f"cable {cable} went down {', '.join(texts[ends])}", worst[ends]
        )


def _counted(subject: Subject) -> tuple[dict[Ends, int], str]:
    """Return how often cables went down by their counters, if above the limit, and since when.

    Both ports of a cable count it; the larger number is returned.
    """
    found: dict[Ends, int] = {}
    errors, links, names = subject.port_errors, subject.fabric.links, subject.fabric.names
    if errors is None or COUNTER not in errors.names:
        return found, ""
    column = errors.names.index(COUNTER)
    for row in np.flatnonzero(errors.over[:, column]).tolist():
        link = int(errors.link[row])
        near = errors.device[row], int(errors.grown.port[row])
        ends = _ends(near)
        if link >= 0:
            ends = _ends(near, (names[int(links.target[link])], int(links.target_port[link])))
        found[ends] = max(int(errors.amount[row, column]), found.get(ends, 0))
    return found, moment_text(errors.grown.start)


def _ends(*ports: tuple[str, int]) -> Ends:
    return tuple(sorted(port_name(name, port) for name, port in ports))


SHOWN = 6
"""Largest number of cables of a cycle named in a finding."""
_WHY = {
    kernel.UNROUTED: "{switch} has no entry for the destination",
    kernel.NOT_CABLED: "{switch} sends packets to a port without a cable",
    kernel.WRONG_END: "{switch} sends packets to another device",
    kernel.LOOPS: "packets loop through {switch}",
}


def find_unreachable(subject: Subject) -> Iterator[Finding]:
    """Return findings for walks from switches with hosts to adapter LIDs, by the place where they fail."""
    fabric, tables = subject.fabric, subject.tables
    if tables is None or fabric.tables is None:
        return
    starts, lids = senders(tables), np.flatnonzero(tables.lid_port >= 0).astype(np.int32)
    counts = np.zeros((kernel.ENDS, len(tables.ports)), np.int64)
    example = np.zeros((kernel.ENDS, len(tables.ports), 2), np.int32)
    kernel.ends_of_walks(tables, lids, starts, counts, example)
    vertex = vertex_of_switch(fabric, fabric.tables)
    total = len(starts) * len(lids)
    for end, why in _WHY.items():
        for switch in np.flatnonzero(counts[end]).tolist():
            start, lid = example[end, switch].tolist()
            number, name = int(counts[end, switch]), fabric.names[vertex[switch]]
            reason, owner = why.format(switch=name), _owner(fabric, tables, lid)
            text = (
                f"{number:,} of {total:,} routes are broken: {reason}; for example the route from "
                f"{fabric.names[vertex[start]]} to LID {lid} of {owner}"
            )
            yield Finding(Severity.ERROR, name, text, number)


def senders(tables: TableArrays) -> Ints:
    """Return the switches (table rows, int32) that hosts are attached to and that are in the fabric."""
    to_hosts = np.append(tables.link_port >= 0, False)
    return np.flatnonzero(to_hosts[tables.port_link].any(axis=1)).astype(np.int32)


def _owner(fabric: Fabric, tables: TableArrays, lid: int) -> str:
    """Return the name of the host that owns a LID."""
    adapters = fabric.adapters
    port = int(tables.lid_port[lid])
    return fabric.names[int(adapters.host[adapters.port_adapter[port]])]


def find_credit_loops(subject: Subject) -> Iterator[Finding]:
    """Return one finding per group of connected cycles, with one of its shortest cycles."""
    fabric, tables = subject.fabric, subject.tables
    if tables is None:
        return
    channels = switch_channels(fabric, tables)
    graph = waiting_graph(tables, channels)
    count, component = connected_components(graph, connection="strong")
    sizes = np.bincount(component, minlength=count)
    for number in np.flatnonzero(sizes > 1).tolist():
        members = np.flatnonzero(component == number)
        cycle = [cable_text(fabric, int(channels[c])) for c in _cycle(graph, members).tolist()]
        more = f" and {len(cycle) - SHOWN} more" if len(cycle) > SHOWN else ""
        text = (
            f"{len(members)} cable directions can wait for each other in cycles (unless virtual lanes keep "
            f"them apart), such as {len(cycle)}: {'; '.join(cycle[:SHOWN])}{more}"
        )
        yield Finding(Severity.WARNING, cycle[0], text, len(members))


def switch_channels(fabric: Fabric, tables: TableArrays) -> Longs:
    """Return the links (int64[c]) from a switch with a table to another one."""
    into = tables.link_switch >= 0
    leaving = np.zeros(len(fabric.links), np.bool_)
    leaving[tables.port_link[tables.port_link >= 0]] = True
    return np.flatnonzero(into & leaving)


def waiting_graph(tables: TableArrays, channels: Longs) -> csr_array:
    """Return a sparse matrix (bool[c, c]) with an entry if a packet on one channel may wait for another."""
    channel_of_link: Ints = np.full(len(tables.link_switch), -1, np.int32)
    channel_of_link[channels] = np.arange(len(channels))
    waits = np.zeros((len(channels), 256), np.bool_)
    lids = np.flatnonzero(tables.lid_port >= 0).astype(np.int32)
    kernel.waits_for(tables, lids, senders(tables), channel_of_link, waits)
    holds, port = np.nonzero(waits)
    wanted = channel_of_link[tables.port_link[tables.link_switch[channels[holds]], port]]
    shape = (len(channels), len(channels))
    return csr_array((np.ones(len(holds), np.int8), (holds, wanted)), shape=shape)


def _cycle(graph: csr_array, members: Longs) -> Longs:
    """Return the channels of a shortest cycle through the first member of a component, in order."""
    inside = graph[members][:, members]
    order, before = breadth_first_order(inside, 0, directed=True)
    back = np.flatnonzero(inside[:, [0]].toarray().ravel())
    last = int(next(channel for channel in order.tolist() if channel in set(back.tolist())))
    path = [last]
    while path[-1] != 0:
        path.append(int(before[path[-1]]))
    cycle: Longs = members[np.array(path[::-1])]
    return cycle


def find_shared_identities(subject: Subject) -> Iterator[Finding]:
    """Return findings for names of several devices, and for GUIDs or LIDs of several adapters or ports."""
    fabric = subject.fabric
    yield from _descriptions(fabric)
    yield from _unnamed(fabric)
    yield from _described(fabric)
    adapters = fabric.adapters
    owner = [adapters.names[adapter] for adapter in adapters.port_adapter.tolist()]
    devices = np.concatenate((adapters.guid, fabric.guid[fabric.switches]))
    names = [*adapters.names, *(fabric.names[vertex] for vertex in fabric.switches.tolist())]
    yield from _repeated(devices, names, "node GUID")
    yield from _repeated(adapters.port_guid, owner, "port GUID")
    yield from _lids(fabric, owner)


def _descriptions(fabric: Fabric) -> Iterator[Finding]:
    """Return findings for names that readers of files made different by a GUID."""
    same: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for name, kind in zip(fabric.names, fabric.kind.tolist(), strict=True):
        if claimed := claimed_name(name):
            same[claimed, kind == HOST].append(name.removeprefix(claimed).strip(" []"))
    for (description, host), guids in sorted(same.items()):
        text = f"{len(guids)} {'hosts' if host else 'switches'} have the name {description}: {some(guids)}"
        yield Finding(Severity.WARNING, description, text, len(guids))


def _unnamed(fabric: Fabric) -> Iterator[Finding]:
    """Return one finding for all adapters without a machine's name."""
    names = [fabric.names[vertex] for vertex in fabric.unnamed.tolist()]
    if names:
        text = f"{len(names)} adapters have no machine's name and count as hosts of their own: {some(names)}"
        yield Finding(Severity.NOTE, names[0], text, len(names), group="unnamed")


def _described(fabric: Fabric) -> Iterator[Finding]:
    """Return findings for hosts whose adapters describe another host or none, so that GUIDs identify them.

    There are none in a fabric whose adapters' descriptions do not start with the names of their hosts.
    """
    adapters = fabric.adapters
    own = [without_domain(claimed_name(name) or name) for name in fabric.names]
    described = [without_domain(text.split(maxsplit=1)[0]) if text.strip() else "" for text in adapters.names]
    rows = list(zip(adapters.host.tolist(), described, adapters.names, adapters.guid.tolist(), strict=True))
    right = {host: guid for host, name, _, guid in reversed(rows) if name == own[host]}
    if 2 * len(right) < len(set(adapters.host.tolist()) - set(fabric.unnamed.tolist())):
        return
    owner = {own[host]: f"{fabric.names[host]} ({format_guid(guid)})" for host, guid in right.items()}
    twice, lost = defaultdict[str, dict[int, str]](dict), dict[int, str]()
    for host, name, description, guid in rows:
        if name != own[host] and name in owner:
            twice[name].setdefault(host, f"{fabric.names[host]} ({format_guid(guid)})")
        elif host not in right and not is_made_up(fabric.names[host]):
            lost.setdefault(host, f"{fabric.names[host]} ({format_guid(guid)}, {description!r})")
    for name, others in sorted(twice.items()):
        who = some([owner[name], *others.values()])
        reason = f"{len(others) + 1} hosts describe themselves as {name}: {who}"
        yield Finding(Severity.WARNING, name, reason, len(others) + 1)
    if lost:
        reason = f"{len(lost)} hosts are known by their GUIDs only, not by their descriptions: "
        subject = fabric.names[next(iter(lost))]
        yield Finding(
            Severity.NOTE, subject, reason + some([*lost.values()]), len(lost), group="descriptions"
        )


def _repeated(guids: Guids, names: list[str], what: str) -> Iterator[Finding]:
    values, counts = np.unique(guids[guids > 0], return_counts=True)
    for guid in values[counts > 1].tolist():
        owners = [names[index] for index in np.flatnonzero(guids == guid).tolist()]
        text = f"{what} {format_guid(guid)} belongs to {len(owners)} devices: {some(owners)}"
        yield Finding(Severity.ERROR, format_guid(guid), text, len(owners))


def _lids(fabric: Fabric, owner: list[str]) -> Iterator[Finding]:
    """Return findings for LIDs that two ports own, including all LIDs of a port by its LMC."""
    adapters = fabric.adapters
    first: Ints = adapters.port_lid
    taken: dict[int, list[str]] = defaultdict(list)
    repeated = Counter(first[first > 0].tolist())
    wide = bool((adapters.port_lmc > 0).any())
    if not wide and max(repeated.values(), default=1) == 1 and not _with_switch(fabric):
        return
    for port in np.flatnonzero(first > 0).tolist():
        for lid in range(int(first[port]), int(first[port]) + (1 << int(adapters.port_lmc[port]))):
            taken[lid].append(owner[port])
    for vertex in np.flatnonzero(fabric.lid > 0).tolist():
        taken[int(fabric.lid[vertex])].append(fabric.names[vertex])
    for lid, owners in sorted(taken.items()):
        if len(owners) > 1:
            text = f"LID {lid} belongs to {len(owners)} ports: {some(owners)}"
            yield Finding(Severity.ERROR, f"LID {lid}", text, len(owners))


def _with_switch(fabric: Fabric) -> bool:
    """Return True if a switch has the LID of an adapter port or of another switch."""
    of_switches = fabric.lid[fabric.lid > 0]
    shared = np.intersect1d(of_switches, fabric.adapters.port_lid)
    return len(np.unique(of_switches)) < len(of_switches) or len(shared) > 0


ELSEWHERE = ("link_downed",)
"""Counters that another check reports."""


def find_link_errors(subject: Subject) -> Iterator[Finding]:
    """Return a finding per port with too many errors, the worst first, then one per counter that is full."""
    errors = subject.port_errors
    if errors is None or not errors.names:
        return
    reported = errors.over & [name not in ELSEWHERE for name in errors.names]
    for row in np.argsort(-errors.excess, kind="stable").tolist():
        columns = np.flatnonzero(reported[row]).tolist()
        if columns:
            harmless = bool(errors.harmless[row, columns].all())
            port = _port_text(errors, row)
            yield Finding(
                Severity.NOTE if harmless else Severity.WARNING,
                port,
                f"{_place(subject.fabric, errors, row)}: {_counts(errors, row, columns)}",
                int(errors.amount[row, columns].sum()),
            )
    for column, name in enumerate(errors.names):
        full = [_port_text(errors, row) for row in np.flatnonzero(errors.saturated[:, column]).tolist()]
        if full:
            text = f"{some(full)}: the counter of {WORDS[name]} is full and counts no more: reset it"
            yield Finding(Severity.NOTE, full[0], text, len(full))


def _port_text(errors: PortErrors, row: int) -> str:
    return port_name(errors.device[row], int(errors.grown.port[row]))


def _place(fabric: Fabric, errors: PortErrors, row: int) -> str:
    """Return a port and where its cable leads."""
    link, port = int(errors.link[row]), _port_text(errors, row)
    if link < 0:
        return port
    return f"{port} (cable to {end_name(fabric, link, 'target')})"


def _counts(errors: PortErrors, row: int, columns: list[int]) -> str:
    """Return the growth of counters of a port, with the limits and the time since when they grew."""
    counts = []
    for column in columns:
        least = "at least " if errors.at_least[row, column] else ""
        count, limit = int(errors.amount[row, column]), float(errors.limit[row, column])
        counts.append(f"{least}{count:,} {WORDS[errors.names[column]]} (limit {limit:,.0f})")
    return f"{', '.join(counts)} since {moment_text(errors.grown.start)}"
