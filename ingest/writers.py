"""Generated data as files: InfiniBand fat trees by formula, and what any generator makes.

They are for tests, benchmarks and examples without a cluster; the parsers of real files read them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.infiniband import LANE_BYTES, WIDTHS, Device, Port, link_rate
from ingest.formats.profiles.edges import csv_text
from ingest.generate.checks import whole
from ingest.options import Options
from ingest.reading.source import SourceFile
from registry.errors import InvalidValue
from registry.exports import catalog as exports
from registry.model import NO_ROUTE, Fabric, Floats, ForwardingTables, Profile

SWITCH_GUID = 0x0002C90000100000
HOST_GUID = 0x0002C90000F00000
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def fat_tree(
    leaves: int,
    hosts_per_leaf: int,
    spines: int,
    *,
    cables: int = 1,
    width: int = 4,
    speed: str = "HDR",
    lmc: int = 0,
) -> list[Device]:
    """Return a two-level fat tree: every leaf switch has `cables` cables to every spine switch.

    The devices are the switches, then the adapters of the hosts ``node0001`` and so on.

    Args:
        leaves, hosts_per_leaf, spines: Number of leaf switches, of hosts per leaf, and of spine switches.
        cables: Number of cables between a leaf and a spine switch.
        lmc: LID mask control of the adapters: each has ``2 ** lmc`` LIDs.
    """
    made = _Wiring(width, speed, lmc)
    spine = [made.switch(f"spine{index + 1:02d}") for index in range(spines)]
    above = [switch for switch in spine for _ in range(cables)]
    for index in range(leaves):
        made.leaf(f"leaf{index + 1:02d}", hosts_per_leaf, above)
    return made.finish()


def director_tree(
    edges: int = 128,
    hosts_per_edge: int = 18,
    directors: int = 4,
    *,
    line_chips: int = 36,
    spine_chips: int = 18,
    width: int = 4,
    speed: str = "HDR",
) -> list[Device]:
    """Return edge switches under director-class switches, each itself a two-level tree of switch chips.

    The defaults are 2,304 hosts on 128 edge switches of 36 ports below 4 directors of 648 ports: 344
    switch chips in all. An edge switch has as many cables up as hosts, to one director after the other.

    Args:
        edges, hosts_per_edge, directors: Number of edge switches, of hosts per edge switch, and of directors.
        line_chips, spine_chips: Number of line chips and of spine chips per director.
    """
    whole("infiniband.directors", directors, 1)
    whole("infiniband.line_chips", line_chips, 1)
    made = _Wiring(width, speed, 0)
    line: list[Device] = []
    for director in range(directors):
        name = f"MF0;core{director + 1}:CS8500"
        spine = [made.switch(f"{name}/S{index + 1}/U1") for index in range(spine_chips)]
        line += [made.switch(f"{name}/L{index + 1}/U1") for index in range(line_chips)]
        for chip in line[-line_chips:]:
            for above in spine:
                made.cable(chip, above)
    for index in range(edges):
        uplinks = range(index * hosts_per_edge, (index + 1) * hosts_per_edge)
        chips = [line[k % directors * line_chips + k // directors % line_chips] for k in uplinks]
        made.leaf(f"MF0;edge{index + 1:03d}:QM8700/U1", hosts_per_edge, chips)
    return made.finish()


def three_level_tree(
    pods: int = 50, leaves: int = 20, hosts: int = 20, *, width: int = 4, speed: str = "HDR"
) -> list[Device]:
    """Return a three-level tree of pods below a core, as `three_level`, with GUIDs and ports.

    The defaults are 20,000 hosts on 2,400 switches of 40 ports (the core's have 50), with 60,000 cables.
    """
    made = _Wiring(width, speed, 0)
    core = [made.switch(f"core{index + 1:03d}") for index in range(leaves * leaves)]
    for pod in range(pods):
        upper = [made.switch(f"pod{pod + 1:02d}-upper{index + 1:02d}") for index in range(leaves)]
        for index in range(leaves):
            made.leaf(f"pod{pod + 1:02d}-leaf{index + 1:02d}", hosts, upper)
        for index, below in enumerate(upper):
            for above in core[index * leaves : (index + 1) * leaves]:
                made.cable(below, above)
    return made.finish()


def forwarding_tables(devices: Sequence[Device]) -> ForwardingTables:
    """Return tables of shortest paths, with equal ports used in turn by destination LID."""
    switches = sorted((device for device in devices if device.kind == "S"), key=lambda device: device.guid)
    index = {device.guid: at for at, device in enumerate(switches)}
    owner, home, exit_port = _lids(devices, index)
    known = np.flatnonzero(owner)
    ends = [
        (index[device.guid], index[port.peer])
        for device in switches
        for port in device.ports.values()
        if port.peer in index
    ]
    graph = csr_array((np.ones(len(ends)), np.array(ends, int).reshape(-1, 2).T), shape=(len(index),) * 2)
    distance = shortest_path(graph, unweighted=True)
    ports = np.full((len(switches), len(owner)), NO_ROUTE, np.uint8)
    for row, device in enumerate(switches):
        cables = [(port.number, index[port.peer]) for port in device.ports.values() if port.peer in index]
        if cables:
            number, peer = np.array(sorted(cables)).T
            nearer = distance[peer] == distance[row] - 1  # by cable and switch
            choices = nearer.sum(axis=0)[home[known]]
            first = np.argsort(~nearer, axis=0, kind="stable")  # cables to nearer switches first
            chosen = first[known % np.maximum(choices, 1), home[known]]
            ports[row, known] = np.where(choices > 0, number[chosen], NO_ROUTE)
        here = known[home[known] == row]
        ports[row, here] = exit_port[here]
    guids = np.array([device.guid for device in switches], np.uint64)
    return ForwardingTables(switch_guid=guids, ports=ports, lid_guid=owner)


def ibnetdiscover_text(devices: Sequence[Device], *, width: int = 4, speed: str = "HDR") -> str:
    """Return the scan of the devices, every cable at the given width and speed."""
    by_guid = {device.guid: device for device in devices}
    first = next(device for device in devices if device.kind == "H")
    port = min(first.ports.values(), key=lambda port: port.number)
    parts = [
        f"#\n# Topology file: generated on {_WHEN:%a %b %d %H:%M:%S %Y}\n#\n"
        f"# Initiated from node {first.guid:016x} port {port.guid:016x}\n"
    ]
    for device in devices:
        parts.append(_head(device))
        for number in sorted(device.ports):
            port = device.ports[number]
            parts.append(_port_line(device, port, by_guid[port.peer], f"{width}x{speed}"))
    return "".join(parts)


def opensm_lfts_text(devices: Sequence[Device], tables: ForwardingTables) -> str:
    """Return the content of ``opensm-lfts.dump``."""
    return "".join(opensm_lfts_blocks(devices, tables))


def _lids(devices: Sequence[Device], index: dict[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by LID: the GUID of the port that has it, and the row and port of the switch of that port."""
    entries: list[tuple[int, int, int, int]] = []
    for device in devices:
        if device.kind == "S":
            entries.append((device.lid, device.guid, index[device.guid], 0))
            continue
        for port in device.ports.values():
            at = port.guid, index[port.peer], port.peer_port
            entries.extend((port.lid + path, *at) for path in range(2**port.lmc))
    size = max(lid for lid, *_ in entries) + 1
    owner, home, exit_port = np.zeros(size, np.uint64), np.zeros(size, int), np.zeros(size, np.uint8)
    for lid, guid, row, number in entries:
        owner[lid], home[lid], exit_port[lid] = guid, row, number
    return owner, home, exit_port


def opensm_lfts_blocks(devices: Sequence[Device], tables: ForwardingTables) -> Iterator[str]:
    """Yield the content of ``opensm-lfts.dump`` by switch, since that of a large fabric has gigabytes."""
    described = {device.guid: device for device in devices if device.kind == "S"}
    owners = {device.guid: ("Switch", device.description) for device in described.values()}
    for device in devices:
        owners |= {
            port.guid: ("Channel Adapter", device.description) for port in device.ports.values() if port.guid
        }
    beginning = [f"0x{lid:04x} " for lid in range(len(tables.lid_guid))]
    number = [f"{port:03d}" for port in range(256)]
    ending = [
        " # {0} portguid 0x{2:016x}: '{1}'\n".format(*owners[int(guid)], int(guid)) if guid else ""
        for guid in tables.lid_guid
    ]
    highest = len(ending) - 1
    for guid, row in zip(tables.switch_guid.tolist(), tables.ports, strict=True):
        switch = described[guid]
        where = f"switch Lid {switch.lid} guid 0x{guid:016x} ('{switch.description}')"
        lines = [
            beginning[lid] + number[port] + ending[lid]
            for lid, port in enumerate(row.tolist())
            if port != NO_ROUTE
        ]
        yield f"Unicast lids [0-{highest}] of {where}:\n{''.join(lines)}{highest} lids dumped\n"


def _head(device: Device) -> str:
    kind, word = ("switch", "Switch") if device.kind == "S" else ("ca", "Ca")
    ports = max(device.ports, default=1)
    identity = (
        f"\nvendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x{device.system_guid:x}\n{kind}guid=0x{device.guid:x}"
    )
    name = f'{word}\t{ports} "{device.kind}-{device.guid:016x}"\t\t# "{device.description}"'
    if device.kind == "S":
        return f"{identity}({device.guid:x})\n{name} enhanced port 0 lid {device.lid} lmc 0\n"
    return f"{identity}\n{name}\n"


def _port_line(device: Device, port: Port, peer: Device, rate: str) -> str:
    end = f'"{peer.kind}-{peer.guid:016x}"[{port.peer_port}]'
    far = peer.ports[port.peer_port]
    there = f'"{peer.description}" lid {peer.lid if peer.kind == "S" else far.lid} {rate}\n'
    if peer.kind == "H":
        end += f"({far.guid:x}) "
    if device.kind == "S":
        return f"[{port.number}]\t{end}\t\t# {there}"
    return f"[{port.number}]({port.guid:x}) \t{end}\t\t# lid {port.lid} lmc {port.lmc} {there}"


class _Wiring:
    """Devices and the cables between them; every cable uses the next port of both devices."""

    def __init__(self, width: int, speed: str, lmc: int) -> None:
        if width not in WIDTHS or speed not in LANE_BYTES:
            raise InvalidValue("infiniband.width", f"there is no InfiniBand cable {width}x{speed}")
        self._rate = link_rate(width, speed)
        self._lmc = whole("infiniband.lmc", lmc, 0, 7)
        self._switches: list[Device] = []
        self._hosts: list[Device] = []

    def switch(self, description: str) -> Device:
        guid = SWITCH_GUID + 0x100 * (len(self._switches) + 1)
        self._switches.append(_device("S", guid, description))
        return self._switches[-1]

    def host(self) -> Device:
        number = len(self._hosts) + 1
        self._hosts.append(_device("H", HOST_GUID + 0x100 * number, f"node{number:04d} mlx5_0"))
        return self._hosts[-1]

    def leaf(self, description: str, hosts: int, above: Sequence[Device]) -> None:
        """Add a switch with hosts and a cable to each of the switches above."""
        leaf = self.switch(description)
        for _ in range(hosts):
            self.cable(leaf, self.host())
        for switch in above:
            self.cable(leaf, switch)

    def cable(self, one: Device, other: Device) -> None:
        ports = len(one.ports) + 1, len(other.ports) + 1
        for device, peer, number, far in ((one, other, *ports), (other, one, *ports[::-1])):
            guid = device.guid + number if device.kind == "H" else 0
            device.ports[number] = Port(
                number=number, peer=peer.guid, peer_port=far, rate=self._rate, guid=guid
            )

    def finish(self) -> list[Device]:
        """Return all devices with LIDs: the switches' first, the adapters' aligned to their LMC."""
        whole("infiniband.hosts", len(self._hosts), 1)
        lid = 1
        for device in self._switches:
            device.lid = lid
            lid += 1
        step = 2**self._lmc
        lid = -(-lid // step) * step
        for device in self._hosts:
            for port in device.ports.values():
                port.lid, port.lmc = lid, self._lmc
                lid += step
        return [*self._switches, *self._hosts]


def _device(kind: str, guid: int, description: str) -> Device:
    return Device(kind=kind, guid=guid, system_guid=guid, description=description)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_fabric(made: Any) -> Fabric:
    """Return the fabric that a generator made; from InfiniBand devices it is that of their scan."""
    if isinstance(made, Fabric):
        return made
    scan = SourceFile(path="generated", data=ibnetdiscover_text(made).encode(), modified_at=_EPOCH)
    fabric = IBNETDISCOVER.parse([scan], Options()).fabric
    assert fabric is not None
    return fabric


def write(made: Any, format: str | None = None) -> bytes:
    """Return the content of a file.

    Args:
        made (Fabric, Profile, float64[ranks] or list of Device): Result of a generator.
        format: One of `formats_of`; default: the first of them.

    Raises:
        InvalidValue: The format cannot contain such a result.
    """
    known = formats_of(made)
    name = format or next(iter(known))
    if name not in known:
        raise InvalidValue("format", f"is {name!r}, must be one of {', '.join(known)}")
    content = known[name](made)
    return content.encode() if isinstance(content, str) else content


def formats_of(made: Any) -> Mapping[str, Callable[[Any], str | bytes]]:
    """Return the names and writers of the formats of a result, the default first."""
    if isinstance(made, Profile):
        return {"edge-csv": csv_text, "npz": npz_bytes}
    if isinstance(made, np.ndarray):
        return {"csv": weights_csv}
    fabrics = {name: partial(_fabric_text, name) for name in exports.FORMATS.names}
    return fabrics if isinstance(made, Fabric) else {"ibnetdiscover": ibnetdiscover_text, **fabrics}


def _fabric_text(format: str, made: Any) -> str:
    return exports.write(format, as_fabric(made))


def npz_bytes(profile: Profile) -> bytes:
    """Return a NumPy archive with ``src``, ``dst``, ``bytes``, ``messages`` and ``ranks``."""
    out = io.BytesIO()
    np.savez_compressed(
        out,
        src=profile.sender,
        dst=profile.partner,
        bytes=profile.bytes,
        messages=profile.messages,
        ranks=np.int64(profile.ranks),
    )
    return out.getvalue()


def weights_csv(weights: Floats) -> str:
    """Return rows of a rank and its computation (float64[ranks]), for ``almanac reconfigure --weights``."""
    rows = (f"{rank},{weight!r}\n" for rank, weight in enumerate(weights.tolist()))
    return "rank,weight\n" + "".join(rows)
