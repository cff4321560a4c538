"""What the docs say of tests, errors, settings, metrics and options is so in the code."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest
from tests.project.docs_tables import names_in, source_files, tables
from tests.project.markdown_page import ROOT

from rocketpy.broker_core import property_names
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.storage.contents import StoreContents

BASES = {"RocketPyError", "StoreError", "NameRefusedError", "UnknownNameError"}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None, reason="make unit installs no Spark"
)


def test_every_guarantee_names_a_test_of_make_test() -> None:
    rows = tables("guarantees.md")["Guarantees"]
    assert len(rows) > 20
    for _, _, shown_by in rows:
        first, *more = (name for name in names_in(shown_by) if "::" in name)
        assert not marks_of(first) & {"further", "soak"}, first
        assert all("soak" in marks_of(name) for name in more)


def marks_of(name: str) -> set[str]:
    """Return the marks of a test, all of them said for the whole of it; it has to be there."""
    file, _, test = name.partition("::")
    body = ast.parse((ROOT / "tests" / file).read_text("utf-8")).body
    (found,) = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == test]
    whole = [node.value for node in body if isinstance(node, ast.Assign)
             and ast.unparse(node.targets[0]) == "pytestmark"]  # fmt: skip
    said = " ".join(map(ast.unparse, [*found.decorator_list, *whole]))
    return set(re.findall(r"pytest\.mark\.(\w+)", said.partition("parametrize")[0]))


def test_the_doors_of_the_store_are_those_that_readers_have() -> None:
    rows = tables("architecture.md")["Doors of the store"]
    told = {name.partition("(")[0] for row in rows for name in names_in(row[0])}
    for_servers = {"raw_queue", "log_bytes"}  # in the table below
    members = {*vars(StoreContents), *StoreContents.__annotations__} - {"parts", "topics"}
    assert told | for_servers == {name for name in members if not name.startswith("_")}


def test_the_doors_of_the_connector_are_its_interfaces() -> None:
    rows = tables("architecture.md")["Doors of the connector"]
    told = {name for row in rows for name in names_in(row[0])}
    source = ast.parse((ROOT / "connector" / "backend.py").read_text("utf-8"))
    protocols = {
        node.name
        for node in source.body
        if isinstance(node, ast.ClassDef) and ast.unparse(node.bases[-1]) == "Protocol"
    }
    assert told == protocols - {"Backend", "PlanningBackend"}  # made of the others


def error_classes() -> dict[str, type[RocketPyError]]:
    """Find the errors of all packages; those of Spark's side need it to be imported."""
    found: dict[str, type[Exception]] = {}
    for path in source_files(ROOT):
        tree = ast.parse(path.read_text("utf-8"))
        names = [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
        ]
        if names:
            relative = path.relative_to(ROOT).with_suffix("")
            module = importlib.import_module(".".join(("rocketpy", *relative.parts)))
            found |= {name: getattr(module, name) for name in names}
    return {name: each for name, each in found.items() if issubclass(each, RocketPyError)}


@needs_spark
def test_every_error_has_a_line_that_says_what_to_do() -> None:
    classes = error_classes()
    rows = [row for table in list(tables("errors.md").values())[:-1] for row in table]
    told = {names_in(row[0])[0]: row[1] for row in rows}
    assert set(told) == set(classes) - BASES, "docs/errors.md has a line for each error"
    assert told == {
        name: "yes" if each.retriable else "no"
        for name, each in classes.items()
        if name not in BASES
    }


def value(cell: str) -> object:
    number, _, unit = cell.replace(",", "").partition(" ")
    return ast.literal_eval(number) * UNITS[unit] if unit else ast.literal_eval(number)


def test_settings_and_their_apache_names_are_those_of_the_code() -> None:
    source = Path(ROOT / "broker_core" / "config.py").read_text("utf-8")
    for name, default, apache, _ in tables("operations.md")["Settings"]:
        setting = name.strip("`")
        assert getattr(StoreConfig(), setting) == value(default)
        line = next(line for line in source.splitlines() if line.startswith(f"    {setting}:"))
        assert apache == "" or f"[{apache.strip('`')}]" in line


PROPERTY_NAMES = ROOT / "broker_core" / "property_names.py"
KNOWN_PROPERTIES = re.findall(
    r'^[A-Z_]+ = "(.+)"  # (.+)$', PROPERTY_NAMES.read_text("utf-8"), re.MULTILINE
)


def test_properties_are_those_of_the_code() -> None:
    constants = [name for name in vars(property_names) if name.isupper()]
    assert len(KNOWN_PROPERTIES) == len(constants), "each has a line and says what it means"
    told = [[name.strip("`"), text] for name, text in tables("storage-format.md")["Properties"]]
    assert told == [list(row) for row in KNOWN_PROPERTIES]


def test_names_of_properties_are_written_down_once() -> None:
    # Names of one word, such as TAGS, are ordinary words too.
    names = {name for name, _ in KNOWN_PROPERTIES if "_" in name}
    for path in set(source_files(ROOT)) - {PROPERTY_NAMES}:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant):
                text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
                assert text not in names, f"{path}:{node.lineno}: import it from property_names"


@needs_spark
def test_metrics_are_those_that_are_told() -> None:
    from rocketpy.connector.metrics import METRICS

    rows = tables("guides/monitoring.md")["Watch queries: lag, rates, Prometheus"]
    assert rows == [[f"`{each.name}`", each.kind, each.help] for each in METRICS]


def test_the_options_of_others_are_answered_as_errors_answer_them() -> None:
    from rocketpy.connector import foreign_options as foreign

    for page, heading, rows in (
        ("from-kafka.md", "Reading", foreign.KAFKA_READING),
        ("from-kafka.md", "Writing", foreign.KAFKA_WRITING),
        ("from-rocketmq-spark.md", "Structured Streaming: reading", foreign.ROCKETMQ_SPARK_READING),
        ("from-rocketmq-spark.md", "Structured Streaming: writing", foreign.ROCKETMQ_SPARK_WRITING),
        ("from-rocketmq-spark.md", "Their settings", foreign.ROCKETMQ_SPARK_DSTREAMS),
    ):
        told = [(names_in(row[0]), names_in(row[1]), row[2]) for row in tables(page)[heading]]
        assert told == [(list(row.names), list(row.ours), row.difference) for row in rows], page


@needs_spark
@pytest.mark.parametrize("page", ["from-kafka.md", "from-rocketmq-spark.md"])
def test_columns_that_stand_beside_others_are_ours(page: str) -> None:
    from rocketpy.connector.schema import spark_schema
    from rocketpy.connector.write_columns import COLUMNS

    types = {field.name: field.dataType.simpleString() for field in spark_schema("messages", "*")}
    for _, ours, type_ in tables(page)["Columns"]:
        for name in names_in(ours):
            assert name in types or name in COLUMNS
            assert types.get(name, "string") == type_.partition(";")[0]


def test_what_is_given_instead_of_an_option_of_others_is_there() -> None:
    from rocketpy.connector import foreign_options as foreign
    from rocketpy.connector.option_tables import READ_OPTIONS, WRITE_OPTIONS

    reading = (*foreign.KAFKA_READING, *foreign.ROCKETMQ_SPARK_READING)
    writing = (*foreign.KAFKA_WRITING, *foreign.ROCKETMQ_SPARK_WRITING)
    for rows, options in (
        ((*reading, *foreign.ROCKETMQ_SPARK_DSTREAMS), READ_OPTIONS),
        (writing, WRITE_OPTIONS),
    ):
        named = {name for row in rows for name in row.ours}
        assert named <= {option.name for option in options}
