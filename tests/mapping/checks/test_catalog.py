"""The catalog of checks."""

from __future__ import annotations

import pytest

from mapping.checks.catalog import CHECKS, check, worst
from mapping.checks.finding import Severity, Subject
from registry.errors import UnknownName
from tests.support.checked_fabrics import fabric_of_cables


def test_a_fabric_without_tables_or_adapters_can_be_checked() -> None:
    fabric = fabric_of_cables(["a", "b"], [("a", "b")], set())
    assert check(Subject(fabric=fabric)) == ()
    assert worst(check(Subject(fabric=fabric))) is None


def test_an_unknown_check_is_refused_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="credit-loops"):
        check(Subject(fabric=fabric_of_cables(["a", "b"], [("a", "b")], set())), ["credit-loop"])


def test_every_check_has_its_own_name() -> None:
    import importlib

    modules = [importlib.import_module(one.load().__module__) for one in CHECKS]
    names = [getattr(module, "NAMES", None) or (module.NAME,) for module in modules]
    assert tuple(dict.fromkeys(name for group in names for name in group)) == CHECKS.names
    assert [str(severity) for severity in Severity] == ["note", "warning", "error"]
    assert Severity.of("warning") is Severity.WARNING
