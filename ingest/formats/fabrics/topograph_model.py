"""NVIDIA topograph's model of a cluster: YAML with switches above switches, and blocks of hosts below them.

``switches`` maps names to their children (``switches``, in older models also ``nodes``), ``blocks`` is a list
of host lists with the ``switch`` that connects them. Older models have ``capacity_blocks`` instead: a
mapping, or a list whose blocks are named by a switch. Labels, annotations and kinds of accelerators are
ignored. Host lists are those of Slurm. Source: the models in the project's tests,
github.com/NVIDIA/topograph, Apache-2.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ingest.formats.fabrics.trees import Branch, tree
from ingest.formats.jobs.hostlists import expand
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.json_text import Spot
from ingest.reading.source import SourceFile
from ingest.reading.yaml_text import load_yaml

_RECOGNISED = re.compile(r"^switches:[ \t]*\r?$", re.MULTILINE)
_BLOCKS = re.compile(r"^(blocks|capacity_blocks|nodes):[ \t]*\r?$", re.MULTILINE)
_TREE = re.compile(r"^[ \t]+(switches|nodes|capacity_blocks):", re.MULTILINE)


def _recognise_topograph_model(head: str, path: str) -> bool:
    """Return True if the text has the model's keys at the start of a line."""
    return _RECOGNISED.search(head) is not None and bool(_BLOCKS.search(head) or _TREE.search(head))


def _parse_topograph_model(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one model; a block on an undescribed switch is an error."""
    (file,) = files
    root = Spot(file.path)
    model = root.object(load_yaml(file))
    branches: dict[str, Branch] = {}
    blocks_of: dict[str, tuple[str, ...]] = {}
    for name, value, spot in _named(model.get("switches"), root.at("switches")):
        item = spot.object(value or {})
        if name in branches:
            raise spot.error(f"the switch {name!r} is repeated")
        below = _hosts(item.get("switches", []), spot.at("switches"))
        hosts = _hosts(item.get("nodes", []), spot.at("nodes"))
        branches[name] = Branch(place=spot.place, switches=below, hosts=hosts)
        blocks_of[name] = _hosts(item.get("capacity_blocks", []), spot.at("capacity_blocks"))
    for branch in list(branches.values()):
        for child in branch.switches:  # leaves need no description
            branches.setdefault(child, Branch(place=branch.place))
    isolated = _blocks(model, root, branches) + _capacity_blocks(model, root, branches, blocks_of)
    warnings = counted((isolated, "host is", "hosts are", "below no switch and ignored"))
    return tree(file.path, branches, options, warnings)


def _blocks(model: dict[str, Any], root: Spot, branches: dict[str, Branch]) -> int:
    """Add the hosts of the blocks to their switches; return how many hosts have none."""
    isolated = 0
    for spot, block in root.at("blocks").objects(model.get("blocks") or []):
        hosts = _hosts(block.get("nodes", []), spot.at("nodes"))
        if not block.get("switch"):
            isolated += len(hosts)
            continue
        _hang(branches, spot.at("switch").text(block["switch"]), hosts, spot)
    return isolated


def _capacity_blocks(
    model: dict[str, Any], root: Spot, branches: dict[str, Branch], blocks_of: dict[str, tuple[str, ...]]
) -> int:
    """Add the hosts of blocks of older models, which are named by their switches."""
    switch_of = {block: name for name, blocks in blocks_of.items() for block in blocks}
    placed = {host for branch in branches.values() for host in branch.hosts}
    isolated = 0
    for name, value, spot in _named(model.get("capacity_blocks"), root.at("capacity_blocks")):
        block = spot.object(value or {})
        hosts = [host for host in _hosts(block.get("nodes", []), spot.at("nodes")) if host not in placed]
        if name in switch_of:
            _hang(branches, switch_of[name], hosts, spot)
        else:
            isolated += len(hosts)
    return isolated


def _hang(branches: dict[str, Branch], switch: str, hosts: Sequence[str], spot: Spot) -> None:
    branch = branches.get(switch)
    if branch is None:
        raise spot.error(f"the switch {switch!r} is not described in the file")
    if twice := set(branch.hosts).intersection(hosts):
        raise spot.error(f"the host {min(twice)!r} is already below this switch")
    branches[switch] = replace(branch, hosts=(*branch.hosts, *hosts))


def _named(value: Any, spot: Spot) -> list[tuple[str, Any, Spot]]:
    """Return name, content and location of the items of a mapping, or of a list of items with names."""
    if not value:
        return []
    if isinstance(value, dict):
        return [(name, one, spot.at(name)) for name, one in value.items()]
    return [(here.at("name").text(one.get("name")), one, here) for here, one in spot.objects(value)]


def _hosts(value: Any, spot: Spot) -> tuple[str, ...]:
    """Return the names in a list of host lists."""
    found: dict[str, None] = {}
    for here, text in spot.items(value or []):
        for name in expand(here.text(text), path=spot.path):
            if name in found:
                raise spot.place.error(f"{name} is named twice")
            found[name] = None
    return tuple(found)


TOPOGRAPH_MODEL = Format(
    "topograph-model",
    kind="fabric",
    evidence="public",
    about="tree of switches: topograph's model in YAML",
    recognise=_recognise_topograph_model,
    parse=_parse_topograph_model,
)
