"""A run of a launcher: its words and its environment, with the order of the ranks applied.

What the MPI library counts during a run: where it writes that, and its profile in the registry.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.job_environment import JobEnvironment
from almanac.kernel_cache import choose_kernel_cache
from almanac.running.call import Call, parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import Launcher, Torchrun, launcher_of, torchrun_of, torchrun_words
from almanac.running.order import FOLDER, Order, Wanted, order_of_run, order_path
from almanac.running.processes import PreparedChild, Steps, answer_within, attend
from almanac.running.verification import verify_order
from registry.errors import AlmanacError, Unplaced, Unverified
from registry.progress import silent

if TYPE_CHECKING:
    from almanac.settings import Settings
    from registry.model.job import MeasuredRun
    from registry.registry import Registry


RECORDINGS = "recordings"
"""Folder of recordings within the program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording under way."""

    folder: Path
    """Where the MPI library writes what each rank sent; it must be there on all hosts."""
    application: str
    """Name of the profile."""

    @property
    def has_counts(self) -> bool:
        """True if a rank has written what it sent."""
        return any(self.folder.iterdir())

    def useless(self, exit_code: int) -> str | None:
        """Return why a run that has ended has no profile, or None if it has one."""
        if exit_code != 0:
            return f"the launcher ended with exit code {exit_code}"
        if not self.has_counts:
            return "the program's MPI library counted no messages (Open MPI does)"
        return None

    def delete(self) -> None:
        """Delete what was written."""
        shutil.rmtree(self.folder, ignore_errors=True)


def new_recording(launcher: Launcher, home: Path, application: str) -> tuple[Recording, Mapping[str, str]]:
    """Return a new recording, and the variables with which the launcher's MPI library writes it.

    Raises:
        Unplaced: It counts no messages, or there is no place for them.
    """
    if not launcher.recording:
        raise Unplaced(f"{launcher.name} counts no messages by itself")
    folder = home / RECORDINGS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(dir=folder))
    except OSError as error:
        raise Unplaced(f"{folder}: {error.strerror}") from error
    variables = {name: value.format(file=path / "rank") for name, value in launcher.recording.items()}
    return Recording(folder=path, application=application), variables


def save_recording(registry: Registry, recording: Recording) -> str:
    """Save a recording as the newest profile of its application; return the id of the profile.

    Raises:
        AlmanacError: It cannot be read or saved.
    """
    from ingest.options import Options
    from ingest.pipeline import plan

    intake = plan([str(recording.folder)], Options(name=recording.application))
    profiles = tuple(replace(one, application=recording.application) for one in intake.profiles)
    registry.save(replace(intake, profiles=profiles))
    return registry.profiles.read(recording.application).id


SEARCH_SHARE = 0.6
"""Part of the time for the search itself; the rest is for reading and evaluating."""
SAVE_SECONDS, LOAD_SECONDS = 5.0, 3.0
"""Longest time to save what was measured, and to estimate the load of other jobs before: the job waits."""
SEARCH_GOES_ON = 120.0
"""How much longer a search may take for the next run: the first one on a machine compiles its kernels."""
NOT_AS_ORDERED = "not placed: the launcher starts ranks on other hosts than asked for"
NOT_VERIFIED = "not placed: where the launcher starts ranks could not be seen"
NOT_RECORDED, NOT_MEASURED = "nothing is recorded", "not measured"
WARNINGS = (NOT_AS_ORDERED, NOT_VERIFIED, NOT_RECORDED, NOT_MEASURED)
"""Beginnings of reasons that are always told."""
VERIFY_SECONDS = 30.0
"""Longest time of the first run of a launcher on a cluster to see whether it takes the order."""
TORCHRUN_FORMAT = "torchrun-rank-order"
"""Format of an order of hosts, one on each line."""
RECORD_SECONDS = 60.0
"""Longest time to save a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A launcher to start."""

    words: tuple[str, ...]
    """The launcher and its arguments."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to set."""
    reasons: tuple[str, ...] = ()
    """What was found and how it is applied, as sentences."""
    described: Mapping[str, object] = field(default_factory=dict)
    """Fields of a `MeasuredRun` that are known before; empty if the run cannot be measured."""
    recording: Recording | None = None
    placed: bool = False
    """True if the words or the environment give an order to the launcher."""


def prepare_run(
    child: PreparedChild,
    settings: Settings,
    wanted: Wanted,
    seconds: float,
    words: Sequence[str],
    *,
    verify: bool = False,
) -> Run:
    """Return the command that runs the ranks where they are placed, or records what they send.

    Args:
        child: Child process that reads the registry.
        seconds: Longest time of that since the child was started; what it finds later is stored for the next
            run.
        verify: True to see first whether the launcher starts the ranks there, unless it was seen on this
            cluster.

    Raises:
        Unplaced: The job must run in its own order, and no recording is asked for.
    """
    try:
        return _placed_run(child, settings, wanted, seconds, words, verify=verify)
    except Unplaced as error:
        if not wanted.record:
            raise
        launcher, call = _launcher_and_call(words)  # a recording needs to know neither hosts nor cluster
        run = replace(unplaced_run(words), reasons=(f"{NOT_MEASURED}: {error}",))
        return recorded(run, launcher, settings.home, wanted.name or call.application)


def _placed_run(
    child: PreparedChild,
    settings: Settings,
    wanted: Wanted,
    seconds: float,
    words: Sequence[str],
    *,
    verify: bool,
) -> Run:
    """Do as `prepare_run` for a job whose hosts and cluster are known."""
    launcher, call, job = read_command(words)
    wanted = replace(wanted, program=call.application, verify=verify)
    torchrun = torchrun_of(call, launcher, job, os.environ)
    if torchrun is not None:
        each = torchrun.ranks_per_host
        job = replace(job, slots=(each,) * len(job.hosts), ranks=each * len(job.hosts))
        launcher = replace(launcher, format=TORCHRUN_FORMAT, consecutive=True)
        wanted = replace(wanted, program=torchrun.call.application)
        words = in_order(call, torchrun, job)

    work = partial(order_of_run, settings, wanted, job, launcher, seconds * SEARCH_SHARE)
    order = child.answer(seconds, work, SEARCH_GOES_ON)
    run, verified, typed = Run(words=tuple(words), reasons=order.reasons), None, call
    if order.text:
        if torchrun is not None:
            call = replace(call, program=torchrun.words(order.hosts[0], placed=True))
        run = apply_order(call, launcher, order, settings.home / FOLDER)
        if not launcher.label:
            run = replace(run, reasons=(*run.reasons, f"an order cannot be verified with {launcher.name}"))
        elif verify and not order.verified:
            run, verified = verified_run(run, call, launcher, order, settings.home / FOLDER)
            if not verified:
                order = replace(order, placement="")
                run = replace(run, words=tuple(words), environment={}, placed=False)
    found = f"{job.ranks} ranks on {len(job.hosts)} hosts, from {job.source}"
    described = _described(typed, job, launcher, order) | {"verified": verified}
    run = replace(run, reasons=(found, *run.reasons), described=described)
    if order.profile or wanted.in_order:
        return run
    return recorded(run, launcher, settings.home, order.application)


def _described(call: Call, job: JobEnvironment, launcher: Launcher, order: Order) -> dict[str, object]:
    """Return the fields of a `MeasuredRun` that are known before the run.

    Args:
        call: As it was typed: an order changes torchrun's master, and both orders are one program.
    """
    return {
        **{name: getattr(order, name) for name in ("cluster", "application", "ranks", "profile")},
        "program": hashlib.sha256("\0".join(call.command).encode()).hexdigest()[:16],
        "hosts": job.hosts,
        "slots": job.slots,
        "job": job.job,
        "launcher": launcher.name,
        "placement": order.placement or None,
    }


def read_command(words: Sequence[str]) -> tuple[Launcher, Call, JobEnvironment]:
    """Return the launcher of a command, its options, and the hosts and ranks that it starts.

    Raises:
        Unplaced: One of these is not known, or an option decides about the order.
    """
    if torchrun_words(words):
        raise Unplaced(
            "torchrun starts one host: put almanac run before the srun that starts it on all hosts"
        )
    launcher, call = _launcher_and_call(words)
    return launcher, call, hosts_of(call, launcher)


def _launcher_and_call(words: Sequence[str]) -> tuple[Launcher, Call]:
    """Return the launcher of a command and its options; `Unplaced` is raised if one of these is not known."""
    launcher = launcher_of(words)
    return launcher, parse_call(words, launcher.values, 1 + len(launcher.subcommand))


def in_order(call: Call, torchrun: Torchrun, job: JobEnvironment) -> tuple[str, ...]:
    """Return the words that start torchrun in the order of the hosts, with node ranks and a master."""
    return replace(
        call, program=torchrun.words(torchrun.value("master-addr", job.hosts[0]), placed=False)
    ).words()


def unplaced_run(words: Sequence[str]) -> Run:
    """Return a command as it was given; torchrun without node ranks gets those of the hosts in order."""
    try:
        launcher, call, job = read_command(words)
        torchrun = torchrun_of(call, launcher, job, os.environ)
    except Exception:  # why, was said before
        torchrun = None
    return Run(words=tuple(words) if torchrun is None else in_order(call, torchrun, job))


def recorded(run: Run, launcher: Launcher, home: Path, application: str) -> Run:
    """Return a run whose MPI library writes what each rank sent, if it can do that."""
    try:
        recording, variables = new_recording(launcher, home, application)
    except Unplaced as error:
        return replace(run, reasons=(*run.reasons, f"{NOT_RECORDED}: {error}"))
    described = {**run.described, "recorded": True} if run.described else {}
    return replace(run, environment=variables, described=described, recording=recording)


def verified_run(
    run: Run, call: Call, launcher: Launcher, order: Order, folder: Path
) -> tuple[Run, bool | None]:
    """Return a run with the reason whether its launcher starts each rank where the order has it, and whether.

    None means that this could not be seen, perhaps because the launcher refuses the order: the job runs in
    its own one then, and the next run tries again.
    """
    begin = len(call.launcher)
    added = run.words[begin : begin + len(launcher.added)]
    try:
        found = verify_order(
            call, launcher, order.hosts, (added, {**os.environ, **run.environment}), folder, VERIFY_SECONDS
        )
    except Unverified as error:
        return replace(run, reasons=(*run.reasons, f"{NOT_VERIFIED}: {error}")), None
    if found.misplaced:
        more = f", and {len(found.misplaced) - 1} more" if len(found.misplaced) > 1 else ""
        reason = f"{NOT_AS_ORDERED}: {found.misplaced[0]}{more}"
        return replace(run, reasons=(*run.reasons, reason)), False
    return replace(run, reasons=(*run.reasons, f"the order is verified by {found.by}")), True


def apply_order(call: Call, launcher: Launcher, order: Order, folder: Path) -> Run:
    """Return a launcher's command with an order of its ranks, whose file is written into a folder.

    Raises:
        Unplaced: The file cannot be written.
    """
    path = _write(folder, order, launcher)
    values = {"file": str(path), "ranks": str(len(order.hosts) if launcher.consecutive else order.ranks)}
    return Run(
        words=call.words([word.format(**values) for word in launcher.added], launcher.replaced),
        environment={name: value.format(**values) for name, value in launcher.environment.items()},
        reasons=(*order.reasons, f"{launcher.name} takes the order from {path}"),
        placed=True,
    )


def measure_run(run: Run, steps: Steps | None) -> tuple[int, MeasuredRun | None]:
    """Run a launcher to its end; return its exit code (negative: the signal) and what was measured.

    Nothing is measured if too little is known of the run.

    Raises:
        OSError: It cannot be started.
    """
    from registry.model.job import MeasuredRun

    begin = datetime.now(UTC)
    code, seconds = attend(run.words, {**os.environ, **run.environment}, steps)
    if not run.described:
        return code, None
    measured = MeasuredRun(
        **run.described,  # type: ignore[arg-type]
        started_at=begin,
        wall_seconds=seconds,
        step_seconds=None if steps is None else steps.seconds,
        steps=0 if steps is None else steps.count,
        exit_code=code,
    )
    return code, measured


def save_run(
    settings: Settings, exit_code: int, measured: MeasuredRun | None, recording: Recording | None = None
) -> tuple[str | None, str | None]:
    """Save a measured run, and what was recorded, in a child process with a time limit.

    A recording that was saved, or holds nothing, is deleted.

    Returns:
        identity: Of the measured run, if there is one.
        lost: Why the recording is not saved; the run is saved without it. None if it is, or there is none.

    Raises:
        Unplaced: Nothing is saved.
    """
    useless = None
    if recording is not None:
        measured = measured and replace(measured, recorded=recording.has_counts)
        useless = recording.useless(exit_code)
        if useless is not None:
            recording.delete()
            recording = None
    load = None if measured is None else _other_load(settings, measured)

    def work() -> tuple[str | None, str | None]:
        lost, run = useless, measured
        with settings.open_registry(silent) as registry:
            if recording is not None:
                try:
                    profile = save_recording(registry, recording)
                    run = run and replace(run, profile=profile)
                except AlmanacError as error:
                    lost = f"{error}; the recording is in {recording.folder}"
                    run = run and replace(run, recorded=False)
            return None if run is None else registry.measured_runs.save(run, load), lost

    if measured is None and recording is None:
        return None, useless
    identity, lost = answer_within(SAVE_SECONDS if recording is None else RECORD_SECONDS, work)
    if recording is not None and lost is None:
        recording.delete()
    return identity, lost


def _other_load(settings: Settings, measured: MeasuredRun) -> float | None:
    """Return the load of other jobs during a run, or None if it cannot be estimated within `LOAD_SECONDS`."""

    def work() -> float | None:
        with settings.open_registry(silent) as registry:
            if not registry.measured_runs.other_jobs(measured):
                return 0.0
            choose_kernel_cache()
            from mapping.questions.live import other_load

            return other_load(registry, measured)

    if measured.profile is None or measured.exit_code != 0:  # it is not compared
        return None
    try:
        return answer_within(LOAD_SECONDS, work)
    except Unplaced:
        return None


def _write(folder: Path, order: Order, launcher: Launcher) -> Path:
    """Write the launcher's file, named by the placement, so that a repeated run uses the same one."""
    path = order_path(folder, order.placement, launcher)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        with open(
            part, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as file:
            file.write(order.text)
        part.replace(path)
    except OSError as error:
        raise Unplaced(f"{path} cannot be written: {error.strerror}") from error
    return path
