"""The catalog of checks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mapping.checks.catalog import CHECKS, check, worst
from mapping.checks.finding import Severity, Subject
from registry.catalog import Entry
from registry.errors import UnknownName
from tests.support.checked_fabrics import fabric_of_cables


def test_a_fabric_without_tables_or_adapters_can_be_checked() -> None:
    fabric = fabric_of_cables(["a", "b"], [("a", "b")], set())
    assert check(Subject(fabric=fabric)) == ()
    assert worst(check(Subject(fabric=fabric))) is None


def test_an_unknown_check_is_refused_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="credit-loops"):
        check(Subject(fabric=fabric_of_cables(["a", "b"], [("a", "b")], set())), ["credit-loop"])


def test_every_check_has_its_own_function_and_findings_have_its_name() -> None:
    assert len({one.load() for one in CHECKS}) == len(CHECKS)
    cables = [("n1", "s1"), ("n1", "s2"), ("n2", "s1"), ("n2", "s2"), ("n3", "s1")]
    fabric = fabric_of_cables(["n1", "n2", "n3", "s1", "s2"], cables, {"s1", "s2"})
    assert [finding.check for finding in check(Subject(fabric=fabric))] == ["rails"]


def test_severities_have_names() -> None:
    assert [str(severity) for severity in Severity] == ["note", "warning", "error"]
    assert Severity.of("warning") is Severity.WARNING


def failing(subject: Subject) -> None:
    raise KeyError("rack")


def test_a_plug_in_that_fails_is_a_finding_and_the_other_checks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(name="odd", target=f"{__name__}:failing", about="", package="odds 1.0")
    monkeypatch.setitem(CHECKS._own, "odd", entry)
    subject = Subject(fabric=fabric_of_cables(["a", "s"], [("a", "s")], {"s"}))
    others = [one for one in check(subject) if one.check != "odd"]
    (found,) = check(subject, ["odd"])
    assert (found.severity, found.subject) == (Severity.WARNING, "odd")
    assert found.text == "the check odd of odds 1.0 failed: KeyError: 'rack'"
    monkeypatch.delitem(CHECKS._own, "odd")
    assert list(check(subject)) == others
    monkeypatch.setitem(CHECKS._own, "odd", replace(entry, package=""))
    with pytest.raises(KeyError):
        check(subject)
