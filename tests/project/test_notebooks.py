"""Every notebook runs, in a folder of its own, and is committed as it should be seen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 800_000
# What one machine, one user or one failure leaves behind.
TRACES = re.compile(r"/(?:home|root|tmp|work|Users)/|Traceback|\b\w*(?:Error|Warning): ")

Cell = dict[str, Any]
by_name = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])


def content(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def code_cells(path: Path) -> list[Cell]:
    cells = [cell for cell in content(path)["cells"] if cell["cell_type"] == "code"]
    assert cells
    return cells


def pictures(cells: list[Cell]) -> list[str]:
    outputs = [output for cell in cells for output in cell["outputs"]]
    return [
        output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]


class Executed(NamedTuple):
    """Where the notebooks lie that ran, and what was said while they did."""

    folder: Path
    errors: str


@pytest.fixture(scope="module")
def executed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """Run all that are wanted in one process, hence with one JVM; the first that fails ends it."""
    pytest.importorskip("pyspark")
    asked = _paths_asked(request.session.items)
    wanted = [path for path in NOTEBOOKS if path in asked]
    folder = tmp_path_factory.mktemp("notebooks")
    own = {name: str(folder / name.lower()) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    ended = subprocess.run(
        [sys.executable, ROOT / "tools" / "execute_notebook.py", "--output", folder, *wanted],
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=1180,
        check=False,
    )
    return Executed(folder, ended.stderr)


def _paths_asked(items: list[pytest.Item]) -> set[object]:
    return {
        item.callspec.params["path"]
        for item in items
        if isinstance(item, pytest.Function) and "executed" in item.fixturenames
    }


@pytest.mark.spark
@pytest.mark.further
@pytest.mark.timeout(1200)
@by_name
def test_a_notebook_runs_from_its_first_cell_to_its_last(path: Path, executed: Executed) -> None:
    assert (executed.folder / path.name).exists(), executed.errors[-5000:]
    ran, committed = code_cells(executed.folder / path.name), code_cells(path)
    assert [cell["execution_count"] for cell in ran] == [*range(1, len(ran) + 1)]
    assert len(pictures(ran)) == len(pictures(committed))


@by_name
def test_a_notebook_is_committed_with_its_outputs(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    plotted = sum("pyplot.show()" in "".join(cell["source"]) for cell in cells)
    assert len(pictures(cells)) >= max(plotted, 1)
    assert content(path)["metadata"]["kernelspec"]["name"] == "python3"
    assert path.stat().st_size < MOST_BYTES


@by_name
def test_a_notebook_shows_no_machine_and_no_failure(path: Path) -> None:
    for cell in code_cells(path):
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr"
            data = {**output.get("data", {}), "text": output.get("text", [])}
            told = "".join("".join(lines) for kind, lines in data.items() if kind != "image/png")
            assert TRACES.search(told) is None, told
    assert str(Path.home()) not in path.read_text("utf-8")


@by_name
def test_a_plot_says_what_it_shows_in_colours_that_all_can_tell(path: Path) -> None:
    source = "\n".join("".join(cell["source"]) for cell in code_cells(path))
    assert source.count("title") >= source.count("pyplot.show()")
    colours = {each.upper() for each in re.findall(r"#[0-9A-Fa-f]{6}\b", source)}
    okabe_ito = "#000000 #E69F00 #56B4E9 #009E73 #F0E442 #0072B2 #D55E00 #CC79A7"
    assert colours <= {*okabe_ito.split()}


def test_the_list_of_notebooks_is_whole() -> None:
    text = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.ipynb\) \| .+ \|$", text, re.MULTILINE)
    assert listed == [(path.stem, path.stem) for path in NOTEBOOKS]
