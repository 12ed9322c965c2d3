"""Deletion of observations, jobs, profiles and runs: refused, rehearsed and carried out, on both servers."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.database.driver import Database
from registry.maintenance.deletion import delete_observation
from registry.model.intake import Intake
from registry.registry import Registry
from tests.registry.fabrics.test_fabrics import CONTENTS, derived, save


def nodes(database: Database) -> dict[str, int]:
    """Return the number of nodes by label."""
    rows = database.query("MATCH (n) RETURN labels(n)[0] AS label, count(n) AS count")[1]
    return {label: count for label, count in rows if label != "Schema"}


@given(
    seen=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=6),
    data=st.data(),
)
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_after_random_deletions_the_graph_is_the_one_built_from_the_rest(
    registry: Registry, seen: list[tuple[int, int]], data: st.DataObject
) -> None:
    from tests.conftest import empty

    empty(registry.database)
    for minute, index in seen:
        save(registry, CONTENTS[index], minute)
    ids = [one.id for one in registry.fabrics.observations("toy")]
    gone = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids) - 1))
    for identity in gone:
        delete_observation(registry.database, identity)
    left = registry.fabrics.observations("toy")
    assert {one.id for one in left} == set(ids) - set(gone)
    for one in left:
        assert one.snapshot is not None
        fabric = registry.fabrics.read_content(one.snapshot).fabric
        registry.save(Intake(cluster="new", observed_at=one.at, fabric=fabric, source="test"))
    assert derived(registry.database, "toy") == derived(registry.database, "new")
    before = derived(registry.database, "toy")
    registry.fabrics.rebuild("toy")
    assert derived(registry.database, "toy") == before
    assert nodes(registry.database)["Content"] == 2 * len({one.snapshot for one in left})
