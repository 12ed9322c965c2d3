"""How much faster than recorded a trace has to be sent for the network to be the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Callable

from mapping.simulation.messages import Messages, from_trace
from registry.errors import InvalidValue
from registry.model.simulation import Simulation
from registry.model.trace import Trace


def saturating_scale(trace: Trace, run: Callable[[Messages], Simulation]) -> float:
    """The scale for `from_trace` at which a trace offers on average what the network can deliver at most.

    The paper of 2004 decreases times until the network saturates (section 5.1) and does not say how far. Here
    all messages are offered at once, in each rank's order; the time that the network takes for them is the
    span that the trace is shortened to. Every larger scale saturates more.

    Parameters
    ----------
    run : callable
        Simulates messages, over the network and from the placement in question.

    Raises
    ------
    InvalidValue
        The trace spans no time, or the network takes none for it: no scale is better than another.
    """
    seconds = run(from_trace(trace, math.inf)).completion_seconds
    if not (trace.span_seconds > 0 and seconds > 0):
        raise InvalidValue("saturating_scale", f"{trace.span_seconds:g} s are sent in {seconds:g} s")
    return trace.span_seconds / seconds
