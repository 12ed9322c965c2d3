"""Pods of accelerators: domains joined by NVLink inside, one rail an accelerator of a domain outside."""

from __future__ import annotations

import numpy as np

from ingest.generate.checks import cabled, each, whole
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

GIGABIT = 1e9 / 8
"""Bytes/s."""


def rail_pods(
    pods: int = 2,
    domains: int = 32,
    gpus: int = 8,
    *,
    rails: int | None = None,
    spines: int = 8,
    cables: int = 1,
    capacities: tuple[float, float, float] = (3600 * GIGABIT, 400 * GIGABIT, 400 * GIGABIT),
    relays: bool = False,
    slots: int = 1,
) -> Fabric:
    """Return pods of NVLink domains; every accelerator has a network port, every pod and rail a leaf switch.

    A vertex that hosts ranks is an accelerator with its network adapter. Those of a domain (a server of 8, a
    rack of 72) are joined by one NVLink switch. Accelerator i of a domain is on rail ``i % rails``: on the
    leaf switch of its pod and rail, so that accelerators of one number meet there, as in NVIDIA's reference
    designs (DGX SuperPOD: scalable units of 32 servers, 8 rails; a rack of 72 has 4 rails). Every leaf has
    `cables` cables to every spine. Accelerators of a domain, or of a rail and pod, are 2 links apart, all
    others 4.

    There are ``pods * domains * gpus`` accelerators, ``pods * domains`` NVLink switches, ``pods * rails``
    leaves, and ``2 * pods * domains * gpus + pods * rails * spines * cables`` cables. Between two halves of
    an even number of pods run ``pods / 2 * rails * spines * cables`` cables, if that is not more than the
    accelerators below.

    Parameters
    ----------
    pods, domains, gpus : int
        Pods; NVLink domains of a pod; accelerators of a domain.
    rails : int, optional
        Leaf switches of a pod, a divisor of `gpus`; one an accelerator of a domain by default.
    spines : int
        0 leaves the rails apart ("rail-only"): one pod, and accelerators that relay.
    cables : int
        Parallel cables of a leaf and a spine.
    capacities : (float, float, float)
        Bytes/s of an accelerator's NVLink, of its network cable and of a cable above, each direction. Unless
        told 450e9, 50e9 and 50e9: NVLink 4 and 400 Gbit/s.
    relays : bool
        Whether an accelerator carries others' traffic between NVLink and its rail, as NCCL's PXN does.
    slots : int
        Ranks an accelerator takes.

    Raises
    ------
    InvalidValue
    """
    rails = _rails(pods, gpus, rails, spines, relays)
    whole("rail_pods.domains", domains, 1)
    count = whole("rail_pods.gpus", pods * domains * gpus, 1)
    whole("rail_pods.cables", cables, 1, 1 << 12)
    gpu = np.arange(count)
    domain = gpu // gpus
    nvlink, leaf = count, count + pods * domains
    top = leaf + pods * rails
    above = np.indices((pods * rails, spines)).reshape(2, -1).T + np.array((leaf, top))
    ends = [
        _pairs(gpu, nvlink + domain),
        _pairs(gpu, leaf + domain // domains * rails + gpu % gpus % rails),
        np.repeat(above, cables, axis=0),
    ]
    sizes = count, pods * domains, pods * rails, spines
    return cabled(
        _names(pods, domains, gpus, rails, spines),
        np.concatenate(ends),
        np.repeat(each("rail_pods.capacities", capacities, 3), [len(part) for part in ends]),
        slots=np.repeat((whole("rail_pods.slots", slots, 1), 0, 0, 0), sizes),
        direct=relays,
        level=np.repeat((0, 1, 1, 2), sizes),
    )


def _rails(pods: int, gpus: int, rails: int | None, spines: int, relays: bool) -> int:
    """Return rails of a pod, once it is checked that they fit and that something joins them."""
    field = "rail_pods."
    whole(field + "pods", pods, 1)
    whole(field + "gpus", gpus, 1)
    count = whole(field + "rails", gpus if rails is None else rails, 1, gpus)
    if gpus % count:
        raise InvalidValue(
            field + "rails", f"is {count}, which does not divide {gpus} accelerators of a domain"
        )
    whole(field + "spines", spines, 0)
    if not spines and count * pods > 1 and (pods > 1 or not relays):
        raise InvalidValue(field + "spines", "is 0: rails are joined by NVLink alone, in one pod that relays")
    return count


def _pairs(one: Longs, other: Longs) -> Longs:
    return np.stack((one, other), axis=1)


def _names(pods: int, domains: int, gpus: int, rails: int, spines: int) -> list[str]:
    inside = [f"p{pod}d{domain}" for pod in range(pods) for domain in range(domains)]
    return [
        *(f"{name}g{gpu}" for name in inside for gpu in range(gpus)),
        *(f"{name}nvlink" for name in inside),
        *(f"p{pod}r{rail}" for pod in range(pods) for rail in range(rails)),
        *(f"spine{spine}" for spine in range(spines)),
    ]
