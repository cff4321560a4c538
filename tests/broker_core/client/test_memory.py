"""Producers and consumers of many messages take no more memory than those of few."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import broker_process

import rocketpy

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

ROOT = Path(__file__).parents[3]
FEW, MANY = 50_000, 10_000_000
# From the third tenth on: what is larger by then is there to stay, or grows with the messages.
WARM = 3
MOST_RATIO, MOST_BYTES = 1.25, 8 << 20
# With many messages: a client that keeps anything of each of them keeps more than this. By the
# third tenth the timers of its first requests have ended, too: those of pulls last half a minute.
MOST_BYTES_A_MESSAGE = 1


@pytest.fixture
def namesrv_addr(tmp_path: Path) -> Iterator[str]:
    """A name server and a broker in processes of their own."""
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("flat", 4)
    settings = {
        "listenPort": "0",
        "brokerIP1": "127.0.0.1",
        "storePathRootDir": f"{tmp_path}/store",
    }
    with broker_process.name_server(tmp_path) as name_server:
        address = name_server.address
        broker = broker_process.broker(
            {**settings, "namesrvAddr": address}, log=tmp_path / "broker.log"
        )
        with broker:
            yield address


def told(address: str, role: str, messages: int) -> list[int]:
    """Return how many bytes a client had after each tenth of its messages."""
    command = [sys.executable, "-m", "tests.broker_core.client.memory_child"]
    done = subprocess.run(
        [*command, address, role, str(messages)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line)["bytes"] for line in done.stdout.splitlines()]


def check(address: str, role: str, messages: int) -> None:
    """Have a client take no more memory than in its first tenths, but for what is allowed."""
    took = told(address, role, messages)
    print(role, [f"{each / 2**20:.1f} MiB" for each in took])
    assert len(took) >= 9
    warm, most = max(took[:WARM]), max(took[WARM:])
    few = max(MOST_RATIO * warm, warm + MOST_BYTES)
    allowed = few if messages <= FEW else warm + MOST_BYTES_A_MESSAGE * messages
    assert most <= allowed, (role, took)


def test_clients_of_many_messages_stay_flat(namesrv_addr: str) -> None:
    for role in ("batches", "push", "poll"):
        check(namesrv_addr, role, FEW)
    check(namesrv_addr, "coroutines", FEW // 5)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("role", ["batches", "coroutines"])
def test_producers_of_ten_million_messages_stay_flat(namesrv_addr: str, role: str) -> None:
    check(namesrv_addr, role, MANY)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("role", ["push", "poll"])
def test_consumers_of_ten_million_messages_stay_flat(namesrv_addr: str, role: str) -> None:
    check(namesrv_addr, "batches", MANY)
    check(namesrv_addr, role, MANY)
