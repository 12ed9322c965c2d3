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
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Floats
from registry.model.hosts import HostLayout

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
    place: Place
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

    def objects(self, kind: str) -> list[_Element]:
        """Return the objects of a type: this element, if it is one, and those below."""
        return [e for e in self.walk() if e.tag == "object" and e.attributes.get("type") == kind]

    def words(self, tag: str) -> list[str]:
        """Return the words of all children with a tag."""
        texts = ["".join(child.text) for child in self.children if child.tag == tag]
        return " ".join(texts).split()

    def number(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is a whole number of at most nine digits."""
        text = self.attributes.get(name)
        if text is None and default is not None:
            return default
        if text is None or not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self.place.error(f"{name} is not a whole number", text or "")
        return int(text)

    def threads(self, name: str) -> int:
        """Return a set of threads as bits: words of 32, the highest first; ``0xf...f`` means all above."""
        value = 0
        for index, word in enumerate(self.attributes[name].split(",")):
            if index == 0 and word == "0xf...f":
                value = -1
                continue
            try:
                bits = int(word, 16) if word else 0
            except ValueError:
                bits = -1
            if not 0 <= bits < 1 << 32 or index > 1 << 12:
                reason = f"{name} is not a set of hardware threads"
                raise self.place.error(reason, self.attributes[name])
            value = value << 32 | bits
        return value

    def info(self, name: str) -> str:
        """Return the value of a direct ``info`` child; empty if there is none."""
        for child in self.children:
            if child.tag == "info" and child.attributes.get("name") == name:
                return child.attributes.get("value", "")
        return ""


def _recognise_hwloc_xml(head: str, path: str) -> bool:
    """Return True if the first element is hwloc's ``topology``."""
    begin = head.lstrip()
    return begin.startswith(("<?xml", "<!DOCTYPE topology", "<topology")) and "<topology" in begin[:2048]


def _parse_hwloc_xml(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the layout of one host; an unknown version of the XML, entities and no cores are errors."""
    (file,) = files
    return Parsed(layouts=(read_layout(file),))


def read_layout(file: SourceFile) -> HostLayout:
    """Return the layout of the host in a file; raises `InputError` as `parse` does."""
    root = _tree(file)
    version = _version(root)
    machine = next((e for e in root.walk() if e.tag == "object"), None)
    if machine is None:
        raise root.place.error("the topology contains no object")
    allowed = machine.threads("allowed_cpuset") if "allowed_cpuset" in machine.attributes else -1
    cores = [cpus for cpus in _cores(root) if cpus & allowed]
    if not cores:
        raise machine.place.error("the topology contains no core")
    nodes = [
        _Node(e.number("os_index"), e.number("gp_index", -1), e.cpus & machine.cpus)
        for e in root.objects("NUMANode")
    ]
    domain_of_core, used = _domains(cores, nodes, file)
    nics = list(_nics(machine, version))
    try:
        return HostLayout(
            core_domain=np.array(domain_of_core),
            core_cpu=np.array([_lowest(cpus & allowed) for cpus in cores]),
            domain_node=np.array([nodes[n].os_index for n in used] if nodes else [-1]),
            distance=_distance(root, machine, nodes, used),
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
    above = _Element(tag="", attributes={}, place=Place(file.path), cpus=-1)
    stack = [above]

    def begin(tag: str, attributes: dict[str, str]) -> None:
        place = Place(file.path, parser.CurrentLineNumber)
        if len(stack) > MAX_DEPTH:
            raise place.error("elements are nested too deep")
        element = _Element(tag=tag, attributes=attributes, place=place, cpus=stack[-1].cpus)
        if "cpuset" in attributes:
            element.cpus = element.threads("cpuset")
        stack[-1].children.append(element)
        stack.append(element)

    def refuse(name: str, *others: object) -> None:
        place = Place(file.path, parser.CurrentLineNumber)
        raise place.error(f"the file declares the entity {name!r}: entities are not allowed")

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.CharacterDataHandler = lambda data: stack[-1].text.append(data)
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(file.text(), True)
    except expat.ExpatError as error:
        reason = f"invalid or truncated XML: {expat.ErrorString(error.code)}"
        raise InputError(reason, path=file.path, line=error.lineno) from error
    return above.children[0]


def _version(root: _Element) -> int:
    text = root.attributes.get("version", "1")
    if root.tag != "topology":
        raise root.place.error(f"expected hwloc's XML, found <{root.tag}>")
    major = text.split(".")[0]
    if major not in ("1", "2", "3"):
        reason = "unknown version of hwloc's XML: versions 1, 2 and 3 are supported"
        raise root.place.error(reason, text)
    return int(major)


def _cores(root: _Element) -> list[int]:
    """Return the threads of each core; without cores, each thread is a core."""
    for kind in ("Core", "PU"):
        found = [element.cpus for element in root.objects(kind) if "cpuset" in element.attributes]
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


def _distance(root: _Element, machine: _Element, nodes: list[_Node], used: list[int]) -> Floats:
    """Return the latencies between the used nodes (float64[d, d])."""
    for element in root.walk():
        if element.tag == "distances2" and element.attributes.get("type") == "NUMANode":
            if element.number("kind", 0) & MEANS_LATENCY:
                return _distances2(element, nodes, used)
        elif element.tag == "distances" and _is_of_nodes(element, machine, len(nodes)):
            base = _decimal(element, "latency_base")
            values = [_decimal(e, "value") for e in element.children if e.tag == "latency"]
            return base * _square(element, values, len(nodes))[np.ix_(used, used)]
    count = max(len(used), 1)
    return np.where(np.eye(count, dtype=bool), LOCAL, REMOTE)


def _distances2(element: _Element, nodes: list[_Node], used: list[int]) -> Floats:
    """Return the distances of a ``distances2`` element."""
    row = {int(text): at for at, text in enumerate(_digits(element, "indexes", "an index"))}
    values = [float(text) for text in _digits(element, "u64values", "a distance")]
    by_os = element.attributes.get("indexing", "os") == "os"
    keys = [nodes[n].os_index if by_os else nodes[n].gp_index for n in used]
    if any(key not in row for key in keys):
        raise element.place.error("the distances lack a NUMA node")
    rows = [row[key] for key in keys]
    return _square(element, values, len(row))[np.ix_(rows, rows)]


def _digits(element: _Element, tag: str, what: str) -> list[str]:
    """Return the numbers of all children with a tag."""
    words = element.words(tag)
    for text in words:
        if not text.isascii() or not text.isdigit():
            raise element.place.error(f"{what} is not a number", text)
    return words


def _is_of_nodes(element: _Element, machine: _Element, nodes: int) -> bool:
    """Return True if distances of version 1 are those of all NUMA nodes.

    They concern objects a number of levels below. hwloc 2 writing version 1 may count one group too many, so
    nodes on the way there are accepted, too.
    """
    at, depth = machine, min(element.number("relative_depth"), MAX_DEPTH)
    if element not in machine.children or element.number("nbobjs") != nodes:
        return False
    for _ in range(depth):
        at = next((child for child in at.children if child.tag == "object"), at)
        if at.attributes.get("type") == "NUMANode":
            return True
    return False


def _square(element: _Element, values: list[float], side: int) -> Floats:
    if len(values) != side * side:
        raise element.place.error(f"{len(values)} distances for {side} NUMA nodes")
    return np.array(values, np.float64).reshape(side, side)


def _nics(machine: _Element, version: int) -> Iterator[_Nic]:
    """Yield the network devices, and the fabric adapters without one."""
    for element in machine.walk():
        kind = element.attributes.get("type")
        if kind == "OSDev":
            fabric, network = _is_device(element, version)
            if fabric or network:
                guid = _guid(element.info("NodeGUID"))
                yield _Nic(element.attributes.get("name", ""), fabric, guid, element.cpus)
        elif kind == "PCIDev" and element.attributes.get("pci_type", "")[:4] in FABRIC_CLASSES:
            devices = element.objects("OSDev")
            if not any(any(_is_device(device, version)) for device in devices):
                yield _Nic(element.attributes.get("pci_busid", ""), True, 0, element.cpus)


def _is_device(element: _Element, version: int) -> tuple[bool, bool]:
    """Return True if a device is of OpenFabrics, and True if it is an ordinary network device."""
    kind, fabric, network = element.number("osdev_type"), OPENFABRICS[version], NETWORK[version]
    if version < 3:
        return kind == fabric, kind == network
    return bool(kind & fabric), bool(kind & network)


def _near(nics: list[_Nic], cpus_of_domain: list[int]) -> np.ndarray:
    """Return the domains with threads of the object that an adapter belongs to (bool[n, d])."""
    near = [[bool(nic.cpus & cpus) for cpus in cpus_of_domain] for nic in nics]
    return np.array(near, np.bool_).reshape(len(nics), len(cpus_of_domain))


def _lowest(cpus: int) -> int:
    return (cpus & -cpus).bit_length() - 1


def _decimal(element: _Element, name: str) -> float:
    text = element.attributes.get(name, "")
    try:
        return float(text)
    except ValueError as error:
        raise element.place.error(f"{name} is not a number", text) from error


def _guid(text: str) -> int:
    """Return a GUID such as ``0002:c903:0001:2345``, or 0 if the text is not one."""
    digits = text.replace(":", "")
    return int(digits, 16) if len(digits) == 16 and all(c in "0123456789abcdef" for c in digits) else 0


HWLOC_XML = Format(
    "hwloc-xml",
    kind="layouts",
    evidence="real",
    about="layout of a host: `lstopo --of xml`, matched by the GUIDs of its adapters",
    recognise=_recognise_hwloc_xml,
    parse=_parse_hwloc_xml,
)
