"""Every command teaches by examples that run; exit codes, JSON and the page about them hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest.mark import ParameterSet
from tests.project import command_line
from tests.project.command_line import Example, Found
from typer.testing import CliRunner, Result

from rocketpy.broker_core.broker.settings import PROPERTIES as BROKER_PROPERTIES
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.cli.exits import EXIT_CODES
from rocketpy.broker_core.local import local_broker

COMMANDS = command_line.commands()
PLAIN = [each for each in COMMANDS if not each.is_spark]
PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
RUN = (sys.executable, "-c", "from rocketpy.spark_jobs.cli import main; main()")

# What --json prints, by command: the keys of each object.
KEYS = {
    "store stat": "path state geometry size_on_disk log index topics groups",
    "store verify": "",
    "store dump": "topic queue_id queue_offset tags keys body body_encoding properties "
    "born_timestamp store_timestamp born_host store_host msg_id uniq_key reconsume_times flag "
    "sys_flag commit_log_offset store_size body_crc prepared_transaction_offset",
    "store repair": "path records topics queues repeated skipped lost unknown_topics placeholders "
    "replaced is_whole log_start log_end",
    "topic list": "topic queues messages perm",
    "topic describe": "topic perm read_queues write_queues order attributes messages queues groups",
    "topic create": "topic queues messages perm",
    "topic update": "topic queues messages perm",
    "send": "msg_id queue_id queue_offset physical_offset stored_ms recall_handle",
    "tail": "store_timestamp queue_id queue_offset commit_log_offset tags keys body body_encoding "
    "properties",
    "trace": "uniq_key sends transactions deliveries",
    "namesrv": "listenPort bindAddress kvConfigPath configStorePath configBlackList "
    "orderMessageEnable returnOrderTopicConfigToBroker scanNotActiveBrokerInterval "
    "enableAllTopicList enableTopicList deleteTopicWithBrokerRegistration "
    "serverChannelMaxIdleTimeSeconds metricsExporterType metricsPromExporterPort "
    "metricsPromExporterHost tls.server.mode tls.test.mode.enable tls.server.keyPath "
    "tls.server.keyPassword tls.server.certPath tls.server.trustCertPath "
    "tls.server.need.client.auth",
    "broker": " ".join(BROKER_PROPERTIES.attributes),
    "group list": "group topics behind members dead_letters retry_max_times retry_queues "
    "consume_enabled",
    "group create": "group retry_max_times retry_queues consume_enabled",
    "group lag": "group topic queue_id offset end behind behind_ms",
    "group reset": "queue_id before after",
    "metrics": "name labels value",
    "doctor": "check verdict what remedy",
    "console": "title kind looked_ms findings pending brokers topics groups lag age_ms "
    "dead_letters size_bytes",
    "console-user": "user role done",
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return command_line.shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster with what examples speak of."""
    with local_broker(settings={"traceTopicEnable": "true"}) as running:
        address = f"rocketmq://{running.namesrv_addr}"
        command_line.fill(address)
        yield address


@pytest.fixture
def folder(prepared: Path, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the stores of which examples speak; the current one."""
    monkeypatch.setenv(command_line.CLUSTER_THERE, cluster)
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    free = SimpleNamespace(total=1 << 40, used=1 << 39, free=1 << 39)  # whatever this machine has
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    return tmp_path


def run(example: Example, *more: str) -> Result:
    stdin = Path(example.stdin).read_text() if example.stdin else None
    return CliRunner().invoke(app, [*example.typed, *more], input=stdin)


def by_name(found: Iterable[Found]) -> list[ParameterSet]:
    return [pytest.param(each, id=each.name or "rocketpy") for each in found]


def to_run(found: Iterable[Found]) -> list[ParameterSet]:
    """Return commands; the doctor finds no fault only where Spark and Java are."""
    marks = {"doctor": [pytest.mark.spark]}
    return [pytest.param(each, id=each.name, marks=marks.get(each.name, [])) for each in found]


@pytest.mark.parametrize("found", by_name(command_line.walk()))
def test_help_has_examples_in_80_columns(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    said = CliRunner().invoke(app, [*found.name.split(), "--help"]).output
    for line in found.examples_text.splitlines():
        assert line.strip() in said
    assert found.examples
    assert max(map(len, said.splitlines())) <= 80
    assert "<bool>" not in said


@pytest.mark.parametrize("found", by_name(COMMANDS))
def test_a_command_says_what_its_exit_codes_mean_and_prints_json(found: Found) -> None:
    assert "[bold]Exit codes[/bold]: 0 " in found.text
    assert "--json" in found.options
    for example in found.examples:
        assert example.words[: len(found.name.split())] == tuple(found.name.split())


@pytest.mark.parametrize("found", to_run(PLAIN))
def test_the_examples_of_a_command_run(found: Found, folder: Path) -> None:
    assert folder == Path.cwd()
    for example in found.examples:
        if example.never_ends or "--spark" in example.words:
            continue
        ended = run(example)
        assert ended.exit_code == 0, (example, ended.output)


ENDLESS = [
    pytest.param(example, id=" ".join(example.words))
    for each in PLAIN
    for example in each.examples
    if example.never_ends
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("example", ENDLESS)
def test_an_example_without_an_end_is_ended_by_ctrl_c(example: Example) -> None:
    with subprocess.Popen(
        [*RUN, *example.typed],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")


def keys_of(text: str) -> set[str]:
    """Return the keys of the first object that was printed as JSON."""
    for line in text.splitlines():
        value = json.loads(line)
        first = value[0] if isinstance(value, list) else value
        return {*first}
    return set()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("found", to_run(PLAIN))
def test_json_has_these_keys(found: Found) -> None:
    example = next(each for each in found.examples if not each.never_ends)
    more = () if "--json" in example.words else ("--json",)
    ended = run(example, *more)
    assert ended.exit_code == 0, ended.output
    assert keys_of(ended.stdout) == {*KEYS[found.name].split()}


_EXAMPLES_IN_ONE_PROCESS = """
import json, sys
from typer.testing import CliRunner
from rocketpy.broker_core.cli import app
from rocketpy.spark_jobs import cli
from rocketpy.spark_jobs.quiet_start import quiet_spark
with quiet_spark(delta=True):
    pass  # the JVM stays, and has Delta's JARs for those commands that need them
for words in json.load(sys.stdin):
    ended = CliRunner().invoke(app, words)
    print(json.dumps([words, ended.exit_code, ended.output, ended.stdout]), flush=True)
"""


def job_lines() -> list[list[str]]:
    """Return an example of each job as JSON, and before it its dry run where that comes first.

    They run in this order: one may need what another has made.
    """
    lines = []
    for each in COMMANDS:
        if each.is_spark:
            first, *more = (example for example in each.examples if not example.never_ends)
            more = more[:1] if "--dry-run" in first.words else []
            lines += [[*example.words] for example in (first, *more)]
            lines[-1] += [] if "--json" in lines[-1] else ["--json"]
    return lines


@pytest.mark.spark
@pytest.mark.further
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("folder")
def test_examples_of_each_job_run_and_print_json() -> None:
    pytest.importorskip("pyspark")
    lines = job_lines()
    ended = subprocess.run(
        [sys.executable, "-c", _EXAMPLES_IN_ONE_PROCESS],  # hence with one JVM
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [words for words, *_ in told] == lines, ended.stderr
    assert "resolving dependencies" not in ended.stderr  # Spark starts without a page of lines
    for words, code, output, stdout in told:
        assert code == 0, (words, output)
        for line in stdout.splitlines() if "--json" in words else ():
            json.loads(line)


@pytest.mark.usefixtures("folder")
def test_a_reader_that_has_enough_ends_any_command_quietly() -> None:
    shell = subprocess.run(
        ["bash", "-c", f"{RUN[0]} -m rocketpy.broker_core.cli topic list shop-store | true; "
         'echo "${PIPESTATUS[0]}"'],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    assert (shell.stdout, shell.stderr) == ("141\n", "")


@pytest.mark.usefixtures("folder")
def test_what_nobody_foresaw_is_told_from_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocketpy.broker_core.cli.topics.show", lambda *_, **__: 1 / 0)
    ended = CliRunner().invoke(app, ["topic", "list", "shop-store"])
    assert ended.exit_code == 70
    assert "ZeroDivisionError" in ended.stderr
    assert "please report" in ended.stderr


def test_exit_codes_are_told_by_help_and_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    said = CliRunner().invoke(app, ["--help"]).output
    told = {int(code) for code in re.findall(r"^ +(\d+)  \w", said, re.MULTILINE)}
    assert told == {*EXIT_CODES}
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


def row(found: Found) -> str:
    """Return what the page should say of a command: paste it where the test misses it."""
    what = re.sub(r"\[/?bold\]", "", found.text.partition("\n")[0])
    first = found.examples_text.splitlines()[0].strip().replace("|", "\\|")
    return f"| `rocketpy {found.name}` | {what} | `{first}` |"


def test_the_page_has_each_command_with_its_first_example() -> None:
    rows = re.findall(r"^\| `rocketpy .*$", PAGE, re.MULTILINE)
    assert rows == [row(each) for each in COMMANDS]


@pytest.mark.usefixtures("folder")
def test_in_a_pipe_names_stay_whole_and_plain() -> None:
    name = "payments-of-the-northern-branch-that-were-settled-by-hand-in-the-second-quarter"
    assert CliRunner().invoke(app, ["topic", "create", "shop-store", name]).exit_code == 0
    without = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    listed = subprocess.run(
        [*RUN, "topic", "list", "shop-store"], env=without, capture_output=True, text=True
    )
    assert name in listed.stdout
    assert "\x1b" not in listed.stdout
