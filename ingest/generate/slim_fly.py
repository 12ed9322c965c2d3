"""Slim Fly: the graphs of McKay, Miller and Siran as networks of switches (Besta and Hoefler, SC 2014)."""

from __future__ import annotations

import numpy as np

from ingest.generate.checks import cabled, each, numbered, whole
from ingest.generate.finite_fields import Field, field, prime_power
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

LARGEST = 256
"""Largest q: 131,072 switches."""


def slim_fly(
    q: int,
    hosts: int | None = None,
    *,
    capacities: tuple[float, float] = (1.0, 1.0),
    slots: int = 1,
) -> Fabric:
    """Return the Slim Fly of a prime power ``q = 4 w + d``, d being -1, 0 or 1 (section II-B of the paper).

    Switches are (0, x, y) and (1, m, c) over the field of q elements, ``2 * q ** 2`` of them. With sets X
    and X' of generators, (0, x, y) is joined to (0, x, y') where y - y' is in X, (1, m, c) to (1, m, c')
    where c - c' is in X', and (0, x, y) to (1, m, c) where ``y = m * x + c``. Each switch has
    ``(3 * q - d) / 2`` others next to it and all the rest two cables away; q = 5 is the graph of Hoffman
    and Singleton. The sets for each d are Hafner's (Geometric realisation of the graphs of
    McKay-Miller-Siran, J. Combinatorial Theory B 90, 2004). No closed form is known of the bisection.

    Parameters
    ----------
    q : int
        A power of a prime that is not 2 modulo 4, from 3 to `LARGEST`.
    hosts : int, optional
        Hosts of a switch; half its cables to others, rounded up, by default: full global bandwidth.
    capacities : (float, float)
        Bytes/s of a host's cable and of one between switches, each direction.
    slots : int
        Ranks a host takes.

    Raises
    ------
    InvalidValue
    """
    whole("slim_fly.q", q, 3, LARGEST)
    try:
        prime_power(q)
    except InvalidValue as error:
        raise InvalidValue("slim_fly.q", f"is {q}, which is no power of a prime") from error
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    degree = (3 * q - delta) // 2
    switches = 2 * q * q
    per = whole("slim_fly.hosts", -(-degree // 2) if hosts is None else hosts, 1)
    count = whole("slim_fly.hosts", switches * per, 1)
    pairs = switch_graph(q) + count
    host = np.arange(count)
    at_host, between = each("slim_fly.capacities", capacities, 2)
    return cabled(
        [*numbered("node", count), *_names(q)],
        np.concatenate((np.stack((host, count + host // per), axis=1), pairs)),
        np.repeat((at_host, between), (count, len(pairs))),
        slots=np.repeat((whole("slim_fly.slots", slots, 1), 0), (count, switches)),
        level=np.repeat((0, 1), (count, switches)),
    )


def switch_graph(q: int) -> Longs:
    """Return the linked switches; (s, a, b) is number ``(s * q + a) * q + b`` (int64[q * q * degree, 2])."""
    numbers = field(q)
    inner = [_within(numbers, generators, side) for side, generators in enumerate(_generators(q, numbers))]
    x, m, c = (part.ravel() for part in np.meshgrid(*(np.arange(q),) * 3, indexing="ij"))
    y = numbers.add[numbers.multiply[m, x], c]
    across = np.stack((x * q + y, (q + m) * q + c), axis=1)
    return np.concatenate((*inner, across))


def _generators(q: int, numbers: Field) -> tuple[Longs, Longs]:
    """Return X and X': even and odd powers of a primitive element (for q = 4 w - 1 half, and negatives)."""
    power = numbers.powers
    if q % 4 == 3:
        w = (q + 1) // 4
        even = np.r_[0 : 2 * w - 1 : 2, 2 * w - 1 : 4 * w - 2 : 2]
        return power[even], power[(even + 1) % (q - 1)]
    if q % 2:
        return power[0 : q - 2 : 2], power[1 : q - 1 : 2]
    return power[0 : q - 1 : 2], power[np.arange(1, q, 2) % (q - 1)]


def _within(numbers: Field, generators: Longs, side: int) -> Longs:
    """Return pairs of switches of one column that differ by a generator, each once."""
    q = len(numbers.add)
    joined = np.zeros((q, q), bool)
    for one in generators.tolist():
        joined[np.arange(q), numbers.add[:, one]] = True
    low, high = np.nonzero(np.triu(joined))
    column = (side * q + np.arange(q))[:, None] * q
    return np.stack(((column + low).ravel(), (column + high).ravel()), axis=1).astype(np.int64)


def _names(q: int) -> list[str]:
    return [f"s{side}-{a}-{b}" for side in range(2) for a in range(q) for b in range(q)]
