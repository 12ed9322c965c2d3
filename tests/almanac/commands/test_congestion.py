"""`congestion` names profiles as the user did."""

from __future__ import annotations

from pathlib import Path

from tests.almanac.commands.analysis.test_analysis import JOB, run
from tests.almanac.conftest import Almanac


def test_the_given_name_of_a_profile_is_shown(loaded: Almanac, tmp_path: Path) -> None:
    run(loaded, tmp_path, JOB.format(job="1", name="wrap", user="ann", hosts="node[0001-0004,0033-0036]"))
    (tmp_path / "recorded.csv").write_text("# ranks: 16\nsrc,dst,bytes\n0,15,50000\n15,0,60000\n3,9,7\n")
    loaded.ok("ingest", tmp_path / "recorded.csv", "--name", "weather")
    loaded.ok("job", "attach", "1", "weather")
    found = loaded.json("congestion", "ft")
    assert found["jobs"][0]["profile"] == "weather"
    assert {user["profile"] for link in found["links"] for user in link["users"]} == {"weather"}
    assert found["jobs"][0]["application"] == "recorded"
    text = loaded.ok("congestion", "ft").out
    assert "1 (ann weather) 100%" in text
    assert "profile" in text
    assert "recorded" not in text
    assert loaded.json("job", "show", "1")["profile"] == "weather"
    assert "weather" in loaded.ok("job", "show", "1").out
