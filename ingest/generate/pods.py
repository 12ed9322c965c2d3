"""Pods of accelerators: NVLink within domains, one rail per accelerator of a domain between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ingest.generate.checks import cabled, each, pairs, whole
from registry.errors import InvalidValue
from registry.model import Fabric

GIGABIT = 1e9 / 8
"""Bytes/s of one Gbit/s."""


@dataclass(frozen=True, slots=True)
class RailPods:
    """Sizes and rates of pods of NVLink domains.

    Parameters
    ----------
    pods, domains, gpus : int
        Number of pods; of NVLink domains in a pod; of accelerators in a domain.
    rails : int, optional
        Number of leaf switches in a pod, a divisor of `gpus`; one per accelerator of a domain by default.
    spines : int
        Number of spine switches; 0 for "rail-only": one pod, and accelerators that forward.
    cables : int
        Number of parallel cables between a leaf and a spine.
    capacities : (float, float, float)
        Bytes/s in each direction of an accelerator's NVLink, of its network cable and of a cable above;
        default: 450e9, 50e9 and 50e9 (NVLink 4 and 400 Gbit/s).
    relays : bool
        True if accelerators forward between NVLink and their rail, like NCCL's PXN.
    """

    pods: int = 2
    domains: int = 32
    gpus: int = 8
    rails: int | None = None
    spines: int = 8
    cables: int = 1
    capacities: tuple[float, float, float] = (3600 * GIGABIT, 400 * GIGABIT, 400 * GIGABIT)
    relays: bool = False
    slots: int = 1

    def __post_init__(self) -> None:
        whole("rail_pods.pods", self.pods, 1)
        whole("rail_pods.gpus", self.gpus, 1)
        count = whole("rail_pods.rails", self.rails_of_pod, 1, self.gpus)
        if self.gpus % count:
            reason = f"is {count}, which does not divide {self.gpus} accelerators of a domain"
            raise InvalidValue("rail_pods.rails", reason)
        whole("rail_pods.spines", self.spines, 0)
        if not self.spines and count * self.pods > 1 and (self.pods > 1 or not self.relays):
            reason = "is 0: without spines there must be one pod whose accelerators forward (relays)"
            raise InvalidValue("rail_pods.spines", reason)
        whole("rail_pods.domains", self.domains, 1)
        whole("rail_pods.gpus", self.pods * self.domains * self.gpus, 1)
        whole("rail_pods.cables", self.cables, 1, 1 << 12)
        whole("rail_pods.slots", self.slots, 1)

    @property
    def rails_of_pod(self) -> int:
        """Number of rails of a pod."""
        return self.gpus if self.rails is None else self.rails


def rail_pods(size: RailPods) -> Fabric:
    """Return pods of NVLink domains; every accelerator has a network port, every pod and rail a leaf switch.

    A vertex that hosts ranks is an accelerator with its network adapter. The accelerators of a domain (a
    server of 8, a rack of 72) are connected by one NVLink switch. Accelerator i of a domain is on rail ``i %
    rails``, at the leaf switch of its pod and rail, so that accelerators with the same number share a leaf,
    as in NVIDIA's reference designs (DGX SuperPOD: scalable units of 32 servers, 8 rails; a rack of 72 has 4
    rails). Every leaf has `cables` cables to every spine. Accelerators of a domain, or of a rail and pod, are
    2 links apart, all others 4.

    There are ``pods * domains * gpus`` accelerators, ``pods * domains`` NVLink switches, ``pods * rails``
    leaves, and ``2 * pods * domains * gpus + pods * rails * spines * cables`` cables. Between two halves of
    an even number of pods are ``pods / 2 * rails * spines * cables`` cables, if that is not more than the
    accelerators below.
    """
    rails, servers = size.rails_of_pod, size.pods * size.domains
    leaves, count = size.pods * rails, servers * size.gpus
    gpu = np.arange(count)
    domain = gpu // size.gpus
    nvlink, leaf = count, count + servers
    above = np.indices((leaves, size.spines)).reshape(2, -1).T + np.array((leaf, leaf + leaves))
    cables = [
        pairs(gpu, nvlink + domain),
        pairs(gpu, leaf + domain // size.domains * rails + gpu % size.gpus % rails),
        np.repeat(above, size.cables, axis=0),
    ]
    counts = count, servers, leaves, size.spines
    return cabled(
        _names(size),
        cables,
        each("rail_pods.capacities", size.capacities, 3),
        slots=np.repeat((size.slots, 0, 0, 0), counts),
        direct=size.relays,
        level=np.repeat((0, 1, 1, 2), counts),
    )


def _names(size: RailPods) -> list[str]:
    inside = [f"p{pod}d{domain}" for pod in range(size.pods) for domain in range(size.domains)]
    return [
        *(f"{name}g{gpu}" for name in inside for gpu in range(size.gpus)),
        *(f"{name}nvlink" for name in inside),
        *(f"p{pod}r{rail}" for pod in range(size.pods) for rail in range(size.rails_of_pod)),
        *(f"spine{spine}" for spine in range(size.spines)),
    ]
