"""The table of measured gains: medians, gains and verdicts by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dashboard.tables.measured import Verdict, gain_text, gains_table, times_text, verdict
from mapping.traffic.measured_gain import MeasuredGain
from registry.model.measured_run import StoredMeasuredRun
from tests.support.fat_tree import at

RUN = StoredMeasuredRun(
    id="m1",
    recorded_at=at(9),
    cluster="toy",
    application="cg",
    program="x",
    ranks=4,
    hosts=("a", "b"),
    slots=(2, 2),
    launcher="MPICH 4",
    placement="p1",
    started_at=at(5),
    wall_seconds=1.0,
    congestion_seconds=2.0,
    in_order_congestion_seconds=3.0,
)
WORSE = MeasuredGain(run=RUN, placed=(1.2, 1.3, 1.1), in_order=(1.0, 0.9, 0.95), per_step=False)
FASTER = replace(WORSE, placed=(0.004, 0.005, 0.006, 0.007), in_order=(0.009, 0.011, 0.01), per_step=True)
ALONE = replace(WORSE, placed=(2.0,), in_order=())


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (WORSE, Verdict.WORSE),
        (FASTER, Verdict.NOT_WORSE),
        (replace(WORSE, placed=(1.2, 1.3)), Verdict.OPEN),
        (replace(WORSE, in_order=(1.0, 0.9)), Verdict.OPEN),
        (ALONE, Verdict.OPEN),
    ],
)
def test_the_verdict_is_that_of_the_rule_and_open_with_few_runs(one: MeasuredGain, found: Verdict) -> None:
    assert verdict(one) == found


def test_a_row_has_medians_gains_and_numbers_of_runs() -> None:
    first, second, third = gains_table([WORSE, FASTER, ALONE]).to_dict("records")
    assert (first["placed (s)"], first["in order (s)"], first["runs placed"]) == (1.2, 0.95, 3)
    assert first["estimated gain"] == 1.5
    assert first["measured gain"] == pytest.approx(0.95 / 1.2)
    assert first["verdict"] == "▲ measured worse than in order"
    assert (first["time of"], first["launcher"], first["placement"]) == ("run", "MPICH 4", "p1")
    assert (second["runs placed"], second["runs in order"], second["time of"]) == (4, 3, "step")
    assert second["measured gain"] == pytest.approx(0.01 / 0.0055)
    assert second["verdict"] == "● not worse than in order"
    assert math.isnan(third["measured gain"])
    assert math.isnan(third["in order (s)"])
    assert third["runs in order"] == 0
    assert math.isnan(first["other load placed (%)"])
    (loaded,) = gains_table([replace(WORSE, placed_other_load=0.0, in_order_other_load=0.1234)]).to_dict(
        "records"
    )
    assert (loaded["other load placed (%)"], loaded["other load in order (%)"]) == (0.0, 12.3)
    assert gains_table([]).empty


def test_texts_name_medians_and_runs() -> None:
    assert times_text(WORSE) == "a run: 1.2 s placed (3 runs), 950 ms in order (3 runs)"
    assert times_text(FASTER) == "a step: 5.5 ms placed (4 runs), 10 ms in order (3 runs)"
    assert times_text(ALONE) == "a run: 2 s placed (1 run)"
    assert (gain_text(WORSE.gain), gain_text(FASTER.gain), gain_text(None)) == ("0.79 ×", "1.82 ×", "–")
