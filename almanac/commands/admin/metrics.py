"""``almanac metrics``: print gauges for Prometheus."""

from __future__ import annotations

import click

from almanac.options.common import open_registry
from almanac.output.printing import write_text


@click.command("metrics")
@click.option(
    "--hottest",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="Busiest links to include per cluster.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="File, written completely or not at all (default: standard output).",
)
def command(hottest: int, output: str | None) -> None:
    """Print ages of sources, problems, busiest links and placement quality in the text format of Prometheus.

    For the textfile collector of the node exporter: `almanac metrics -o .../almanac.prom`.
    """
    from almanac.prometheus import gauges, text

    with open_registry() as registry:
        content = text(gauges(registry, hottest=hottest))
    write_text(output, content)
