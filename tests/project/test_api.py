"""The public face: what is shown of it, what is told of it, and what type checkers know of it."""

from __future__ import annotations

import importlib.util
import pydoc
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from tests.project.markdown_page import DOCS
from tests.project.test_docs_tables import error_classes

import rocketpy
from rocketpy import errors

needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None, reason="make unit installs no Spark"
)

# As where Spark is not installed.
HIDE_SPARK = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError(f"No module named {name!r}", name="pyspark")

sys.meta_path.insert(0, Hidden())
import rocketpy
"""


def without_spark(program: str) -> str:
    command = [sys.executable, "-c", HIDE_SPARK + program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@needs_spark
def test_what_is_public_is_shown_and_there() -> None:
    assert {*rocketpy.__all__} <= {*dir(rocketpy)}
    for name in rocketpy.__all__:
        assert getattr(rocketpy, name) is not None


@needs_spark
def test_help_teaches() -> None:
    text = pydoc.plain(pydoc.render_doc(rocketpy))
    assert 'store = rocketpy.open("shop-store")' in text
    for name in ("open(", "backfill(", "class Store(", "class StoreConfig("):
        assert name in text


def test_without_spark_help_shows_the_rest() -> None:
    shown = without_spark("print('open' in dir(rocketpy), 'backfill' in dir(rocketpy))")
    assert shown == "True False\n"
    shown = without_spark("import pydoc; print(pydoc.plain(pydoc.render_doc(rocketpy)))")
    assert "class Store(" in shown


def test_without_spark_a_job_says_what_to_install() -> None:
    program = """
try:
    rocketpy.backfill
except ModuleNotFoundError as error:
    print(error)
"""
    expected = 'rocketpy.backfill needs Spark: pip install "rocketpy-spark[spark]"\n'
    assert without_spark(program) == expected


@needs_spark
def test_every_error_can_be_imported_from_one_module() -> None:
    classes = error_classes()
    assert {name: getattr(errors, name) for name in classes} == classes
    assert {*errors.__all__} == {*classes}
    assert {*errors.__all__} <= {*dir(errors)}


@needs_spark
def test_the_page_is_what_the_code_says() -> None:
    from tests.project.api_page import rendered

    page = (DOCS / "api.md").read_text("utf-8")
    assert page == rendered(), "python -m tests.project.api_page > docs/api.md"
    for name in rocketpy.__all__:
        assert name == "__version__" or name in page


@needs_spark
def test_jobs_name_every_setting_to_type_checkers() -> None:
    from rocketpy.spark_jobs.backfill import BackfillOptions, BackfillSelection, BackfillSettings
    from rocketpy.spark_jobs.restore import RestoreOptions, RestoreSettings

    named = {each.name for kind in (BackfillSettings, BackfillSelection) for each in fields(kind)}
    assert {*BackfillOptions.__annotations__} == named - {"selection", "topics"}
    assert {*RestoreOptions.__annotations__} == {each.name for each in fields(RestoreSettings)}


RIGHT = """
import pyarrow as pa  # type: ignore[import-untyped]
import rocketpy
from rocketpy.errors import DiskFullError, OptionError, RocketPyError

store = rocketpy.open("shop-store", flush="sync")
number: int = store.send("orders", "1 euro", keys=["o-1"], deliver_at="2026-01-31").queue_offset
count: int = store.append("orders", [{"body": "x"}]).count
store.append("orders", pa.table({"body": ["x"]}))
store.read("orders", start={0: 3}, start_time="2026-01-31T08:00:00Z")
spark = rocketpy.local_spark()
rows: int = rocketpy.backfill(spark, "s", "t", since="2026-11-01", columns=["topic", "body"]).rows
rocketpy.restore(spark, "t", "s", to_topic="orders-2", rate=5000)
try:
    store.flush()
except (DiskFullError, OptionError, RocketPyError) as error:
    print(error.retriable)
"""
WRONG = {
    'rocketpy.open("s", flush="fast")': "arg-type",
    'store.append("orders", [b"x"])': "list-item",
    'store.append("orders", 3)': "arg-type",
    'store.send("orders", 3)': "arg-type",
    'store.send("orders", "x", queue_id="0")': "arg-type",
    'store.read("orders", start_time=1.5)': "arg-type",
    'rocketpy.backfill(spark, "s", "t", sinse="2026-11-01")': "call-arg",
    'rocketpy.backfill(spark, "s", "t", chunk_bytes="1")': "arg-type",
    'rocketpy.restore(spark, "t", "s", to_topik="a")': "call-arg",
    "rocketpy.errors.NoSuchError": "attr-defined",
    "rocketpy.opn": "attr-defined",
}


@pytest.mark.further
@needs_spark
@pytest.mark.slow
def test_a_type_checker_passes_right_use_and_flags_wrong_use(tmp_path: Path) -> None:
    head = "import rocketpy\nstore = rocketpy.open('s')\nspark = rocketpy.local_spark()\n"
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(head + "\n".join(WRONG) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    first = head.count("\n") + 1
    expected = [(f"wrong.py:{first + at}", code) for at, code in enumerate(WRONG.values())]
    found = [
        (":".join(line.split(":")[:2]), line.rpartition("[")[2].rstrip("]"))
        for line in done.stdout.splitlines()
        if ": error: " in line
    ]
    assert found == expected, done.stdout + done.stderr
