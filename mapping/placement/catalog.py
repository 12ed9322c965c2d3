"""The table of strategies and refiners, and how a chain of them is written.

A new one is one file and one line here. Modules are imported when a name is used. Keyword-only parameters
with a default are options, which a chain may set: ``greedy:starts=32+pair-exchange``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from mapping.options import Value, options_of, read_options, split_options
from mapping.placement.problem.budget import Budget
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Found
from registry.errors import UnknownName
from registry.model import Ints

Strategy = Callable[[Problem, np.random.Generator], Ints]
"""Finds a placement by host index from nothing; need not look at pins."""
Refiner = Callable[[Problem, Ints, Budget, np.random.Generator], Iterator[Found]]
"""Improves one round by round, and leaves pinned ranks where they are; see `mapping.placement.refine`."""


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
        module="mapping.placement.strategies.in_order",
        about="ranks fill the slots in order",
    ),
    Entry(
        name="random",
        module="mapping.placement.strategies.random",
        about="every choice of slots is equally likely",
    ),
    Entry(
        name="round-robin",
        module="mapping.placement.strategies.round_robin",
        about="ranks are dealt over the hosts in turn (Li et al. 2020, section 5.2)",
    ),
    Entry(
        name="random-local",
        module="mapping.placement.strategies.local_random",
        about="who talks most sits on close hosts, chosen at random (Orduña et al. 2004, section 5.2)",
    ),
    Entry(
        name="greedy",
        module="mapping.placement.strategies.greedy",
        about="heaviest edge next, on the closest free host (Hoefler and Snir 2011, Algorithm 1)",
    ),
    Entry(
        name="recursive-bisection",
        module="mapping.placement.strategies.recursive_bisection",
        about="both graphs cut into halves by METIS (Hoefler and Snir 2011, Algorithm 2)",
    ),
    Entry(
        name="rcm",
        module="mapping.placement.strategies.rcm",
        about="both graphs in reverse Cuthill-McKee order (Hoefler and Snir 2011, section 3.3)",
    ),
    Entry(
        name="multilevel",
        module="mapping.placement.strategies.multilevel",
        about="ranks cut by METIS along the hierarchy that hosts form by distance",
    ),
    Entry(
        name="spectral",
        module="mapping.placement.strategies.spectral",
        about="ranks laid along a torus's axes or a hierarchy's levels by the guest's smooth vectors",
    ),
    Entry(
        name="layout",
        module="mapping.placement.strategies.layout",
        about="in order, spectral (tori) or multilevel (elsewhere): whichever has less hop-bytes",
    ),
    Entry(
        name="multicore",
        module="mapping.placement.strategies.multicore",
        about="a group of ranks a host by METIS, then groups by another strategy (2011, section 3.4)",
    ),
    Entry(
        name="random-search",
        module="mapping.placement.strategies.random_search",
        about="random exchanges from 10 random mappings, till 40 in a row fail (Orduña et al. 2004)",
    ),
    Entry(
        name="ohtma",
        module="mapping.placement.strategies.ohtma",
        about="ranks by volume, hosts by compactness, best pairs exchanged (Li et al. 2020, Algorithm 1)",
    ),
    Entry(
        name="ohtma-exchange",
        module="mapping.placement.refine.ohtma_exchange",
        refines=True,
        weight=1.0,
        about="the best pair of all, P/2 times, then the best prefix (Li et al. 2020, lines 20 to 36)",
    ),
    Entry(
        name="threshold-accepting",
        module="mapping.placement.refine.threshold_accepting",
        refines=True,
        weight=3.0,
        about="random swaps, kept if congestion rises little (Hoefler and Snir 2011, section 3.5)",
    ),
    Entry(
        name="pair-exchange",
        module="mapping.placement.refine.pair_exchange",
        refines=True,
        weight=1.0,
        about="annealed swaps and moves on hop-bytes",
    ),
    Entry(
        name="congestion-descent",
        module="mapping.placement.refine.congestion_descent",
        refines=True,
        weight=1.0,
        about="annealed swaps and moves on a high power of link congestion",
    ),
)


@dataclass(frozen=True, slots=True)
class Link:
    """An entry with options: a link of a chain.

    Attributes
    ----------
    entry : Entry
    options : tuple of (str, int, float, str or bool)
        Options that are given, in that order; others keep their defaults.
    """

    entry: Entry
    options: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        said = ",".join(f"{key}={_text(value)}" for key, value in self.options)
        return f"{self.entry.name}:{said}" if said else self.entry.name

    @property
    def name(self) -> str:
        """Of the entry."""
        return self.entry.name

    @property
    def weight(self) -> float:
        """Of the entry."""
        return self.entry.weight

    def strategy(self) -> Strategy:
        """The strategy's function, with the options."""
        return partial(load_strategy(self.entry), **dict(self.options))

    def refiner(self) -> Refiner:
        """The refiner's generator function, with the options."""
        return partial(load_refiner(self.entry), **dict(self.options))


@dataclass(frozen=True, slots=True)
class Chain:
    """A strategy and the refiners that work on its result, in order.

    Attributes
    ----------
    strategy : Link or None
        None: the chain starts from the placement given, else in order.
    refiners : tuple of Link
    """

    strategy: Link | None
    refiners: tuple[Link, ...]

    def __str__(self) -> str:
        first = () if self.strategy is None else (self.strategy,)
        return "+".join(str(link) for link in first + self.refiners)

    @classmethod
    def parse(cls, text: str) -> Chain:
        """The chain written as ``strategy:option=value,...+refiner+...``; it may begin with a refiner.

        Raises
        ------
        UnknownName
            With the closest names; also for a strategy that is not first, and for an option.
        InvalidValue
            A value that does not suit its option.
        """
        known = {entry.name: entry for entry in ENTRIES}
        chain = []
        for place, part in enumerate(text.split("+")):
            name, options = split_options(part)
            if name not in known:
                raise UnknownName("strategy", name, known)
            entry = known[name]
            if place > 0 and not entry.refines:
                refiners = [entry.name for entry in ENTRIES if entry.refines]
                raise UnknownName("refiner", name, refiners, remedy=f"{name} can only come first")
            values = read_options(name, options, options_of(_load(entry))) if options else {}
            chain.append(Link(entry, tuple(values.items())))
        if chain[0].entry.refines:
            return cls(None, tuple(chain))
        return cls(chain[0], tuple(chain[1:]))


def load_strategy(entry: Entry) -> Strategy:
    """The strategy's function."""
    return cast(Strategy, _load(entry))


def load_refiner(entry: Entry) -> Refiner:
    """The refiner's generator function."""
    return cast(Refiner, _load(entry))


def _load(entry: Entry) -> Callable[..., Any]:
    module = importlib.import_module(entry.module)
    return cast(Callable[..., Any], module.refine if entry.refines else module.seat)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"
