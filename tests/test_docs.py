"""README and docs: links, commands, keys; every block runs (those of README: test_docs_smoke); the site."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from almanac.reference import commands
from tests.support.doc_blocks import RUN, SAMPLE, SHOWN, Block, Shell, blocks, pages, runnable
from tests.support.paths import DATA, ROOT
from tests.support.waiting import PATIENCE

FILES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_command_that_the_readme_shows_exists_and_json_has_its_keys_documented() -> None:
    known = {words for words, _ in commands()}
    shown = re.findall(r"^almanac (\w+)(?: (\w+))?", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert shown
    for first, second in shown:
        assert first in known
        group = any(words.startswith(f"{first} ") for words in known)
        assert not group or f"{first} {second}" in known
    keys = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
    for words, command in commands():
        if any(parameter.name == "as_json" for parameter in command.params):
            assert f"`{words}`" in keys, words


PAGES = pages()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if runnable(page) and page not in ("README.md", SAMPLE)]
)
def test_the_blocks_of_a_page_run(page: str, sample: Shell, tmp_path: Path) -> None:
    sample.run_page(page, tmp_path / "page")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_and_every_skipped_one_a_reason(page: str) -> None:
    assert len(PAGES[page]) == (ROOT / page).read_text("utf-8").count("```") / 2
    for block in PAGES[page]:
        assert block.language in (*RUN, *SHOWN), f"{page}:{block.line}"
        assert block.skipped is None or block.language in RUN, f"{page}:{block.line}"


def test_few_blocks_are_skipped() -> None:
    found = [block for blocks in PAGES.values() for block in blocks if block.language in RUN]
    assert len([block for block in found if block.skipped]) <= len(found) / 4


@pytest.fixture
def shell(forking: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path / "page", tmp_path / "home", forking)


PAGE = """
<!-- file given.txt: LICENSE -->
<!-- command squeue prints: LICENSE -->
```sh
squeue | cmp - given.txt
echo 1 > made
export MADE=2
```
<!-- not run: needs a cluster -->
```sh
exit 7
```
```sh
test "$MADE" = 2
```
```python
assert open("made").read() == "2", "wrong"
```
```text
plain
```
"""


def test_a_block_gets_its_files_and_commands_and_those_of_the_blocks_before(shell: Shell) -> None:
    first, skipped, second, wrong, shown = blocks(PAGE)
    assert [one.line for one in (first, skipped, second, wrong, shown)] == [4, 10, 13, 16, 19]
    assert (skipped.skipped, first.skipped, shown.language) == ("needs a cluster", None, "text")
    shell.run(first)
    shell.run(second)
    with pytest.raises(AssertionError, match=r"line 16, exit code 1:[^$]*wrong"):
        shell.run(wrong)


@pytest.mark.parametrize("text", ["false\necho done", "false | cat", "echo $unset_name"])
def test_a_block_fails_if_any_of_its_commands_fails(shell: Shell, text: str) -> None:
    with pytest.raises(AssertionError, match="exit code 1"):
        shell.run(Block(1, "sh", text, ()))


def bare(shell: Shell, text: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a text by sh with these variables only, in the home folder."""
    shell.home.mkdir(exist_ok=True)
    call = ["/bin/sh", "-c", text]
    return subprocess.run(
        call, cwd=shell.home, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )


def of_language(page: str, language: str) -> list[Block]:
    return [block for block in PAGES[page] if block.language == language]


@pytest.mark.parametrize("page", [page for page in PAGES if of_language(page, "cron")])
def test_crontabs_run_in_the_environment_of_cron(page: str, shell: Shell) -> None:
    scan, jobs = (DATA / "infiniband/fattree2-64-ftree/ibnetdiscover.txt", DATA / "slurm/sacct_P.txt")
    for name, printed in (("ibnetdiscover", scan), ("sacct", jobs)):
        shell.command(name, f"cat {printed}")
    (crontab,) = of_language(page, "cron")
    lines = [line for line in crontab.text.splitlines() if not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines if re.match("[A-Z_]+=", line))
    rest = variables["PATH"].partition(":")[2]
    variables |= {"PATH": f"{shell.commands}:{rest}", "ALMANAC_HOME": str(shell.registry)}
    variables |= {"HOME": str(shell.home), "SHELL": "/bin/sh", "LOGNAME": "ann"}
    (cluster,) = set(re.findall(r"(?:--cluster|advise jobs) (\w+)", crontab.text))
    made = bare(shell, f"almanac ingest --cluster {cluster} {scan} {jobs}", variables)
    assert made.returncode in (0, 5), made.stderr
    for line in (line for line in lines if "=" not in line.split()[0]):
        done = bare(shell, line.split(maxsplit=5)[5].replace(r"\%", "%"), variables)
        assert done.returncode in (0, 5), (line, done.stderr)  # 5: jobs on hosts that the scan lacks
        assert "not found" not in done.stderr
    if "db backup" in crontab.text:
        assert len([*shell.registry.glob("almanac-????-??-??.backup")]) == 1
    bare(shell, "almanac db stop", variables)


SCRIPTS = [
    pytest.param(block.text, id=f"{page}:{block.line}")
    for page, blocks in PAGES.items()
    for block in blocks
    if (block.skipped or "").endswith("a job script of Slurm")
]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("placed", [True, False])
def test_a_job_script_starts_its_job_whether_it_is_placed_or_not(
    shell: Shell, script: str, placed: bool
) -> None:
    shell.command("srun", 'echo "$SLURM_HOSTFILE $SLURM_DISTRIBUTION $*"')
    if placed:
        shell.command("almanac", "touch hosts placement.csv")
    variables = {"PATH": f"{shell.commands}:/usr/bin:/bin", "HOME": str(shell.home), "SLURM_NTASKS": "4"}
    variables |= {"ALMANAC_HOME": str(shell.registry), "ALMANAC_DB": "bolt://127.0.0.1:9"}
    (shell.home / "layouts").mkdir(parents=True)
    shutil.copy(DATA / "hwloc/four_cores.xml", shell.home / "layouts/node0001.xml")
    variables |= {
        "SLURM_CLUSTER_NAME": "tree",
        "SLURM_JOB_NODELIST": "node[0001-0002]",
        "SLURM_TASKS_PER_NODE": "2(x2)",
    }
    done = bare(shell, script, variables)
    assert (done.returncode, "-n 4" in done.stdout) == (0, True), done.stderr
    assert done.stdout.rstrip().endswith("./program")
    assert ("hosts" in done.stdout, "arbitrary" in done.stdout) == (placed, placed)
    assert placed or "bolt://127.0.0.1:9" in done.stderr


def test_an_unknown_comment_before_a_block_is_an_error() -> None:
    with pytest.raises(AssertionError, match="what is meant"):
        list(blocks("<!-- ignore -->\n```sh\ntrue\n```\n"))


DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make docs`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_in_the_site_its_menu_and_its_search(site: Path) -> None:
    menu = (site / "index.html").read_text("utf-8")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix(".html")
        assert (site / name).exists()
        assert name.name == "index.html" or f'href="{name}"' in menu, name
    index = (site / "genindex.html").read_text("utf-8")
    for term in ("hop-bytes", "almanac cluster check", "keep_observations", "place() (in module mapping)"):
        assert term in index
    assert "dragonfli" in (site / "searchindex.js").read_text("utf-8")  # words are stored as stems


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*\srel="(?:stylesheet|preload|icon)"[^>]*\shref="([^"]+)"', text)
        assert loaded
        assert not [one for one in loaded if "//" in one], page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text("utf-8")), sheet
