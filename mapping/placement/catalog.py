"""The strategies and refiners by name, and the syntax of chains of them.

A new one is one file and one line here: a strategy has a function ``place_ranks``, a refiner a function
``refine``. Options are set in the text of a chain: ``greedy:starts=32+pair-exchange``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate
from registry.catalog import Catalog, Choice, Entry, read_options, split_options
from registry.errors import UnknownName
from registry.model import Ints

Strategy = Callable[[Problem, np.random.Generator], Ints]
"""Function that returns a placement by host index; it may ignore pins."""
Refiner = Callable[[Problem, Ints, Deadline, np.random.Generator], Iterator[Candidate]]
"""Generator that improves a placement and leaves pinned ranks in place; see `mapping.placement.refine`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Entry):
    """A strategy or refiner by name.

    Attributes
    ----------
    refines : bool
        True for a refiner, False for a strategy.
    weight : float
        A refiner's share of the time of its chain, relative to the chain's other refiners.
    """

    refines: bool = False
    weight: float = 0.0


STRATEGIES = Catalog(
    "strategy",
    (
        Method(
            name="in-order",
            target="mapping.placement.strategies.in_order:place_ranks",
            about="ranks fill the slots in order",
        ),
        Method(
            name="random",
            target="mapping.placement.strategies.random:place_ranks",
            about="every choice of slots is equally likely",
        ),
        Method(
            name="round-robin",
            target="mapping.placement.strategies.round_robin:place_ranks",
            about="ranks go to the hosts in turn (Li et al. 2020, section 5.2)",
        ),
        Method(
            name="random-local",
            target="mapping.placement.strategies.local_random:place_ranks",
            about="ranks that exchange most on near random hosts (Orduña et al. 2004, section 5.2)",
        ),
        Method(
            name="greedy",
            target="mapping.placement.strategies.greedy:place_ranks",
            about="heaviest edge next, on the closest free host (Hoefler and Snir 2011, Algorithm 1)",
        ),
        Method(
            name="recursive-bisection",
            target="mapping.placement.strategies.recursive_bisection:place_ranks",
            about="both graphs cut into halves by METIS (Hoefler and Snir 2011, Algorithm 2)",
        ),
        Method(
            name="rcm",
            target="mapping.placement.strategies.rcm:place_ranks",
            about="both graphs in reverse Cuthill-McKee order (Hoefler and Snir 2011, section 3.3)",
        ),
        Method(
            name="multilevel",
            target="mapping.placement.strategies.multilevel:place_ranks",
            about="ranks cut by METIS along the hierarchy that hosts form by distance",
        ),
        Method(
            name="spectral",
            target="mapping.placement.strategies.spectral:place_ranks",
            about="ranks along a torus's axes or a hierarchy's levels by eigenvectors of the guest graph",
        ),
        Method(
            name="layout",
            target="mapping.placement.strategies.layout:place_ranks",
            about="in order, spectral (tori) or multilevel (elsewhere): whichever has less hop-bytes",
        ),
        Method(
            name="multicore",
            target="mapping.placement.strategies.multicore:place_ranks",
            about="one group of ranks per host by METIS, then groups by another strategy (2011, section 3.4)",
        ),
        Method(
            name="random-search",
            target="mapping.placement.strategies.random_search:place_ranks",
            about="random exchanges from 10 random mappings, till 40 in a row fail (Orduña et al. 2004)",
        ),
        Method(
            name="ohtma",
            target="mapping.placement.strategies.ohtma:place_ranks",
            about="ranks by volume, hosts by compactness, best pairs exchanged (Li et al. 2020, Algorithm 1)",
        ),
        Method(
            name="ohtma-exchange",
            target="mapping.placement.refine.ohtma_exchange:refine",
            refines=True,
            weight=1.0,
            about="the best pair of all, P/2 times, then the best prefix (Li et al. 2020, lines 20 to 36)",
        ),
        Method(
            name="threshold-accepting",
            target="mapping.placement.refine.threshold_accepting:refine",
            refines=True,
            weight=3.0,
            about="random swaps, kept if congestion rises little (Hoefler and Snir 2011, section 3.5)",
        ),
        Method(
            name="pair-exchange",
            target="mapping.placement.refine.pair_exchange:refine",
            refines=True,
            weight=1.0,
            about="annealed swaps and moves on hop-bytes",
        ),
        Method(
            name="congestion-descent",
            target="mapping.placement.refine.congestion_descent:refine",
            refines=True,
            weight=1.0,
            about="annealed swaps and moves on a high power of link congestion",
        ),
    ),
)
"""All strategies and refiners."""


@dataclass(frozen=True, slots=True)
class Link(Choice[Method]):
    """A link of a chain: a strategy or refiner, and its options in the order in which they are given."""

    @property
    def weight(self) -> float:
        """Weight of the refiner."""
        return self.entry.weight

    def strategy(self) -> Strategy:
        """Return the strategy's function with the options applied."""
        return self.function()

    def refiner(self) -> Refiner:
        """Return the refiner's generator function with the options applied."""
        return self.function()


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
        chain = []
        for place, part in enumerate(text.split("+")):
            name, options = split_options(part)
            entry = STRATEGIES.find(name)
            if place > 0 and not entry.refines:
                refiners = [entry.name for entry in STRATEGIES if entry.refines]
                raise UnknownName("refiner", name, refiners, remedy=f"{name} can only come first")
            values = read_options(name, options, entry.options()) if options else {}
            chain.append(Link(entry, tuple(values.items())))
        if chain[0].entry.refines:
            return cls(None, tuple(chain))
        return cls(chain[0], tuple(chain[1:]))
