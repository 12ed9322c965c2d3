"""Hosts, slots and ranks of a launcher's command: from its options, else from the environment of the job."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from almanac.job_environment import JobEnvironment, read_environment, read_host_file
from almanac.running.call import Call
from almanac.running.launchers import Launcher
from registry.errors import AlmanacError, Unplaced

ASK_SECONDS = 5.0
"""Longest time to wait for a launcher's answer."""
_HOST = re.compile(r"([^\s:,]+)(?::([1-9]\d*))?")


def hosts_of(call: Call, launcher: Launcher, environment: Mapping[str, str] = os.environ) -> JobEnvironment:
    """Return hosts, slots and ranks of a command.

    Raises:
        Unplaced: An option decides about the order, or ranks and hosts are not known or do not fit.
    """
    for option in call.options:
        if option.name in launcher.ordering:
            raise Unplaced(f"{option.words[0]} is given: it decides about the order")
    if ":" in call.program:
        raise Unplaced("several programs are started at once")
    found = _allocation(call, launcher, environment)
    nodes = call.count(launcher.nodes)
    if nodes is not None:
        if nodes > len(found.hosts):
            raise Unplaced(f"{nodes} hosts are asked for, and the job has {len(found.hosts)}")
        found = replace(found, hosts=found.hosts[:nodes], slots=found.slots[:nodes])
    each = call.count(launcher.per_host)
    if each is not None:
        found = replace(found, slots=(each,) * len(found.hosts))
    ranks = call.count(launcher.ranks) or (None if nodes or each else found.ranks) or sum(found.slots)
    if ranks > sum(found.slots):
        raise Unplaced(f"{ranks} ranks are more than the {sum(found.slots)} slots of {found.source}")
    return replace(found, ranks=ranks)


def _allocation(call: Call, launcher: Launcher, environment: Mapping[str, str]) -> JobEnvironment:
    """Return the hosts that the options name, else those of the job."""
    if launcher.asked:
        return _asked(call, launcher)
    named, file = call.last(launcher.hosts), call.last(launcher.host_files) or launcher.host_file or None
    if named is not None and file is not None:
        raise Unplaced("hosts are given twice, by name and by file")
    try:
        if file is not None:
            return read_host_file(file, file)
        if named is None:
            return read_environment(environment)
    except AlmanacError as error:
        raise Unplaced(str(error)) from error
    slots: Counter[str] = Counter()
    for text in named.split(","):
        match = _HOST.fullmatch(text)
        if match is None:
            raise Unplaced(f"{text!r} is no host")
        slots[match[1]] += int(match[2] or 1)
    return JobEnvironment(hosts=tuple(slots), slots=tuple(slots.values()), source="the hosts of the command")


def _asked(call: Call, launcher: Launcher) -> JobEnvironment:
    """Return the hosts that the launcher itself names, with equal slots, if the command uses all of them."""
    from ingest.formats.hostlists import expand

    words = [call.launcher[0], *launcher.asked]
    source = " ".join(words)
    try:
        done = subprocess.run(  # noqa: S603  # the launcher that the user starts
            words, capture_output=True, text=True, timeout=ASK_SECONDS, check=True
        )
        hosts = expand(done.stdout.strip(), path=source)
    except (OSError, subprocess.SubprocessError, AlmanacError) as error:
        raise Unplaced(f"{source}: {error}") from error
    nodes, ranks = call.count(launcher.nodes), call.count(launcher.ranks)
    if nodes != len(hosts):
        raise Unplaced(f"which of the {len(hosts)} hosts are used is not known before: give -N {len(hosts)}")
    if ranks is not None and ranks % nodes:
        raise Unplaced(f"{ranks} ranks do not fill {nodes} hosts equally")
    each = call.count(launcher.per_host) or (ranks or nodes) // nodes
    return JobEnvironment(hosts=hosts, slots=(each,) * nodes, source=source)
