"""Options of a launcher's command, apart from the program's."""

from __future__ import annotations

import pytest

from almanac.running.call import Unplaced, parse_call

VALUES = {"n": 1, "np": 1, "mca": 2, "host": 1, "oversubscribe": 0, "ntasks": 1}


def test_options_end_where_the_program_begins() -> None:
    words = [
        "mpirun",
        "-n",
        "4",
        "--mca",
        "btl",
        "tcp,self",
        "--oversubscribe",
        "./app",
        "-n",
        "9",
        "--host",
        "x",
    ]
    call = parse_call(words, VALUES)
    assert call.program == ("./app", "-n", "9", "--host", "x")
    assert [option.name for option in call.options] == ["n", "mca", "oversubscribe"]
    assert call.options[1].values == ("btl", "tcp,self")
    assert call.count(("n", "np")) == 4
    assert call.last(("host",)) is None
    assert call.words() == tuple(words)
    assert call.words(["--hostfile", "f"], {"n"}) == (
        *("mpirun", "--hostfile", "f", "--mca", "btl", "tcp,self", "--oversubscribe"),
        *("./app", "-n", "9", "--host", "x"),
    )


@pytest.mark.parametrize(
    ("program", "application"),
    [
        (("/opt/wrf/bin/wrf.exe", "-n", "4"), "wrf.exe"),
        (("--", "./app", "--", "x"), "app"),
        (("python3", "runs/train.py", "--lr", "1"), "train.py"),
        (("/usr/bin/python3.11", "-u", "-m", "pkg.train", "x.py"), "pkg.train"),
        (("python", "-c", "print(1)"), "python"),
        (("python", "-X", "dev", "a.py"), "python"),
        (("python3",), "python3"),
        (("python3", "-m"), "python3"),
        (("pythonic", "a.py"), "pythonic"),
    ],
)
def test_an_application_has_the_name_of_what_runs(program: tuple[str, ...], application: str) -> None:
    assert parse_call(["mpirun", *program], VALUES).application == application


@pytest.mark.parametrize("given", ["-n4", "-n=4", "--ntasks=4", "-np 4", "--n 4"])
def test_a_value_may_be_attached(given: str) -> None:
    call = parse_call(["srun", *given.split(), "./app"], VALUES)
    assert call.count(("n", "np", "ntasks")) == 4
    assert call.program == ("./app",)


def test_the_last_of_several_options_counts() -> None:
    assert parse_call(["mpirun", "-n", "4", "-np", "8", "a"], VALUES).count(("n", "np")) == 8


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("mpirun -n 4 --new-option 3 ./app", "--new-option of mpirun is not known"),
        ("mpirun -n 4", "no program"),
        ("mpirun -n 4 --", "no program"),
        ("mpirun --mca btl", "--mca lacks its value"),
        ("mpirun --oversubscribe=yes ./app", "not known"),
    ],
)
def test_a_command_that_is_not_understood_is_not_changed(words: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        parse_call(words.split(), VALUES)


@pytest.mark.parametrize("value", ["0", "-1", "four", "1.5"])
def test_a_number_of_ranks_is_a_whole_number(value: str) -> None:
    with pytest.raises(Unplaced, match=f"{value} is not a number"):
        parse_call(["mpirun", "-n", value, "a"], VALUES).count(("n",))
