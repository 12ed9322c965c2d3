"""How a routing and its options are written."""

from __future__ import annotations

import pytest

from mapping.routing.catalog import ROUTINGS, Routing, build_routes
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric


def pair() -> Fabric:
    return Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)


@pytest.mark.parametrize("entry", ROUTINGS, ids=lambda entry: entry.name)
def test_a_name_alone_is_its_own_canonical_text(entry: object) -> None:
    name = entry.name  # type: ignore[attr-defined]
    assert str(Routing.parse(name)) == name


def test_routes_are_named_by_the_canonical_text() -> None:
    assert build_routes("shortest-paths", pair(), [0, 1]).name == "shortest-paths"
    assert build_routes(Routing.parse("shortest-paths"), pair(), [0, 1]).name == "shortest-paths"


def test_an_option_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownName, match="shortest-paths has none"):
        build_routes("shortest-paths:paths=3", pair(), [0, 1])


def test_rails_are_no_option_of_the_text() -> None:
    with pytest.raises(UnknownName, match="rails"):
        Routing.parse("shortest-paths:rails=same-rail")


def test_an_option_without_a_value_is_refused() -> None:
    with pytest.raises(InvalidValue, match="KEY=VALUE"):
        Routing.parse("shortest-paths:paths")
