"""Slurm's ``topology.yaml`` (25.05 and later): several topologies of one cluster in a list.

Each has a name, ``topology``, optionally ``cluster_default: true``, and one of ``tree``, ``block``, ``flat``
or newer kinds. The cluster's default is read (or the first if there is none); the others are counted. A
default of another kind than tree and block is rejected: ``flat`` has no network, and the order of hosts in
``ring`` and ``torus3d`` is not documented well enough to know the neighbours. Source: topology.yaml(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ingest.formats.fabrics.trees import Branch, block_branches, tree
from ingest.formats.jobs.hostlists import expand
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.json_text import Spot
from ingest.reading.source import SourceFile
from ingest.reading.yaml_text import load_yaml

MAX_SIZE = 1 << 30
_RECOGNISED = re.compile(r"^[ \t]*(-[ \t]+)?topology:[ \t]*\S", re.MULTILINE)
_LIST = re.compile(r"^-[ \t]", re.MULTILINE)
_KINDS = ("tree", "block", "flat", "ring", "torus3d")
_RECOGNISED_KIND = re.compile(rf"^[ \t]+(?:-[ \t]+)?({'|'.join(_KINDS)}):", re.MULTILINE)
_TRUE = ("true", "yes", "on", "1")


def _recognise_slurm_topology_yaml(head: str, path: str) -> bool:
    """Return True if the text is a list of items with a topology and one of its kinds."""
    if not _LIST.search(head):
        return False
    return _RECOGNISED.search(head) is not None and _RECOGNISED_KIND.search(head) is not None


def _parse_slurm_topology_yaml(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of the default topology; errors are those of `branches_of` and `trees.tree`."""
    branches, warnings = branches_of(files, options)
    return tree(files[0].path, branches, options, warnings)


def branches_of(files: Sequence[SourceFile], options: Options) -> tuple[Mapping[str, Branch], Sequence[str]]:
    """Return the switches or blocks of the default topology in their order, and warnings.

    Missing and unknown keys are errors.
    """
    (file,) = files
    root = Spot(file.path)
    found = root.list(load_yaml(file))
    if not found:
        raise root.error("no topology")
    topologies = list(root.objects(found))
    for spot, topology in topologies:
        spot.text(topology.get("topology"))
    defaults = [one for one in topologies if str(one[1].get("cluster_default", "")).lower() in _TRUE]
    if len(defaults) > 1:
        raise defaults[1][0].error("a second topology is marked as the cluster's default")
    spot, topology = (defaults or topologies)[0]
    warnings: list[str] = []
    if len(topologies) > 1:
        others = ", ".join(str(one["topology"]) for at, one in topologies if at != spot)
        warnings.append(f"topology {topology['topology']!r} is read, others are ignored: {others}")
    if "tree" in topology:
        return _tree(topology["tree"], spot.at("tree")), warnings
    if "block" in topology:
        branches, notes = _block(topology["block"], spot.at("block"))
        return branches, [*warnings, *notes]
    kind = next((kind for kind in topology if kind not in ("topology", "cluster_default")), "nothing")
    raise spot.error(f"topologies of the kind {kind} are not supported: only tree and block are")


def _tree(value: Any, spot: Spot) -> dict[str, Branch]:
    """Return the switches of a tree."""
    spot = spot.at("switches")
    return _items(
        _member(value, "switches", spot), spot, "switch", {"children": "switches", "nodes": "hosts"}
    )


def _block(value: Any, spot: Spot) -> tuple[dict[str, Branch], tuple[str, ...]]:
    """Return the blocks and their groups."""
    sizes, at = _member(value, "block_sizes", spot, []), spot.at("block_sizes")
    numbers = [here.whole(size, 1, MAX_SIZE) for here, size in at.items(sizes)]
    spot = spot.at("blocks")
    blocks = _items(_member(value, "blocks", spot), spot, "block", {"nodes": "hosts"})
    return block_branches(blocks, numbers, at.place)


def _items(value: Any, spot: Spot, naming: str, lists: dict[str, str]) -> dict[str, Branch]:
    """Return the switches or blocks; their host lists go to the given fields of `Branch`."""
    branches: dict[str, Branch] = {}
    for here, item in spot.objects(value):
        if unknown := set(item) - {naming, *lists}:
            raise here.error(f"unknown key {min(unknown)}")
        name = here.at(naming).text(item.get(naming))
        if name in branches:
            raise here.error(f"{name!r} is repeated")
        fields = {
            field: expand(here.at(key).text(item[key]), path=spot.path)
            for key, field in lists.items()
            if key in item
        }
        branches[name] = Branch(
            place=here.place,
            switches=fields.get("switches", ()),
            hosts=fields.get("hosts", ()),
        )
    return branches


def _member(value: Any, key: str, spot: Spot, default: Any = None) -> Any:
    """Return a member of an object; raise `InputError` if it is missing and has no default."""
    found = spot.object(value).get(key, default)
    if found is None:
        raise spot.error(f"the key {key} is missing")
    return found


SLURM_TOPOLOGY_YAML = Format(
    "slurm-topology-yaml",
    kind="fabric",
    evidence="public",
    about="Slurm's network: topology.yaml (25.05 and later)",
    recognise=_recognise_slurm_topology_yaml,
    parse=_parse_slurm_topology_yaml,
)
