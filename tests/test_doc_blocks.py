"""Every Python and shell block of README and docs runs as printed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.database.local.server import stop
from registry.maintenance.cluster_deletion import delete_cluster
from registry.registry import Registry
from tests.support import paths
from tests.support.doc_blocks import RUN, SHOWN, Block, Shell, blocks

SAMPLE = "docs/tutorials/sample-cluster.md"
CLUSTER = "hpc1"
PAGES = {
    str(path.relative_to(paths.ROOT)): tuple(blocks(path.read_text("utf-8")))
    for path in [*paths.ROOT.glob("*.md"), *(paths.ROOT / "docs").rglob("*.md")]
    if path.name not in ("CHANGELOG.md", "commands.md")
}
RUNNABLE = {
    page: tuple(block for block in found if block.language in RUN and not block.skipped)
    for page, found in PAGES.items()
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The sample cluster, as its page makes it: all pages use it."""
    folder = tmp_path_factory.mktemp("pages")
    shell = Shell(folder / "sample", folder / "home")
    try:
        for block in RUNNABLE[SAMPLE]:
            shell.run(block)
        yield shell
    finally:
        stop(shell.registry)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page, found in RUNNABLE.items() if found and page != SAMPLE])
def test_the_blocks_of_a_page_run(page: str, sample: Shell, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "page", sample.home)
    for path in sample.folder.iterdir():
        if path.is_file():
            shutil.copy2(path, shell.folder)
    for block in RUNNABLE[page]:
        shell.run(block)
    with Registry.open(home=sample.registry) as registry:
        for cluster in registry.fabrics.clusters():
            if cluster.name != CLUSTER:
                delete_cluster(registry.database, cluster.name)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_and_every_skipped_one_a_reason(page: str) -> None:
    assert len(PAGES[page]) == (paths.ROOT / page).read_text("utf-8").count("```") / 2
    for block in PAGES[page]:
        assert block.language in (*RUN, *SHOWN), f"{page}:{block.line}"
        assert block.skipped is None or block.language in RUN, f"{page}:{block.line}"


def test_few_blocks_are_skipped() -> None:
    found = [block for blocks in PAGES.values() for block in blocks if block.language in RUN]
    assert len([block for block in found if block.skipped]) <= len(found) / 4


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "page", tmp_path / "home")


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


def test_an_unknown_comment_before_a_block_is_an_error() -> None:
    with pytest.raises(AssertionError, match="what is meant"):
        list(blocks("<!-- ignore -->\n```sh\ntrue\n```\n"))
