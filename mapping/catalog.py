"""The table of strategies and refiners, and how a chain of them is written.

A new one is one file and one line here. Modules are imported when a name is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from mapping.budget import Budget
from mapping.problem import Problem
from mapping.refine import Found
from registry.errors import UnknownName
from registry.model import Ints

Strategy = Callable[[Problem, np.random.Generator], Ints]
"""Finds a placement by host index from nothing."""
Refiner = Callable[[Problem, Ints, Budget, np.random.Generator], Iterator[Found]]
"""Improves one round by round; see `mapping.refine`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A strategy or refiner by name.

    Attributes
    ----------
    name : str
    module : str
        Has ``seat`` (a strategy) or ``refine`` (a refiner).
    refines : bool
    weight : float
        A refiner's part of the time of its chain, beside the chain's other refiners.
    about : str
    """

    name: str
    module: str
    refines: bool = False
    weight: float = 0.0
    about: str


ENTRIES = (
    Entry(
        name="in-order",
        module="mapping.strategies.in_order",
        about="ranks fill the slots in order",
    ),
    Entry(
        name="random",
        module="mapping.strategies.random",
        about="every choice of slots is equally likely",
    ),
    Entry(
        name="greedy",
        module="mapping.strategies.greedy",
        about="heaviest edge next, on the closest free host (Hoefler and Snir 2011, Algorithm 1)",
    ),
    Entry(
        name="pair-exchange",
        module="mapping.refine.pair_exchange",
        refines=True,
        weight=1.0,
        about="annealed swaps and moves on hop-bytes",
    ),
    Entry(
        name="congestion-descent",
        module="mapping.refine.congestion_descent",
        refines=True,
        weight=3.0,
        about="annealed swaps and moves on a high power of link congestion",
    ),
)


@dataclass(frozen=True, slots=True)
class Chain:
    """A strategy and the refiners that work on its result, in order.

    Attributes
    ----------
    strategy : Entry or None
        None: the chain starts from the placement given, else in order.
    refiners : tuple of Entry
    """

    strategy: Entry | None
    refiners: tuple[Entry, ...]

    def __str__(self) -> str:
        first = () if self.strategy is None else (self.strategy,)
        return "+".join(entry.name for entry in first + self.refiners)

    @classmethod
    def parse(cls, text: str) -> Chain:
        """The chain written as ``strategy+refiner+...``; it may begin with a refiner.

        Raises
        ------
        UnknownName
            With the closest names; also for a strategy that is not first.
        """
        known = {entry.name: entry for entry in ENTRIES}
        chain = []
        for place, name in enumerate(text.split("+")):
            if name not in known:
                raise UnknownName("strategy", name, known)
            if place > 0 and not known[name].refines:
                refiners = [entry.name for entry in ENTRIES if entry.refines]
                raise UnknownName("refiner", name, refiners, remedy=f"{name} can only come first")
            chain.append(known[name])
        if chain[0].refines:
            return cls(None, tuple(chain))
        return cls(chain[0], tuple(chain[1:]))


def load_strategy(entry: Entry) -> Strategy:
    """The strategy's function."""
    return cast(Strategy, importlib.import_module(entry.module).seat)


def load_refiner(entry: Entry) -> Refiner:
    """The refiner's generator function."""
    return cast(Refiner, importlib.import_module(entry.module).refine)
