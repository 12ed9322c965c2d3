"""Kubernetes nodes with topograph's labels: output of ``kubectl get nodes -o json`` (or ``-o yaml``).

``fabric.topograph.run/tier-0`` names the switch of a node, ``tier-1`` the switch above it and so on; older
releases used ``network.topology.nvidia.com/leaf``, ``spine`` and ``core``. Domains of accelerators
(``accelerator.topograph.run/domain``) are counted but not read. The name of a node is
``kubernetes.io/hostname``, else ``metadata.name``. topograph truncates long names of switches to the 63
characters of a label. Source: the documentation of github.com/NVIDIA/topograph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ingest.formats.fabrics.trees import Branch, tree
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import Place, SourceFile
from ingest.reading.yaml_text import load_yaml

TIER = re.compile(r"fabric\.topograph\.run/tier-(\d)")
OLDER = (
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/core",
)
_DOMAIN = "accelerator.topograph.run/domain"
_RECOGNISED = re.compile(r"fabric\.topograph\.run/tier-\d|network\.topology\.nvidia\.com/leaf")
_ITEMS = re.compile(r"\"?\bitems\"?\s*:")


def _recognise_topograph_labels(head: str, path: str) -> bool:
    """Return True if the text is a list of Kubernetes with a label of topograph."""
    return (
        _RECOGNISED.search(head) is not None and _ITEMS.search(head) is not None and "kubernetes.io/" in head
    )


def _parse_topograph_labels(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of the labels; a switch below two others, or on two tiers, is an error."""
    (file,) = files
    root = Spot(file.path)
    begins = file.head(4096).lstrip()[:1]
    content = root.object(load_json(file) if begins == "{" else load_yaml(file))
    tree_of = _Tiers()
    without = domains = 0
    for spot, item in root.at("items").objects(content.get("items")):
        name, labels = _node(item, spot)
        tiers = _tiers(labels, spot)
        domains += _DOMAIN in labels
        if not tiers:
            without += 1
            continue
        tree_of.add(name, tiers, spot)
    warnings = counted(
        (without, "node has", "nodes have", "no label of a switch: ignored"),
        (domains, "node names", "nodes name", "a domain of accelerators, which is ignored"),
    )
    return tree(file.path, tree_of.branches(file.path), options, warnings)


class _Tiers:
    """The switches so far: the switch above each, and the children of each."""

    def __init__(self) -> None:
        self._above: dict[str, tuple[str, int]] = {}
        self._hosts: dict[str, list[str]] = {}
        self._below: dict[str, dict[str, None]] = {}
        self._seen: set[str] = set()

    def add(self, host: str, tiers: tuple[str, ...], spot: Spot) -> None:
        """Add a host and the switches above it, the closest first."""
        if host in self._seen:
            raise spot.error(f"the node {host!r} is repeated")
        self._seen.add(host)
        self._hosts.setdefault(tiers[0], []).append(host)
        for tier, (low, high) in enumerate(zip(tiers, (*tiers[1:], ""), strict=True)):
            if self._above.setdefault(low, (high, tier)) != (high, tier):
                raise spot.error(f"the switch {low!r} has another parent in the labels of another node")
            if high:
                self._below.setdefault(high, {})[low] = None

    def branches(self, path: str) -> dict[str, Branch]:
        """Return the tree."""
        return {
            name: Branch(
                place=Place(path, text=name),
                switches=tuple(self._below.get(name, ())),
                hosts=tuple(self._hosts.get(name, ())),
            )
            for name in self._above
        }


def _node(item: dict[str, Any], spot: Spot) -> tuple[str, dict[str, Any]]:
    """Return name and labels of a node."""
    meta = spot.at("metadata").object(item.get("metadata"))
    labels = spot.at("labels").object(meta.get("labels") or {})
    name = labels.get("kubernetes.io/hostname") or meta.get("name")
    return spot.at("metadata").at("name").text(name), labels


def _tiers(labels: dict[str, Any], spot: Spot) -> tuple[str, ...]:
    """Return the switches above a node, the closest first."""
    found = {int(match[1]): value for key, value in labels.items() if (match := TIER.fullmatch(key))}
    if not found:
        found = {tier: labels[key] for tier, key in enumerate(OLDER) if key in labels}
    if sorted(found) != list(range(len(found))):
        raise spot.error("a tier between others is missing")
    tiers = tuple(spot.at("labels").text(found[tier]) for tier in range(len(found)))
    if len(set(tiers)) < len(tiers):
        raise spot.error("a switch is on two tiers")
    return tiers


TOPOGRAPH_LABELS = Format(
    "topograph-labels",
    kind="fabric",
    evidence="public",
    about="tree of switches: Kubernetes nodes labelled by topograph, JSON or YAML",
    recognise=_recognise_topograph_labels,
    parse=_parse_topograph_labels,
)
