"""Run notebooks and write them with their outputs, as they are committed.

    .venv/bin/python tools/execute_notebook.py notebooks/01_quickstart.ipynb

A notebook runs in an empty folder that is thrown away: what it makes (stores, checkpoints) does not
lie about in the checkout, and no path of this machine gets into its outputs. Several share a kernel
and a JVM, which takes long to start; each begins with no names, no files and no session. What Spark
writes to stderr while it starts is left out. `--output FOLDER` writes elsewhere and leaves the
notebook.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TIMEOUT_S = 240  # for one cell


class Kernel:
    """Runs notebooks one after the other, all in one folder: Spark's JVM keeps to where it began.

    Use it in `with`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._client = NotebookClient(
            nbformat.v4.new_notebook(),
            timeout=TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,  # times would change the file with each run
        )

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *error: object) -> None:
        self._run(nbformat.v4.new_notebook(), ends=True)

    def execute(self, path: Path) -> nbformat.NotebookNode:
        """Run a notebook from its first cell on; return it with its outputs."""
        self._forget()
        notebook = nbformat.read(path, as_version=4)
        self._run(notebook)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        notebook.metadata.language_info.pop("version", None)  # that of this machine
        return notebook

    def _forget(self) -> None:
        """Take away what the notebook before has left, but for the modules that it loaded."""
        reset = nbformat.v4.new_code_cell("get_ipython().reset(aggressive=False)")
        self._run(nbformat.v4.new_notebook(cells=[reset]))
        for left in self._folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _run(self, notebook: nbformat.NotebookNode, *, ends: bool = False) -> None:
        self._client.nb = notebook
        self._client.execute(cleanup_kc=ends)


def main() -> None:
    """Run the notebooks that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, help="a folder; without it, in their place")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="rocketpy-notebook-") as folder,
        Kernel(Path(folder)) as kernel,
    ):
        for path in arguments.notebooks:
            notebook = kernel.execute(path)
            nbformat.write(notebook, (arguments.output or path.parent) / path.name)


if __name__ == "__main__":
    main()
