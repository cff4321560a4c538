"""Every program of the README and of the docs runs, and shows what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.project.markdown_page import (
    PYTHON,
    SHELL,
    SHOWN,
    Block,
    blocks_of,
    indented_code,
    name_of,
    pages,
    program_of,
)
from tests.project.page_process import PageProcess
from tests.project.python_block import WrongOutputError, run_python
from tests.project.shell_block import Shell, commands_of

MOST_NOT_RUN = 4
BLOCKS = [block for page in pages() for block in blocks_of(page)]
RUNNABLE = [page for page in pages() if program_of(page)]
FIRST = {"README.md", "docs/quick-start.md"}
LONG = {"docs/command-line.md"}  # test_command_line.py runs each command as well


def is_further(page: Path) -> bool:
    """Whether it is long, and what it does is tested elsewhere, too."""
    words = [block.text for block in program_of(page)]
    is_long = name_of(page) in LONG or any("spark" in each or " job " in each for each in words)
    return is_long and name_of(page) not in FIRST


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    with PageProcess(tmp_path_factory.mktemp("pages")) as running:
        yield running


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=name_of(page), marks=[pytest.mark.further] if is_further(page) else []
        )
        for page in RUNNABLE
    ],
)
def test_every_block_runs_and_shows_what_it_says(page: Path, process: PageProcess) -> None:
    process.run(page)


def test_every_fence_says_what_it_is() -> None:
    known = {*PYTHON, *SHELL, *SHOWN}
    assert [str(block) for block in BLOCKS if block.language not in known] == []
    assert {str(page): lines for page in pages() if (lines := indented_code(page))} == {}


def test_few_programs_are_not_run() -> None:
    programs = [block for block in BLOCKS if block.language in PYTHON + SHELL]
    skipped = [str(block) for block in programs if not block.is_run]
    assert len(skipped) <= MOST_NOT_RUN, skipped
    assert len(programs) > 40


def test_a_file_that_a_page_shows_is_used_below() -> None:
    for number, block in enumerate(BLOCKS):
        if block.title is not None:
            below = [each.text for each in BLOCKS[number + 1 :] if each.page == block.page]
            assert any(block.title in text for text in below), str(block)


# --- that these tests can fail ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["1 + 1  # → 2", "a = [1]\n# → [1]", "print('a\\nb')\n# → a\n# → b", "'abc'  # → 'a…'",
     "for n in range(2):\n    print(n)  # → 0\n# → 1", "{}['k']  # → KeyError: 'k'", "1  # one"],
)  # fmt: skip
def test_what_is_shown_as_it_is_passes(text: str) -> None:
    run_python(text, {}, name="page.md", line=1)


@pytest.mark.parametrize(
    "text",
    ["1 + 1  # → 3", "print('a')  # → b", "None  # → 1", "a = 'abc'  # → 'b…'",
     "print(1)\n# → 1\n# → 2"],
)  # fmt: skip
def test_what_is_shown_wrongly_is_told_with_its_line(text: str) -> None:
    with pytest.raises(WrongOutputError, match=r"page.md:7 shows"):
        run_python(text, {}, name="page.md", line=7)


def test_an_error_that_was_not_announced_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_python("1 / 0  # → KeyError: 1", {}, name="page.md", line=1)


def block(language: str, text: str) -> Block:
    return Block(page="page.md", line=1, language=language, text=text, section="")


def test_a_console_is_compared_and_an_exit_code_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = Shell()
    try:
        shell.run(block("console", "$ echo a \\\n  b\na b\n$ true\n"))
        shell.run(block("bash", "echo a > b\ntest -e b\n"))
        shell.run(block("sh", "make test    # every test\n"))
        with pytest.raises(WrongOutputError):
            shell.run(block("console", "$ echo a\nb\n"))
        with pytest.raises(RuntimeError, match="exit code 1"):
            shell.run(block("bash", "false\ntrue\n"))
        with pytest.raises(AssertionError, match="no target"):
            shell.run(block("bash", "make tests\n"))
    finally:
        shell.close()


def test_a_console_block_is_split_at_its_commands() -> None:
    text = "$ one\n1\n\n2\n$ two \\\n  three\n"
    assert commands_of(block("console", text)) == [("one", "1\n\n2"), ("two \\\n  three", "")]


def test_a_page_is_read_with_what_goes_before_it(tmp_path: Path) -> None:
    (tmp_path / "first.md").write_text(
        "# A\n```python\n1\n```\n## B c\n```python\n2\n```\n```console\n$ ls\n```\n"
    )
    page = tmp_path / "second.md"
    page.write_text(
        "<!-- starts from: first.md#b-c -->\n\n```python\n3\n```\n\n"
        "<!-- not run: it needs a moon -->\n```python\n4\n```\n\n```json\n5\n```\n"
    )
    assert [each.text for each in program_of(page)] == ["2\n", "3\n"]
    assert [each.not_run for each in blocks_of(page)] == [None, "it needs a moon", None]
