"""The strategies and refiners by name, and the syntax of chains of them.

A new one is one file and one line here: a strategy has a function ``place_ranks``, a refiner a function
``refine``. Options are set in the text of a chain: ``greedy:starts=32+pair-exchange``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.candidate import Candidate
from mapping.placement.problem import Problem
from registry.catalog import Catalog, Choice, Entry, PlugIns, read_options, split_options
from registry.errors import InvalidValue, UnknownName
from registry.model import Ints

Strategy = Callable[[Problem, np.random.Generator], Ints]
"""Function that returns a placement by host index; it may ignore pins."""
Refiner = Callable[[Problem, Ints, Deadline, np.random.Generator], Iterator[Candidate]]
"""Generator that improves a placement and leaves pinned ranks in place; see `mapping.placement.candidate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Entry):
    """A strategy or refiner by name."""

    refines: bool = False
    """True for a refiner, False for a strategy."""
    weight: float = 1.0
    """A refiner's share of the time of its chain, relative to the chain's other refiners."""
    function: Strategy | None = None
    """Strategy that a caller gave as a function; it has no target."""

    def load(self) -> Any:
        """Return the function."""
        return self.function or Entry.load(self)


def _strategy(module: str, about: str, name: str = "", function: str = "place_ranks") -> Method:
    """Return the strategy of a module; default name: that of the module."""
    target = f"mapping.placement.methods.{module}:{function}"
    return Method(name=name or module.replace("_", "-"), target=target, about=about)


def _refiner(module: str, about: str, weight: float = 1.0, name: str = "") -> Method:
    target = f"mapping.placement.methods.{module}:refine"
    return Method(
        name=name or module.replace("_", "-"), target=target, about=about, refines=True, weight=weight
    )


STRATEGIES = Catalog(
    "strategy",
    (
        _strategy("baselines", "ranks fill the slots in order", "in-order", "place_in_order"),
        _strategy("baselines", "every choice of slots is equally likely", "random", "place_at_random"),
        _strategy(
            "baselines",
            "ranks go to the hosts in turn (Li et al. 2020, section 5.2)",
            "round-robin",
            "place_in_turn",
        ),
        _strategy(
            "baselines",
            "ranks that exchange most on near random hosts (Orduña et al. 2004, section 5.2)",
            name="random-local",
            function="place_random_local",
        ),
        _strategy(
            "greedy",
            "heaviest edge next, on the closest free host (Hoefler and Snir 2011, Algorithm 1)",
            function="place_greedily",
        ),
        _strategy(
            "bisection",
            "both graphs cut into halves by METIS (Hoefler and Snir 2011, Algorithm 2)",
            name="recursive-bisection",
        ),
        _strategy("rcm", "both graphs in reverse Cuthill-McKee order (Hoefler and Snir 2011, section 3.3)"),
        _strategy(
            "multicore",
            "ranks cut by METIS along the hierarchy that hosts form by distance",
            name="multilevel",
            function="place_multilevel",
        ),
        _strategy(
            "spectral",
            "ranks along a torus's axes or a hierarchy's levels by eigenvectors of the guest graph",
        ),
        _strategy(
            "digits",
            "digits of rank numbers become digits of hosts' coordinates, in the best order",
            name="digit-permutation",
        ),
        _strategy(
            "greedy",
            "in order, spectral (tori), multilevel (elsewhere) or digit-permutation: the least hop-bytes",
            name="layout",
            function="place_by_layout",
        ),
        _strategy(
            "multicore",
            "one group of ranks per host by METIS, then groups by another strategy (2011, section 3.4)",
            function="place_multicore",
        ),
        _strategy(
            "baselines",
            "random exchanges from 10 random mappings, till 40 in a row fail (Orduña et al. 2004)",
            name="random-search",
            function="place_by_random_search",
        ),
        _strategy(
            "ohtma",
            "ranks by volume, hosts by compactness, best pairs exchanged (Li et al. 2020, Algorithm 1)",
        ),
        _refiner(
            "ohtma",
            "the best pair of all, P/2 times, then the best prefix (Li et al. 2020, lines 20 to 36)",
            name="ohtma-exchange",
        ),
        _refiner(
            "threshold_accepting",
            "random swaps, kept if congestion rises little (Hoefler and Snir 2011, section 3.5)",
            weight=3.0,
        ),
        _refiner(
            "digits",
            "further orders of digits of rank numbers, while they help",
            weight=0.5,
            name="digit-search",
        ),
        _refiner("pair_exchange", "annealed swaps and moves on hop-bytes"),
        _refiner("congestion_descent", "annealed swaps and moves on a high power of link congestion"),
    ),
    PlugIns(group="strategies", entry=Method, values={"refines": False}),
    PlugIns(group="refiners", entry=Method, values={"refines": True}),
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
    """A strategy and the refiners that work on its result, in order."""

    strategy: Link | None
    """None: the chain starts from the placement given, else in order."""
    refiners: tuple[Link, ...]

    def __str__(self) -> str:
        first = () if self.strategy is None else (self.strategy,)
        return "+".join(str(link) for link in first + self.refiners)

    @classmethod
    def of(cls, strategy: Strategy) -> Chain:
        """Return the chain of a caller's function alone.

        Raises:
            InvalidValue: No function.
        """
        if not callable(strategy):
            raise InvalidValue("strategies", f"{strategy!r} is neither a name nor a function")
        name = getattr(strategy, "__name__", type(strategy).__name__)
        return cls(Link(Method(name=name, target="", about="", function=strategy)), ())

    @classmethod
    def parse(cls, text: str) -> Chain:
        """Parse a chain written as ``strategy:option=value,...+refiner+...``; it may begin with a refiner.

        Raises:
            UnknownName: With the closest names; also for a strategy that is not first, and for an option.
            InvalidValue: A value that does not suit its option.
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
