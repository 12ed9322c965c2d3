"""Arithmetic of small finite fields as tables, for graphs that are made from them."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from registry.errors import InvalidValue
from registry.model import Longs


class Field(NamedTuple):
    """The field of q = p ** m elements, called 0 .. q - 1; p = the digits' base, 0 and 1 are what they are.

    Attributes
    ----------
    add, multiply : int64[q, q]
        Element of each sum and product.
    powers : int64[q - 1]
        The powers 0, 1, ... of a primitive element: every element but 0, once.
    """

    add: Longs
    multiply: Longs
    powers: Longs


def field(q: int) -> Field:
    """Return the field of q elements.

    Raises
    ------
    InvalidValue
        q is no power of a prime.
    """
    p, m = prime_power(q)
    digits = np.stack([np.arange(q) // p**place % p for place in range(m)], axis=1)
    weight = p ** np.arange(m)
    add = ((digits[:, None] + digits) % p) @ weight
    powers = _powers(p, m)
    logarithm = np.zeros(q, np.int64)
    logarithm[powers] = np.arange(q - 1)
    multiply = powers[(logarithm[:, None] + logarithm) % (q - 1)]
    multiply[0, :] = multiply[:, 0] = 0
    return Field(add=add.astype(np.int64), multiply=multiply, powers=powers)


def prime_power(q: int) -> tuple[int, int]:
    """Return base and exponent of ``q = p ** m``.

    Raises
    ------
    InvalidValue
        q is no power of a prime.
    """
    for p in range(2, q + 1):
        if q % p == 0:
            m, left = 0, q
            while left % p == 0:
                m, left = m + 1, left // p
            if left == 1:
                return p, m
            break
    raise InvalidValue("field.q", f"is {q}, which is no power of a prime")


def _powers(p: int, m: int) -> Longs:
    """Return powers of x modulo the first monic polynomial of degree m that makes x primitive."""
    for low in product(range(p), repeat=m):
        found = _orbit(p, low)
        if len(found) == p**m - 1:
            return np.array(found, np.int64)
    raise AssertionError("every finite field has a primitive element")


def _orbit(p: int, low: tuple[int, ...]) -> list[int]:
    """Return the powers 1, x, x^2, ... up to the first repetition, where ``x^m = low_0 + low_1 x + ...``."""
    m = len(low)
    element = (1, *(0,) * (m - 1))
    found: list[int] = []
    seen: set[tuple[int, ...]] = set()
    while element not in seen and any(element):
        seen.add(element)
        found.append(sum(digit * p**place for place, digit in enumerate(element)))
        carry = element[-1]
        element = tuple((d + carry * c) % p for d, c in zip((0, *element[:-1]), low, strict=True))
    return found
