"""Java clients under load, and a broker that dies by kill -9 and comes back at once.

Sync flush: what is acknowledged must be there after that, and be consumed. Messages may come twice,
as RocketMQ's promise is, and copies of a send whose answer was lost may be stored.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import broker_process
from tests.interop.apache import free_ports
from tests.interop.load_run import QUEUES, TOPIC, Load, Outcome, play, stored

import rocketpy

pytestmark = [pytest.mark.crash]

SHORT = Load(messages=20_000, most_at_once=8, kills=[8_000])
LONG = Load(messages=2_000_000, most_at_once=100, kills=[600_000, 1_400_000])


@pytest.mark.slow
def test_java_clients_lose_nothing_when_their_broker_is_killed(tmp_path: Path) -> None:
    judge(SHORT, run(SHORT, tmp_path), tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_java_clients_lose_none_of_two_million_messages_in_two_kills(tmp_path: Path) -> None:
    judge(LONG, run(LONG, tmp_path), tmp_path)


def run(load: Load, folder: Path) -> Outcome:
    """Play a load against a broker on the folder's store, which is stopped in order at the end."""
    with rocketpy.open(folder / "store") as store:
        store.create_topic(TOPIC, QUEUES)
    with broker_process.name_server(folder) as name_server:
        settings = {
            "brokerName": "load",
            "listenPort": str(free_ports()[1]),
            "namesrvAddr": name_server.address,
            "storePathRootDir": str(folder / "store"),
            "flushDiskType": "SYNC_FLUSH",
        }
        with broker_process.broker(settings, log=folder / "broker.log") as broker:

            def kill() -> None:
                broker.kill()
                broker.start()

            return play(load, name_server.address, folder=folder, kill=kill)


def judge(load: Load, outcome: Outcome, folder: Path) -> None:
    never = load.messages - int((outcome.acknowledged > 0).sum())
    assert never == 0, f"{never:,} messages were never acknowledged"
    missed = int((outcome.consumed == 0).sum())
    assert missed == 0, f"{missed:,} acknowledged messages were never consumed"
    with rocketpy.open(folder / "store") as store:
        found = stored(store, load.messages)
        assert (found > 0).all(), f"{int((found == 0).sum()):,} acknowledged messages are lost"
        assert list(store.verify()) == []
    copies = int(found.sum()) - load.messages
    print(f"consumed again: {outcome.duplicates:,}; copies in the store: {copies:,}")
