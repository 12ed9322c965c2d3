"""Every Python and shell block of docs runs as printed; those of README are in `test_docs_smoke`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import paths
from tests.support.doc_blocks import RUN, SAMPLE, SHOWN, Block, Shell, blocks, pages, runnable

PAGES = pages()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if runnable(page) and page not in ("README.md", SAMPLE)]
)
def test_the_blocks_of_a_page_run(page: str, sample: Shell, tmp_path: Path) -> None:
    sample.run_page(page, tmp_path / "page")


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


def test_an_unknown_comment_before_a_block_is_an_error() -> None:
    with pytest.raises(AssertionError, match="what is meant"):
        list(blocks("<!-- ignore -->\n```sh\ntrue\n```\n"))
