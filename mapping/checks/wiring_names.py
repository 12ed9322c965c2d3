"""Devices and ports of a plan matched with those of a fabric, by one tolerant rule.

A device of the plan fits the devices of the fabric in the first of these spellings that fits any: as written;
without upper case, the wrapping ``MF0;NAME:MODEL/U1`` of managed switches and the kind of blanks and dashes;
without a domain, a rail (``-ib0``, ``-mlx5_1``) or the label of its own port, on one of the two sides. If it
fits several devices, it is ambiguous. The chips of a director (``MF0;NAME:MODEL/L16/U2``) are one device.

A label that is not understood fits every port of its device. All spellings:
docs/reference/formats/routes-and-counters.md.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from registry.model import HOST, NO_PORT, Fabric, is_made_up
from registry.model.fabric import port_name
from registry.model.host_names import without_domain

_MANAGED = re.compile(
    r"MF0;(?P<name>[^:;]+):(?P<model>[^:/]+)(?:/(?P<slot>[LS])(?P<board>\d{1,3}))?/U(?P<unit>\d{1,3})",
    re.IGNORECASE,
)
_RAIL = re.compile(r"(.*[^.-])[.-]+((?:(?:ib|hca|rail)-?|(?:mlx|hfi)\d-)\d{1,3}|ibp\d+s\d+(?:f\d+)?)")
_NUMBER = re.compile(r"(?:(?:ib\s*)?port\s*|p\s*|(?:ib\s*)?1/)?(\d{1,3})", re.IGNORECASE)
_BOARD = re.compile(
    r"(?:blade\s*|l)(\d{1,3})[\s_/]+(?:port\s*|u)?(\d{1,3})\s*/\s*(?:port\s*|p)?(\d{1,3})", re.IGNORECASE
)
_ADAPTER = re.compile(r"(.+?)(?:\s*[/:]\s*(?:port\s*|p)?(\d{1,3})|\s+(?:port\s*|p)(\d{1,3}))?", re.IGNORECASE)
_NUMBERED = re.compile(r"(hca|ib|rail|)-?(\d{1,3})|((?:mlx|hfi|qib|mthca)\d?)-(\d{1,3})")
_FROM_ONE = ("hca", "")
"""Adapters that are numbered from 1; others are from 0."""


class End(NamedTuple):
    """One end of a cable."""

    device: str
    """Name of a host, a switch or a whole director."""
    part: str
    """Adapter of a host, board of a director (``L16/U2``); empty at other switches and if unknown."""
    port: int
    """`NO_PORT` if unknown."""

    def __str__(self) -> str:
        return port_name(f"{self.device} {self.part}".rstrip(), self.port)


@dataclass(slots=True, kw_only=True)
class Device:
    """A host, a switch or a director of the fabric."""

    name: str
    """Short name, or the fabric's name if several devices have the short one."""
    host: bool
    nameless: bool
    """True for a host; true if a parser made its name up."""
    boards: set[str] = field(default_factory=set)
    """Boards of a director, chips of a switch with several; an empty text for other devices."""
    adapters: dict[str, list[int]] = field(default_factory=dict)
    """Ports in use of each adapter of a host."""
    indistinct: bool = False
    """True if several adapters have one name."""


class Match(NamedTuple):
    """Indices of the devices that fit a name of the plan; the board and the rail that the name contains."""

    devices: tuple[int, ...]
    board: str = ""
    rail: str = ""


class FabricNames:
    """The names of a fabric's devices, adapters and ports, for looking up those of a plan.

    Attributes:
        device_of: Index in `devices` of each vertex.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.devices: list[Device] = []
        self.device_of: list[int] = []
        self._board_of: list[str] = []
        self._adapter_names: list[str] = []
        self._exact: dict[str, list[int]] = {}
        self._plain: dict[str, list[int]] = {}
        self._loose: dict[str, list[int]] = {}
        self._matches: dict[tuple[str, str], Match] = {}
        self._add_devices(fabric)
        self._add_adapters(fabric)

    def find(self, name: str, label: str) -> Match:
        """Return the devices that fit a name of the plan; `label` is the cable's port there."""
        key = name, label
        if key not in self._matches:
            self._matches[key] = self._find(name, label)
        return self._matches[key]

    def planned_end(self, match: Match, name: str, label: str) -> End:
        """Return the end that a label means at the only device of a match; as written if there is none."""
        if not match.devices:
            return End(name, _without_prefix(label, name), NO_PORT)
        device = self.devices[match.devices[0]]
        label = _without_prefix(_without_prefix(label.strip(), name), device.name)
        if device.host:
            return _host_end(device, label, match.rail)
        board, number = _BOARD.fullmatch(label), _NUMBER.fullmatch(label)
        known = match.board if match.board in device.boards or "/" in match.board else ""
        if board is not None and "" not in device.boards:
            return End(device.name, _board_name("L", board[1], board[2]), int(board[3]))
        if number is not None and (known or len(device.boards) == 1):
            return End(device.name, known or next(iter(device.boards)), int(number[1]))
        return End(device.name, known, NO_PORT)

    def present_end(self, vertex: int, adapter: int, port: int) -> End:
        """Return an end of a cable of the fabric."""
        part = self._board_of[vertex] if adapter < 0 else self._adapter_names[adapter]
        return End(self.devices[self.device_of[vertex]].name, part, port)

    def _find(self, name: str, label: str) -> Match:
        """Look a name up in each spelling."""
        managed = _MANAGED.fullmatch(name.strip())
        board = "" if managed is None else _chip(managed)
        key, ending = _plain(name), _plain(label)
        for index, spelling in ((self._exact, name), (self._plain, key)):
            if spelling in index:
                return Match(tuple(index[spelling]), board)
        variants = _variants(key)
        if ending and key.endswith(ending) and key != ending:
            variants.setdefault(key.removesuffix(ending).rstrip(" -.:/"), "")
        for spelling, rail in variants.items():
            if spelling in self._plain:
                return Match(tuple(self._plain[spelling]), board, rail)
        return Match(tuple(self._loose.get(key, ())), board)

    def _add_devices(self, fabric: Fabric) -> None:
        """Make a device of each vertex, and one of all chips of a director."""
        managed = [_MANAGED.fullmatch(name) for name in fabric.names]
        chips = Counter((one["name"], one["model"]) for one in managed if one is not None)
        models = Counter(name for name, _ in chips)
        models.update(fabric.names)
        index: dict[tuple[str, str], int] = {}
        for vertex, (name, one) in enumerate(zip(fabric.names, managed, strict=True)):
            key = (name, "") if one is None else (one["name"], one["model"])
            if key not in index:
                index[key] = len(self.devices)
                short = name if one is None else key[0] if models[key[0]] == 1 else ":".join(key)
                host = int(fabric.kind[vertex]) == HOST
                self.devices.append(Device(name=short, host=host, nameless=is_made_up(name)))
            device = index[key]
            board = "" if one is None or (chips[key] == 1 and not one["slot"]) else _chip(one)
            self.device_of.append(device)
            self._board_of.append(board)
            self.devices[device].boards.add(board)
            for text in {name, self.devices[device].name}:
                _note(self._exact, text, device)
                _note(self._plain, _plain(text), device)
                for variant in _variants(_plain(text)):
                    _note(self._loose, variant, device)

    def _add_adapters(self, fabric: Fabric) -> None:
        """Add the adapters of each host with their ports."""
        links, used = fabric.links, dict[int, set[int]]()
        for adapter, port in zip(links.source_adapter.tolist(), links.source_port.tolist(), strict=True):
            if adapter >= 0:
                used.setdefault(adapter, set()).add(port)
        for adapter, host in enumerate(fabric.adapters.host.tolist()):
            full, device = fabric.adapters.names[adapter], self.devices[self.device_of[host]]
            name = full.removeprefix(fabric.names[host]).strip() or full
            self._adapter_names.append(name)
            device.indistinct |= name in device.adapters
            device.adapters[name] = sorted(used.get(adapter, ()))


def _note(index: dict[str, list[int]], text: str, device: int) -> None:
    held = index.setdefault(text, [])
    if device not in held:
        held.append(device)


def _board_name(slot: str, board: str, unit: str) -> str:
    return f"{slot.upper()}{int(board):02d}/U{int(unit)}"


def _chip(managed: re.Match[str]) -> str:
    """Return the board of a managed switch's chip, or only its chip."""
    if managed["slot"]:
        return _board_name(managed["slot"], managed["board"], managed["unit"])
    return f"U{int(managed['unit'])}"


def _plain(name: str) -> str:
    """Return a name without upper case, the wrapping of managed switches and kinds of blanks and dashes."""
    managed = _MANAGED.fullmatch(name.strip())
    text = name if managed is None else managed["name"]
    return re.sub(r"[\s_-]+", "-", text.strip()).casefold()


def _variants(plain: str) -> dict[str, str]:
    """Return a plain name without its rail, its domain or both, each with the rail that was left out."""
    found = {plain: ""}
    for _ in range(2):
        for text, rail in list(found.items()):
            railed = _RAIL.fullmatch(text)
            if railed is not None:
                found.setdefault(railed[1], railed[2])
            found.setdefault(without_domain(text), rail)
    del found[plain]
    return found


def _without_prefix(label: str, device: str) -> str:
    """Return a label without the name of its device, as in ``node01 mlx5_0``."""
    rest = label[len(device) :]
    prefixed = label.casefold().startswith(device.casefold()) and rest[:1] in tuple(" -_.:/")
    return rest.lstrip(" -_.:/") if rest and prefixed else label


def _host_end(host: Device, label: str, rail: str) -> End:
    """Return the end that a label means at a host."""
    vague = End(host.name, "", NO_PORT)
    if host.indistinct:
        return vague
    number, named = _NUMBER.fullmatch(label), _ADAPTER.fullmatch(label)
    if number is not None and "/" not in label:
        if len(host.adapters) <= 1:
            return End(host.name, next(iter(host.adapters), ""), int(number[1]))
        part = _adapter(host, rail) if rail else ""
        return End(host.name, part, int(number[1])) if part else vague
    part = "" if named is None else _adapter(host, named[1])
    if named is None or not part:
        return vague
    ports = host.adapters.get(part)
    only = NO_PORT if ports is None or len(ports) > 1 else ports[0] if ports else 1
    return End(host.name, part, int(named[2] or named[3] or only))


def _adapter(host: Device, word: str) -> str:
    """Return the adapter that a word means: the word itself if the fabric lacks it, empty if unknown."""
    wanted, index = _adapter_key(word)
    keys = {name: _adapter_key(name) for name in host.adapters}
    for name, (key, _) in keys.items():
        if key == wanted:
            return name
    if any(re.sub(r"\d+", "0", key) == re.sub(r"\d+", "0", wanted) for key, _ in keys.values()):
        return word
    same = [name for name, (_, number) in keys.items() if number is not None and number == index]
    return same[0] if len(same) == 1 else ""


def _adapter_key(word: str) -> tuple[str, int | None]:
    """Return an adapter's name in one spelling, and its number from 0 on if it has one."""
    text = re.sub(r"[\s_-]+", "-", word.strip()).casefold()
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return text, None
    family, number = (match[3], int(match[4])) if match[3] else (match[1], int(match[2]))
    return f"{family}-{number}", number - (family in _FROM_ONE)
