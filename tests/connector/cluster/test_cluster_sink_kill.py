"""A driver killed in the midst of a batch, and workers killed in the midst of tasks: rows once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.connector.cluster.sinks import stored, without_staging
from tests.connector.retrying_job import ROWS
from tests.crash.test_spark_kill import kill_session

import rocketpy
from rocketpy.broker_core.local import LocalBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.crash, pytest.mark.timeout(900)]

JOB = Path(__file__).with_name("sink_kill_job.py")
LINES = [f"line {number:06}" for number in range(150_000)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """What is in the topics after a killed driver, and the one that goes on."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "lines").mkdir()
    (folder / "lines" / "all.txt").write_text("\n".join(LINES) + "\n")
    topics = {"lines": 2, "error": 2, "kill": 2}
    with rocketpy.local_broker(brokers=2, topics=topics) as broker:
        without_staging(broker)
        command = [sys.executable, str(JOB), broker.namesrv_addr, str(folder)]
        with (folder / "log").open("ab") as log:
            first = subprocess.Popen(
                [*command, "stream"], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            while _count(broker, "lines") < 20_000:
                assert first.poll() is None, (folder / "log").read_text()[-5000:]
                time.sleep(0.01)
        finally:
            kill_session(first)
        assert _count(broker, "lines") < len(LINES), "killed too late: nothing was shown"
        with (folder / "log").open("ab") as log:
            ended = subprocess.run(
                [*command, "tasks"], stdout=log, stderr=log, timeout=600, check=False
            )
        said = (folder / "log").read_text()
        assert ended.returncode == 0, said[-5000:]
        assert said.count("Lost task") >= 2  # Spark tells the second one of a kind less loudly
        yield broker


def _count(broker: LocalBroker, topic: str) -> int:
    total = 0
    for index in range(2):
        with rocketpy.open(broker.brokers[index].store_path, read_only=True) as store:
            total += sum(end for _, end in store.queues(topic).values())
    return total


def bodies(broker: LocalBroker, topic: str) -> list[str]:
    return sorted(row["body"].decode() for row in stored(broker, topic))


def test_a_driver_killed_in_the_midst_of_a_batch_loses_and_doubles_nothing(
    written: LocalBroker,
) -> None:
    assert bodies(written, "lines") == LINES


@pytest.mark.parametrize("how", ["error", "kill"])
def test_tasks_that_fail_once_send_each_row_once(written: LocalBroker, how: str) -> None:
    assert sorted(map(int, bodies(written, how))) == list(range(ROWS))
