"""Slim Fly: the graphs of McKay, Miller and Siran as networks of switches (Besta and Hoefler, SC 2014)."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from ingest.generate.checks import each, pairs, switched, whole
from registry.errors import InvalidValue
from registry.model import Fabric, Longs

LARGEST = 256
"""Largest q: 131,072 switches."""


class Field(NamedTuple):
    """The finite field of q = p ** m elements as tables.

    The elements are 0 .. q - 1: the digits of their numbers in base p are the coefficients of polynomials.

    Attributes
    ----------
    add, multiply : int64[q, q]
        Element of each sum and product.
    powers : int64[q - 1]
        Powers 0, 1, ... of a primitive element: every element except 0 once.
    """

    add: Longs
    multiply: Longs
    powers: Longs


def slim_fly(
    q: int,
    hosts: int | None = None,
    *,
    capacities: tuple[float, float] = (1.0, 1.0),
    slots: int = 1,
) -> Fabric:
    """Return the Slim Fly of a prime power ``q = 4 w + d``, d being -1, 0 or 1 (section II-B of the paper).

    The ``2 * q ** 2`` switches are (0, x, y) and (1, m, c) over the field of q elements. With sets X and X'
    of generators, (0, x, y) is connected to (0, x, y') if y - y' is in X, (1, m, c) to (1, m, c') if c - c'
    is in X', and (0, x, y) to (1, m, c) if ``y = m * x + c``. Each switch is connected to ``(3 * q - d) / 2``
    others and is two cables from all the rest; q = 5 is the graph of Hoffman and Singleton. The sets for each
    d are Hafner's (Geometric realisation of the graphs of McKay-Miller-Siran, J. Combinatorial Theory B 90,
    2004). No closed form of the bisection is known.

    Parameters
    ----------
    q : int
        A power of a prime that is not 2 modulo 4, from 3 to 256.
    hosts : int, optional
        Number of hosts per switch; default: half its cables to other switches, rounded up, for full global
        bandwidth.
    capacities : (float, float)
        Bytes/s in each direction of a host's cable and of one between switches.
    """
    whole("slim_fly.q", q, 3, LARGEST)
    prime_power(q)
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    degree = (3 * q - delta) // 2
    per = whole("slim_fly.hosts", -(-degree // 2) if hosts is None else hosts, 1)
    whole("slim_fly.hosts", 2 * q * q * per, 1)
    cables = switch_graph(q)
    rates = each("slim_fly.capacities", capacities, 2)
    names = [f"s{side}-{a}-{b}" for side in range(2) for a in range(q) for b in range(q)]
    return switched(names, per, [cables], rates, whole("slim_fly.slots", slots, 1))


def switch_graph(q: int) -> Longs:
    """Return the linked switches; (s, a, b) is number ``(s * q + a) * q + b`` (int64[q * q * degree, 2])."""
    numbers = field(q)
    inner = [_within(numbers, generators, side) for side, generators in enumerate(_generators(q, numbers))]
    x, m, c = np.indices((q, q, q)).reshape(3, -1)
    y = numbers.add[numbers.multiply[m, x], c]
    return np.concatenate((*inner, pairs(x * q + y, (q + m) * q + c)))


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
    """Return the pairs of switches of one column that differ by a generator, each once."""
    q = len(numbers.add)
    linked = np.zeros((q, q), bool)
    for one in generators.tolist():
        linked[np.arange(q), numbers.add[:, one]] = True
    low, high = np.nonzero(np.triu(linked))
    column = (side * q + np.arange(q))[:, None] * q
    return pairs((column + low).ravel(), (column + high).ravel())


def field(q: int) -> Field:
    """Return the field of q elements, a power of a prime."""
    p, m = prime_power(q)
    digits = np.stack([np.arange(q) // p**place % p for place in range(m)], axis=1)
    add = ((digits[:, None] + digits) % p) @ p ** np.arange(m)
    powers = _powers(p, m)
    logarithm = np.zeros(q, np.int64)
    logarithm[powers] = np.arange(q - 1)
    multiply = powers[(logarithm[:, None] + logarithm) % (q - 1)]
    multiply[0, :] = multiply[:, 0] = 0
    return Field(add=add.astype(np.int64), multiply=multiply, powers=powers)


def prime_power(q: int) -> tuple[int, int]:
    """Return base and exponent of ``q = p ** m``; raise `InvalidValue` if q is no power of a prime."""
    p = next((p for p in range(2, q + 1) if q % p == 0), 0)
    exponents = [m for m in range(1, max(q, 1).bit_length()) if p**m == q]
    if not exponents:
        raise InvalidValue("slim_fly.q", f"is {q}, which is no power of a prime")
    return p, exponents[0]


def _powers(p: int, m: int) -> Longs:
    """Return the powers of x modulo the first monic polynomial of degree m that makes x primitive."""
    for low in product(range(p), repeat=m):
        found = _orbit(p, low)
        if len(found) == p**m - 1:
            return np.array(found, np.int64)
    raise AssertionError("every finite field has a primitive element")


def _orbit(p: int, low: tuple[int, ...]) -> list[int]:
    """Return the powers 1, x, x^2, ... up to the first repetition, with ``x^m = low_0 + low_1 x + ...``."""
    element = (1, *(0,) * (len(low) - 1))
    found: dict[tuple[int, ...], int] = {}
    while element not in found and any(element):
        found[element] = sum(digit * p**place for place, digit in enumerate(element))
        carry = element[-1]
        element = tuple((d + carry * c) % p for d, c in zip((0, *element[:-1]), low, strict=True))
    return list(found.values())
