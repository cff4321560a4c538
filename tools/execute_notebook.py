"""Run notebooks and write them with their outputs, as they are committed.

    .venv/bin/python tools/execute_notebook.py notebooks/01_quickstart.ipynb

A notebook runs in a folder of its own that is thrown away: what it makes (stores, checkpoints) does
not lie about in the checkout, and no path of this machine gets into its outputs. What Spark writes
to stderr while it starts is left out. `--output FOLDER` writes elsewhere and leaves the notebook.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TIMEOUT_S = 240  # for one cell


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook from its first cell on, in a folder; return it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,  # times would change the file with each run
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info.pop("version", None)  # that of this machine
    return notebook


def main() -> None:
    """Run the notebooks that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, help="a folder; without it, in their place")
    arguments = parser.parse_args()
    for path in arguments.notebooks:
        with tempfile.TemporaryDirectory(prefix="rocketpy-notebook-") as folder:
            notebook = execute(path, Path(folder))
        nbformat.write(notebook, (arguments.output or path.parent) / path.name)


if __name__ == "__main__":
    main()
