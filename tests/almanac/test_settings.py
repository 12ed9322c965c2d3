"""Where settings come from, and which are refused; files of secrets, the job around, folders of kernels."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from almanac.commands.serve import server_command
from almanac.dashboard_page import access_of
from almanac.job_environment import HOST_FILES, JobEnvironment, read_environment
from almanac.kernel_cache import VARIABLE, choose_kernel_cache
from almanac.settings import environment_of, load_settings, read_secret
from registry.errors import ConfigError, InputError
from tests.almanac.conftest import SLURM


def config(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return {"ALMANAC_CONFIG": str(path)}


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    environment = config(tmp_path, 'db = "bolt://file:1"\n')
    assert load_settings(None, environment).db == "bolt://file:1"
    assert load_settings("embedded", environment).db is None
    environment["ALMANAC_DB"] = "bolt://environment:2"
    assert load_settings(None, environment).db == "bolt://environment:2"
    settings = load_settings("bolt://option:3", environment)
    assert (settings.db, settings.origin["db"]) == ("bolt://option:3", "command line")
    environment = config(tmp_path, "") | {"ALMANAC_HOME": str(tmp_path / "data"), "ALMANAC_IDLE_SECONDS": "5"}
    settings = load_settings(None, environment)
    assert (settings.db, settings.home, settings.idle_seconds) == (None, tmp_path / "data", 5)
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(None, {"ALMANAC_CONFIG": str(tmp_path / "nowhere.toml")})


def test_a_password_comes_from_the_environment_or_a_file_that_only_the_owner_reads(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hidden\n")
    secret.chmod(0o600)
    environment = config(tmp_path, f'db_password_file = "{secret}"\n')
    settings = load_settings(None, environment)
    assert settings.password == "hidden"
    assert "hidden" not in repr(settings)
    secret.chmod(0o640)
    with pytest.raises(ConfigError, match="other users can read it"):
        load_settings(None, environment)
    environment["ALMANAC_DB_PASSWORD"] = "shown"
    assert load_settings(None, environment).password == "shown"


def test_a_wrong_setting_is_refused_by_name(tmp_path: Path) -> None:
    for text, key in (
        *(("database = 1\n", "database"), ("db = \n", "ALMANAC_CONFIG"), ('db = "localhost:7687"\n', "db")),
        *(('idle_seconds = "soon"\n', "idle_seconds"), ("idle_seconds = 0\n", "idle_seconds")),
        *(('db_password = "x"\n', "db_password"), ('error_limits = {link_downed = "few"}\n', "error_limits")),
        *(("error_hours = 0\n", "error_hours"), ("bit_error_rate = 1\n", "bit_error_rate")),
        ('dashboard_hide_users = "maybe"\n', "dashboard_hide_users"),
        ('dashboard_only_user = "proxy:X"\n', "dashboard_only_user"),
        ('dashboard_only_user = "login:"\n', "dashboard_only_user"),
        ('dashboard_only_user = ""\n', "dashboard_only_user"),
        ('dashboard_secret = "x"\n', "dashboard_secret"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_settings(None, config(tmp_path, text))
        assert caught.value.key == key


def test_pages_show_all_users_by_default_and_what_they_show_can_be_set(tmp_path: Path) -> None:
    settings = load_settings(None, config(tmp_path, ""))
    assert (settings.hide_users, settings.only_user, settings.operators) == (False, None, ())
    text = (
        'dashboard_hide_users = true\ndashboard_only_user = "login:sub"\ndashboard_operators = ["a", "b"]\n'
    )
    environment = config(tmp_path, text)
    settings = load_settings(None, environment)
    assert (settings.hide_users, settings.only_user, settings.operators) == (True, "login:sub", ("a", "b"))
    environment |= {"ALMANAC_DASHBOARD_HIDE_USERS": "0", "ALMANAC_DASHBOARD_OPERATORS": "c, d"}
    settings = load_settings(None, environment, dashboard_only_user="ann")
    assert (settings.hide_users, settings.only_user, settings.operators) == (False, "ann", ("c", "d"))
    assert settings.origin["dashboard_only_user"] == "command line"


def test_the_key_of_pseudonyms_is_made_once_or_set_and_long_enough(tmp_path: Path) -> None:
    environment = config(tmp_path, "") | {"ALMANAC_HOME": str(tmp_path / "data")}
    first = load_settings(None, environment).pseudonym_key()
    assert len(first) == 64
    assert load_settings(None, environment).pseudonym_key() == first
    (path,) = (tmp_path / "data").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="other users can read it"):
        load_settings(None, environment).pseudonym_key()
    secret = tmp_path / "secret"
    secret.write_text("a secret of the site\n")
    secret.chmod(0o600)
    environment = config(tmp_path, f'dashboard_secret_file = "{secret}"\n')
    settings = load_settings(None, environment)
    assert settings.pseudonym_key() == b"a secret of the site"
    assert "a secret" not in repr(settings)
    environment["ALMANAC_DASHBOARD_SECRET"] = "another one of the site"
    assert load_settings(None, environment).pseudonym_key() == b"another one of the site"
    environment["ALMANAC_DASHBOARD_SECRET"] = "short"
    with pytest.raises(ConfigError, match="shorter"):
        load_settings(None, environment)


def test_the_server_of_the_pages_is_given_the_settings_in_force(tmp_path: Path) -> None:
    environment = config(tmp_path, 'dashboard_only_user = "ann"\n') | {"ALMANAC_HOME": str(tmp_path)}
    settings = load_settings("bolt://here:1", environment, dashboard_hide_users="true")
    given = environment_of(settings)
    again = load_settings(None, given)
    shown = (again.db, again.home, again.only_user, again.hide_users)
    assert shown == ("bolt://here:1", tmp_path, "ann", True)
    assert given["ALMANAC_DASHBOARD_OPERATORS"] == ""
    access = access_of(again)
    assert (access.only, access.operators) == ("ann", frozenset())
    assert access.key == settings.pseudonym_key()
    words = server_command(8501)
    assert {"--server.address=127.0.0.1", "--browser.gatherUsageStats=false"} <= set(words)


def test_limits_of_errors_come_from_the_file_or_the_environment_over_the_default(tmp_path: Path) -> None:
    environment = config(tmp_path, "error_limits = {link_downed = 5, xmit_discards = inf}\nerror_hours = 1\n")
    limits = load_settings(None, environment).error_limits()
    assert limits.period == timedelta(hours=1)
    assert (limits.errors["link_downed"], limits.errors["rcv_errors"]) == (5, 10)
    assert (limits.errors["xmit_discards"], limits.bit_error_rate) == (float("inf"), 1e-12)
    environment |= {"ALMANAC_ERROR_LIMITS": "rcv_errors=0, symbol_errors = 7", "ALMANAC_BIT_ERROR_RATE": "0"}
    settings = load_settings(None, environment)
    limits = settings.error_limits()
    assert [limits.errors[name] for name in ("rcv_errors", "symbol_errors", "link_downed")] == [0, 7, 2]
    assert limits.bit_error_rate == 0
    assert settings.values()["error_limits"] == "rcv_errors=0,symbol_errors=7"
    with pytest.raises(ConfigError, match="symbol_errors"):
        load_settings(None, environment | {"ALMANAC_ERROR_LIMITS": "symbol_error=1"}).error_limits()


def test_a_secret_file_is_created_once_and_refused_if_others_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret"
    with pytest.raises(ConfigError, match="No such file"):
        read_secret(path, "key")
    first = read_secret(path, "key", create=True)
    assert len(first) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path, "key", create=True) == read_secret(path, "key") == first
    path = tmp_path / "secret"
    path.write_text("hidden")
    for mode in (0o604, 0o640, 0o644, 0o660):
        path.chmod(mode)
        with pytest.raises(ConfigError, match=f"chmod 600 {path}") as caught:
            read_secret(path, "some_file")
        assert caught.value.key == "some_file"
        assert "hidden" not in str(caught.value)


def test_hosts_slots_and_ranks_are_those_of_slurm_or_a_host_file(tmp_path: Path) -> None:
    assert read_environment(SLURM) == JobEnvironment(
        hosts=("node0001", "node0002", "node0003", "node0004", "node0033"),
        slots=(4, 4, 4, 2, 2),
        ranks=16,
        job="77",
        cluster="ft",
        source="SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE",
    )
    # without tasks a rank takes a processor
    found = read_environment({"SLURM_JOB_NODELIST": "a[1-2]", "SLURM_JOB_CPUS_PER_NODE": "64(x2)"})
    assert (found.hosts, found.slots, found.ranks) == (("a1", "a2"), (64, 64), None)
    assert read_environment({**SLURM, HOST_FILES[0]: "/nowhere"}).job == "77"
    path = tmp_path / "hosts"
    path.write_text("# two kinds\nn2 slots=3\nn1:2\n\nn3 slots = 1 max_slots=4\nn2\n")
    for variable in HOST_FILES:
        found = read_environment({variable: str(path)})
        assert (found.hosts, found.slots) == (("n2", "n1", "n3"), (4, 2, 1))
        assert found.source == f"{variable}={path}"
    path.write_text("n1\nn1\nn2\n")
    found = read_environment({"PBS_NODEFILE": str(path), "PBS_JOBID": "9"})
    assert (found.hosts, found.slots, found.job) == (("n1", "n2"), (2, 1), "9")


def test_contradictions_are_reported(tmp_path: Path) -> None:
    for environment, reason in (
        ({}, "this is not inside a job"),
        ({"SLURM_JOB_NODELIST": "a[1-3]"}, "neither SLURM_TASKS_PER_NODE"),
        ({"SLURM_JOB_NODELIST": "a[1-3]", "SLURM_TASKS_PER_NODE": "1,1"}, "has 2 hosts"),
    ):
        with pytest.raises(ConfigError, match=reason):
            read_environment(environment)
    path = tmp_path / "hosts"
    for text in ("n1 slots=0\n", "n1 4\n", "n1:x\n", "# none\n"):
        path.write_text(text)
        with pytest.raises(InputError):
            read_environment({HOST_FILES[0]: str(path)})


@pytest.fixture
def writable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path], None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ALMANAC_CONFIG", os.devnull)

    def allow(folder: Path) -> None:
        access = lambda path, mode: Path(path).is_relative_to(folder)  # noqa: E731
        monkeypatch.setattr(os, "access", access)

    return allow


def test_a_writable_or_chosen_folder_suffices(
    writable: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    writable(Path("/"))
    choose_kernel_cache()
    assert VARIABLE not in os.environ
    writable(Path("/nothing"))
    monkeypatch.setenv(VARIABLE, "/chosen")
    choose_kernel_cache()
    assert os.environ[VARIABLE] == "/chosen"


def test_read_only_installations_keep_kernels_apart(writable: Callable[[Path], None], tmp_path: Path) -> None:
    writable(tmp_path)
    choose_kernel_cache()
    assert os.environ[VARIABLE] == str(tmp_path / "home" / "kernels")
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


@pytest.mark.parametrize("wrong", [False, True], ids=["no folder", "wrong settings"])
def test_without_any_folder_kernels_are_kept_for_one_process(
    writable: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    """Wrong settings are reported by the command that uses them; `almanac run` starts the job in spite."""
    writable(tmp_path if wrong else tmp_path / "nothing")
    if wrong:
        monkeypatch.setenv("ALMANAC_IDLE_SECONDS", "soon")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    choose_kernel_cache()
    assert Path(os.environ[VARIABLE]).parent == tmp_path
    assert not (tmp_path / "home").exists()
