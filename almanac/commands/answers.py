"""Answers as tables: a placement beside its baselines, a Pareto set, a curve of moved ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from almanac.output import print_table
from registry import units

if TYPE_CHECKING:
    from mapping.evaluation.report import PlacementReport
    from mapping.placement.moves.remapping import Curve
    from mapping.placement.partition.cores import CoreBinding
    from registry.model import Bound, Evaluation, Metrics

BOUNDED = (
    ("congestion_seconds", "worst link"),
    ("network_congestion_seconds", "worst network link"),
    ("hop_bytes", "hop-bytes"),
)
"""Metrics that have bounds, and how tables call them."""
COLUMNS = ("placement", "worst link", "worst network link", "hop-bytes", "dilation", "the worst link")


def show_answer(found: PlacementReport) -> None:
    """The one clear table, what it was computed on, and what it proves."""
    from mapping.evaluation.loaded_links import worst_link
    from registry.model import Metrics

    placement, bounds = found.placement, found.bounds
    assert found.in_order is not None
    assert found.random is not None
    rows = [
        _row("in order", Metrics.of(found.in_order), str(worst_link(found.fabric, found.in_order) or "")),
        _row("random, mean of 5", found.random, ""),
        _row("found", Metrics.of(found.evaluation), str(worst_link(found.fabric, found.evaluation) or "")),
        [
            "certified lower bound",
            units.text(bounds["congestion_seconds"].value, units.SECONDS),
            units.text(bounds["network_congestion_seconds"].value, units.SECONDS),
            f"{bounds['hop_bytes'].value:.4e}",
            "",
            "",
        ],
    ]
    title = (
        f"{found.case.profile.name}: {placement.ranks} ranks on {len(placement.allocation)} hosts of "
        f"{found.case.cluster}; objective {placement.objective}; routes: {placement.routing}, "
        f"{found.case.routing_reason}"
    )
    print_table(title, list(COLUMNS), rows)
    if found.curve is not None:
        show_curve(found.curve)
    for line in _remarks(found):
        click.echo(line)


def show_pareto(found: Sequence[PlacementReport]) -> None:
    """A row a placement, the least congested first."""
    from mapping.evaluation.loaded_links import worst_link
    from registry.model import Metrics

    rows = [
        _row(
            one.record_id or str(at),
            Metrics.of(one.evaluation),
            str(worst_link(one.fabric, one.evaluation) or ""),
        )
        for at, one in enumerate(found, start=1)
    ]
    print_table(
        "congestion against hop-bytes: no placement is worse in both than another", list(COLUMNS), rows
    )


def show_curve(curve: Curve) -> None:
    """Moved ranks against the metric that they gain in."""
    first = getattr(curve.points[0].score, curve.metric)
    rows = []
    for point in curve.points:
        gain = curve.gain(point)
        rows.append(
            [
                point.moved,
                getattr(point.score, curve.metric),
                f"{100 * gain / first:.1f} %" if first else "",
                gain / point.moved if point.moved else 0.0,
            ]
        )
    print_table("ranks that move", ["moved", curve.metric, "gain", "gain per moved rank"], rows)


def bound_lines(evaluation: Evaluation) -> list[str]:
    """A line a bounded metric: how far from the best possible at most, and why."""
    found = []
    for metric, label in BOUNDED:
        bound: Bound | None = evaluation.bounds.get(metric)
        if bound is not None and bound.value > 0:
            found.append(f"{label}: {bound.certifies(float(getattr(evaluation, metric)))}")
    return found


def _row(label: str, metrics: Metrics, where: str) -> list[str]:
    return [
        label,
        units.text(metrics.congestion_seconds, units.SECONDS),
        units.text(metrics.network_congestion_seconds, units.SECONDS),
        f"{metrics.hop_bytes:.4e}",
        f"{metrics.average_dilation:.3f}",
        where,
    ]


def _cores(binding: CoreBinding) -> list[str]:
    lines = [
        f"cores: {units.text(binding.crossing_bytes, units.BYTES)} cross NUMA domains within hosts, "
        f"{units.text(binding.crossing_bytes_in_order, units.BYTES)} with ranks in order on cores; "
        f"bytes x relative distance {binding.weighted_bytes:.4e}, "
        f"in order {binding.weighted_bytes_in_order:.4e}"
    ]
    if binding.without_layout:
        lines.append(
            f"{binding.without_layout} of {binding.hosts} hosts have no layout: ranks in order there"
        )
    return lines


def _remarks(found: PlacementReport) -> list[str]:
    placement = found.placement
    state = "" if placement.complete else " (interrupted: the best so far)"
    name = f"placement {found.record_id}" if found.record_id else "not saved"
    how = f"{placement.strategy} in {placement.seconds:.1f} s, {placement.steps} proposals"
    lines = [f"{name}, found by {how}{state}"]
    if found.case.present is not None:
        moved = int((found.case.present.host_of_rank != placement.host_of_rank).sum())
        lines.append(f"{moved} of {placement.ranks} ranks move")
    if found.cores is not None:
        lines += _cores(found.cores)
    if found.evaluation.background:
        lines.append(f"background {found.evaluation.background}")
    return [*lines, *bound_lines(found.evaluation)]
