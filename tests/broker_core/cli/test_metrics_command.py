"""`rocketpy metrics`, and --metrics-port of broker and name server, as processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import COMMAND, Run
from tests.broker_core.cli.test_broker_command import end
from tests.broker_core.metrics.scraping import Scraped, scrape

import rocketpy


@contextmanager
def started(*arguments: object) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
    """Run a command, and yield what it tells first, as JSON, with its process."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline()), process
        finally:
            process.kill()  # if a test failed


def test_broker_name_server_and_cluster_are_scraped_side_by_side(tmp_path: Path) -> None:
    settings = tmp_path / "broker.conf"
    settings.write_text("brokerName=shop\nmappedFileSizeCommitLog=16777216\n")
    of_store = ("-c", settings, "--store", tmp_path / "store")
    with (
        started("namesrv", "--port", 0, "--metrics-port", 0) as (namesrv, first),
        started(
            *("broker", *of_store, "-n", namesrv["address"], "--port", 0, "--metrics-port", 0)
        ) as (broker, second),
        started("metrics", f"rocketmq://{namesrv['address']}", "--port", 0) as (cluster, third),
    ):
        with rocketpy.connect(namesrv["address"]) as mq:
            mq.admin.topics.create("orders", 1)
            mq.send("orders", "x")
        registered = {"cluster": "DefaultCluster", "node_id": namesrv["address"]}
        of_name_server = scrape(namesrv["metrics"])
        assert of_name_server.value("rocketpy_nameserver_brokers", **registered) == 1
        assert of_name_server.value("rocketpy_nameserver_topics") > 5
        for address in (broker["metrics"], cluster["metrics"]):
            orders = {"topic": "orders", "node_id": "shop"}
            assert scrape(address).value("rocketmq_messages_in_total", **orders) == 1
        assert end(third, signal.SIGINT) == (130, "")
        assert end(second, signal.SIGTERM) == (0, "")
        assert end(first, signal.SIGTERM) == (0, "")


def test_a_folder_is_printed_once_by_what_its_files_tell(rocketpy_: Run, tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 2)
        for _ in range(3):
            store.send("orders", "x", queue_id=1)
        store.commit("billing", "orders", {0: 0, 1: 1})
    ended = rocketpy_("metrics", tmp_path / "store", "--once", "--queues")
    assert ended.exit_code == 0
    found = Scraped(ended.stdout)
    assert found.value("rocketmq_consumer_lag_messages", consumer_group="billing") == 2
    assert found.value("rocketpy_consumer_queue_lag_messages", queue_id="1") == 2
    assert found.value("rocketmq_messages_in_total", topic="orders") == 3
    assert found.value("rocketmq_storage_size") > 0
    # Files do not tell it.
    assert not found.of("rocketmq_consumer_connections")
    lines = rocketpy_("metrics", tmp_path / "store", "--once", "--json").stdout.splitlines()
    lags = [json.loads(line) for line in lines if "lag_messages" in line]
    assert [(each["labels"]["topic"], each["value"]) for each in lags] == [("orders", 2)]


def test_a_cluster_that_is_not_there_is_told_and_a_folder_is_an_error(
    rocketpy_: Run, tmp_path: Path
) -> None:
    ended = rocketpy_("metrics", "rocketmq://127.0.0.1:1", "--once")
    assert ended.exit_code == 0
    assert Scraped(ended.stdout).value("rocketpy_nameserver_up") == 0
    ended = rocketpy_("metrics", tmp_path / "nothing", "--once")
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)


def test_a_port_that_is_taken_is_one_line_and_exit_code_2(rocketpy_: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ends = [
            rocketpy_("metrics", "rocketmq://127.0.0.1:1", "--port", port),
            rocketpy_("namesrv", "--port", 0, "--metrics-port", port),
            rocketpy_("broker", "--store", tmp_path / "s", "--port", 0, "--metrics-port", port),
        ]
    for ended in ends:
        assert ended.exit_code == 2
        assert f"cannot listen on 127.0.0.1:{port}: " in ended.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "arguments", [("metrics", "rocketmq://127.0.0.1:1"), ("namesrv", "--metrics-port", "0")]
)
def test_without_prometheus_client_it_says_what_to_install(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "from rocketpy.broker_core.cli.app import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    needs = 'this needs Prometheus\' client: pip install "rocketpy-spark[metrics]"'
    assert (ended.returncode, ended.stderr) == (2, f"rocketpy: {needs}\n")


def test_metrics_that_would_have_to_be_pushed_are_refused(rocketpy_: Run, tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("metricsExporterType=OTLP_GRPC\n")
    for command in ("broker", "namesrv"):
        ended = rocketpy_(command, "-c", file, "--print-config")
        assert ended.exit_code == 2
        assert "metricsExporterType=OTLP_GRPC: give PROM, or DISABLE" in ended.stderr
