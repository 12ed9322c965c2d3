"""Conservation of bytes: what enters a device and is not for it also leaves it."""

from __future__ import annotations

import numpy as np

from mapping.evaluation.metrics import evaluate
from mapping.selfcheck.comparison import Comparison, Subject, one_rank_per_host
from registry.model import Profile

HOSTS = 2_000
"""Most hosts that send."""
PARTNERS = 4
"""Hosts to which each host sends."""


def compare(subject: Subject) -> Comparison:
    """Compare the bytes that enter every device with those that leave it."""
    fabric, comparison = subject.fabric, Comparison("devices")
    hosts = subject.draw_hosts(HOSTS)
    if len(hosts) < 2:
        return comparison
    sender = np.repeat(np.arange(len(hosts)), PARTNERS)
    receiver = (sender + subject.generator.integers(1, len(hosts), len(sender))) % len(hosts)
    bytes = subject.generator.integers(1, 1 << 20, len(sender)).astype(float)
    profile = Profile.from_edges(sender, receiver, bytes, ranks=len(hosts))
    load = evaluate(fabric, profile, one_rank_per_host(fabric, hosts)).link_bytes
    vertex = np.array(hosts)
    enters = np.bincount(fabric.links.target, load, len(fabric))
    leaves = np.bincount(fabric.links.source, load, len(fabric))
    enters += np.bincount(vertex[sender], bytes, len(fabric))
    leaves += np.bincount(vertex[receiver], bytes, len(fabric))
    for device in np.flatnonzero((enters > 0) | (leaves > 0)).tolist():
        comparison.add(f"{fabric.names[device]}, bytes", float(leaves[device]), float(enters[device]))
    return comparison
