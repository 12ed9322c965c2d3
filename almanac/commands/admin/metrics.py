"""``almanac metrics``: Prometheus text for the monitoring that is there already."""

from __future__ import annotations

import click

from almanac.options.common import open_registry
from almanac.output.printing import write_text


@click.command("metrics")
@click.option(
    "--hottest", type=click.IntRange(0, 1000), default=10, show_default=True, help="Links a cluster."
)
@click.option(
    "--output", "-o", metavar="FILE", help="Written whole or not at all (default: standard output)."
)
def command(hottest: int, output: str | None) -> None:
    """Source ages, findings, hottest links and placement quality as Prometheus text.

    For the textfile collector of the node exporter: `almanac metrics -o .../almanac.prom`.
    """
    from almanac.gauges import gauges
    from almanac.prometheus import text

    with open_registry() as registry:
        told = text(gauges(registry, hottest=hottest))
    write_text(output, told)
