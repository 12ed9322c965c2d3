"""A host's layout from hwloc's XML, the output of ``lstopo --of xml``.

Cores, NUMA nodes, their latencies and network devices are read; caches, GPUs and the rest are ignored. Tested
with hwloc itself: versions 1 (no version in the file), 2 and 3 of the XML. They differ in these points:

* Distances are in the object above (1) or in ``distances2`` elements (2, 3).
* Types of devices are consecutive numbers (1, 2: network 2, OpenFabrics 3) or bits (3: 16, 32).
* The host's name is an ``info`` of the first object (1, 2) or of the topology (3).

Objects are related by their sets of hardware threads (``cpuset``), not by their position in the tree; a
device belongs to the closest object above it with such a set. Entities are rejected, and no other file is
opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Floats
from registry.model.host_layout import HostLayout

FORMAT = "hwloc-xml"
LOCAL, REMOTE = 10.0, 20.0
"""Latencies if the file has none: the defaults of ACPI's table."""
MAX_DEPTH = 200
MEANS_LATENCY = 4
"""Bit of ``kind`` of a ``distances2`` element."""
NETWORK, OPENFABRICS = {1: 2, 2: 2, 3: 16}, {1: 3, 2: 3, 3: 32}
"""``osdev_type`` by version of the XML; bits in version 3."""
FABRIC_CLASSES = ("0207", "0208")
"""PCI classes InfiniBand and fabric: adapters, even if no driver shows a device."""


class _Node(NamedTuple):
    """A NUMA node: its numbers and its hardware threads as bits."""

    os_index: int
    gp_index: int
    cpus: int


class _Nic(NamedTuple):
    name: str
    fabric: bool
    guid: int
    cpus: int


@dataclass(slots=True, kw_only=True, eq=False)
class _Element:
    """An element of the file, with the threads of the closest object (itself or above; -1: all)."""

    tag: str
    attributes: dict[str, str]
    line: int
    cpus: int
    children: list[_Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[_Element]:
        """Yield this element and all below it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def info(self, name: str) -> str:
        """Return the value of a direct ``info`` child; empty if there is none."""
        for child in self.children:
            if child.tag == "info" and child.attributes.get("name") == name:
                return child.attributes.get("value", "")
        return ""


def recognise(head: str, path: str) -> bool:
    """Return True if the first element is hwloc's ``topology``."""
    begin = head.lstrip()
    return begin.startswith(("<?xml", "<!DOCTYPE topology", "<topology")) and "<topology" in begin[:2048]


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the layout of one host.

    Raises
    ------
    InputError
        As `read_layout`.
    """
    (file,) = files
    return Parsed(layouts=(read_layout(file),))


def read_layout(file: SourceFile) -> HostLayout:
    """Return the layout of the host in the file.

    Raises
    ------
    InputError
        Invalid XML, not hwloc's XML, an unknown version, entities, no cores, or an invalid number.
    """
    root = _tree(file)
    version = _version(root, file)
    machine = next((e for e in root.walk() if e.tag == "object"), None)
    if machine is None:
        raise InputError("the topology contains no object", path=file.path, line=root.line)
    objects = [element for element in root.walk() if element.tag == "object"]
    allowed = _cpus(machine, "allowed_cpuset", file) if "allowed_cpuset" in machine.attributes else -1
    cores = [cpus for cpus in _cores(objects) if cpus & allowed]
    if not cores:
        raise InputError("the topology contains no core", path=file.path, line=machine.line)
    nodes = [
        _Node(_number(e, "os_index", file), _number(e, "gp_index", file, -1), e.cpus & machine.cpus)
        for e in objects
        if e.attributes.get("type") == "NUMANode"
    ]
    domain_of_core, used = _domains(cores, nodes, file)
    nics = list(_nics(machine, version, file))
    try:
        return HostLayout(
            core_domain=np.array(domain_of_core),
            core_cpu=np.array([_lowest(cpus & allowed) for cpus in cores]),
            domain_node=np.array([nodes[n].os_index for n in used] if nodes else [-1]),
            distance=_distance(root, machine, nodes, used, file),
            nic_name=tuple(nic.name for nic in nics),
            nic_fabric=np.array([nic.fabric for nic in nics], np.bool_),
            nic_guid=np.array([nic.guid for nic in nics], np.uint64),
            nic_near=_near(nics, [nodes[n].cpus for n in used] or [-1]),
            name=machine.info("HostName") or root.info("HostName"),
            source=f"hwloc {machine.info('hwlocVersion') or root.info('hwlocVersion')}".rstrip(),
        )
    except InvalidValue as error:
        raise InputError(error.reason, path=file.path) from error


def _tree(file: SourceFile) -> _Element:
    """Return the elements of the file."""
    parser = expat.ParserCreate()
    above = _Element(tag="", attributes={}, line=0, cpus=-1)
    stack = [above]

    def begin(tag: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if len(stack) > MAX_DEPTH:
            raise InputError("elements are nested too deep", path=file.path, line=line)
        element = _Element(tag=tag, attributes=attributes, line=line, cpus=stack[-1].cpus)
        if "cpuset" in attributes:
            element.cpus = _cpus(element, "cpuset", file)
        stack[-1].children.append(element)
        stack.append(element)

    def refuse(name: str, *others: object) -> None:
        reason = f"the file declares the entity {name!r}: entities are not allowed"
        raise InputError(reason, path=file.path, line=parser.CurrentLineNumber)

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.CharacterDataHandler = lambda data: stack[-1].text.append(data)
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(file.text(), True)
    except expat.ExpatError as error:
        raise InputError(expat.ErrorString(error.code), path=file.path, line=error.lineno) from error
    return above.children[0]


def _version(root: _Element, file: SourceFile) -> int:
    text = root.attributes.get("version", "1")
    if root.tag != "topology":
        raise InputError(f"expected hwloc's XML, found <{root.tag}>", path=file.path, line=root.line)
    major = text.split(".")[0]
    if major not in ("1", "2", "3"):
        reason = "unknown version of hwloc's XML: versions 1, 2 and 3 are supported"
        raise InputError(reason, path=file.path, line=root.line, text=text)
    return int(major)


def _cores(objects: list[_Element]) -> list[int]:
    """Return the threads of each core; without cores, each thread is a core."""
    for kind in ("Core", "PU"):
        found = [e.cpus for e in objects if e.attributes.get("type") == kind and "cpuset" in e.attributes]
        if found:
            return found
    return []


def _domains(cores: list[int], nodes: list[_Node], file: SourceFile) -> tuple[list[int], list[int]]:
    """Return the domain of each core, and the node of each domain (the smallest node around a core)."""
    if not nodes:
        return [0] * len(cores), []
    of_core = []
    for number, cpus in enumerate(cores):
        around = [n for n, node in enumerate(nodes) if node.cpus & cpus == cpus]
        if not around:
            raise InputError(f"core {number} (logical) belongs to no NUMA node", path=file.path)
        of_core.append(min(around, key=lambda n: (nodes[n].cpus.bit_count(), n)))
    used = sorted(set(of_core))
    return [used.index(n) for n in of_core], used


def _distance(
    root: _Element, machine: _Element, nodes: list[_Node], used: list[int], file: SourceFile
) -> Floats:
    """Return the latencies between the used nodes (float64[d, d])."""
    for element in root.walk():
        if element.tag == "distances2" and element.attributes.get("type") == "NUMANode":
            if _number(element, "kind", file, 0) & MEANS_LATENCY:
                return _distances2(element, nodes, used, file)
        elif element.tag == "distances" and _is_of_nodes(element, machine, len(nodes), file):
            base = float(_decimal(element, "latency_base", file))
            values = [_decimal(e, "value", file) for e in element.children if e.tag == "latency"]
            return base * _square(element, values, len(nodes), file)[np.ix_(used, used)]
    count = max(len(used), 1)
    return np.where(np.eye(count, dtype=bool), LOCAL, REMOTE)


def _distances2(element: _Element, nodes: list[_Node], used: list[int], file: SourceFile) -> Floats:
    """Return the distances of a ``distances2`` element."""
    by_os = element.attributes.get("indexing", "os") == "os"
    place = {}
    for at, text in enumerate(_words(element, "indexes")):
        if not text.isascii() or not text.isdigit():
            raise InputError("an index is not a number", path=file.path, line=element.line, text=text)
        place[int(text)] = at
    values = []
    for text in _words(element, "u64values"):
        if not text.isascii() or not text.isdigit():
            raise InputError("a distance is not a number", path=file.path, line=element.line, text=text)
        values.append(float(text))
    keys = [nodes[n].os_index if by_os else nodes[n].gp_index for n in used]
    if any(key not in place for key in keys):
        raise InputError("the distances lack a NUMA node", path=file.path, line=element.line)
    rows = [place[key] for key in keys]
    return _square(element, values, len(place), file)[np.ix_(rows, rows)]


def _is_of_nodes(element: _Element, machine: _Element, nodes: int, file: SourceFile) -> bool:
    """Return True if distances of version 1 are those of all NUMA nodes.

    They concern objects a number of levels below. hwloc 2 writing version 1 may count one group too many, so
    nodes on the way there are accepted, too.
    """
    at, depth = machine, min(_number(element, "relative_depth", file), MAX_DEPTH)
    if element not in machine.children or _number(element, "nbobjs", file) != nodes:
        return False
    for _ in range(depth):
        at = next((child for child in at.children if child.tag == "object"), at)
        if at.attributes.get("type") == "NUMANode":
            return True
    return False


def _square(element: _Element, values: list[float], side: int, file: SourceFile) -> Floats:
    if len(values) != side * side:
        reason = f"{len(values)} distances for {side} NUMA nodes"
        raise InputError(reason, path=file.path, line=element.line)
    return np.array(values, np.float64).reshape(side, side)


def _nics(machine: _Element, version: int, file: SourceFile) -> Iterator[_Nic]:
    """Yield the network devices, and the fabric adapters without one."""
    for element in machine.walk():
        kind = element.attributes.get("type")
        if kind == "OSDev":
            fabric, network = _is_device(element, version, file)
            if fabric or network:
                guid = _guid(element.info("NodeGUID"))
                yield _Nic(element.attributes.get("name", ""), fabric, guid, element.cpus)
        elif kind == "PCIDev" and element.attributes.get("pci_type", "")[:4] in FABRIC_CLASSES:
            devices = [e for e in element.walk() if e.attributes.get("type") == "OSDev"]
            if not any(any(_is_device(device, version, file)) for device in devices):
                yield _Nic(element.attributes.get("pci_busid", ""), True, 0, element.cpus)


def _is_device(element: _Element, version: int, file: SourceFile) -> tuple[bool, bool]:
    """Return True if a device is of OpenFabrics, and True if it is an ordinary network device."""
    kind, fabric, network = _number(element, "osdev_type", file), OPENFABRICS[version], NETWORK[version]
    if version < 3:
        return kind == fabric, kind == network
    return bool(kind & fabric), bool(kind & network)


def _near(nics: list[_Nic], cpus_of_domain: list[int]) -> np.ndarray:
    """Return the domains with threads of the object that an adapter belongs to (bool[n, d])."""
    near = [[bool(nic.cpus & cpus) for cpus in cpus_of_domain] for nic in nics]
    return np.array(near, np.bool_).reshape(len(nics), len(cpus_of_domain))


def _cpus(element: _Element, name: str, file: SourceFile) -> int:
    """Return a set of threads as bits: words of 32, the highest first; ``0xf...f`` first means all above."""
    value = 0
    for place, word in enumerate(element.attributes[name].split(",")):
        if place == 0 and word == "0xf...f":
            value = -1
            continue
        try:
            bits = int(word, 16) if word else 0
        except ValueError:
            bits = -1
        if not 0 <= bits < 1 << 32 or place > 1 << 12:
            reason = f"{name} is not a set of hardware threads"
            raise InputError(reason, path=file.path, line=element.line, text=element.attributes[name])
        value = value << 32 | bits
    return value


def _lowest(cpus: int) -> int:
    return (cpus & -cpus).bit_length() - 1


def _number(element: _Element, name: str, file: SourceFile, default: int | None = None) -> int:
    """Return a whole number of at most nine digits."""
    text = element.attributes.get(name)
    if text is None and default is not None:
        return default
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name} is not a whole number", path=file.path, line=element.line, text=text)
    return int(text)


def _decimal(element: _Element, name: str, file: SourceFile) -> float:
    text = element.attributes.get(name, "")
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{name} is not a number", path=file.path, line=element.line, text=text) from error


def _guid(text: str) -> int:
    """Return a GUID such as ``0002:c903:0001:2345``, or 0 if the text is not one."""
    digits = text.replace(":", "")
    return int(digits, 16) if len(digits) == 16 and all(c in "0123456789abcdef" for c in digits) else 0


def _words(element: _Element, tag: str) -> list[str]:
    """Return the words of all children with a tag."""
    return [word for child in element.children if child.tag == tag for word in "".join(child.text).split()]
