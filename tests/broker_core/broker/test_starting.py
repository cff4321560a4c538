"""A broker that starts: what comes before it is ready."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.net.blocking import BlockingConnection
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.sending import SendMessage
from rocketpy.broker_core.storage.disk import Disk, DiskFile

SEND = SendMessage(
    producer_group="shop",
    topic="orders",
    default_topic="TBW102",
    default_topic_queue_nums=1,
    queue_id=0,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    flag=0,
    properties="UNIQ_KEY\x01A1\x02",
)


class WaitingDisk(Disk):
    """Opens no file before it is told to."""

    def __init__(self) -> None:
        self.is_told = threading.Event()

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        self.is_told.wait()
        return super().open(path, writable=writable)


def test_a_send_that_came_while_the_store_was_opened_is_not_stored(tmp_path: Path) -> None:
    """Recovery may take long. Its client has sent the message again by then, or elsewhere."""
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 1)
    asyncio.run(send_early_and_again(tmp_path / "store"))
    with rocketpy.open(tmp_path / "store") as store:
        assert store.queues("orders") == {0: (0, 1)}


async def send_early_and_again(root: Path) -> None:
    disk = WaitingDisk()
    settings = BrokerSettings(store_path_root_dir=str(root), listen_port=0, broker_name="shop")
    broker = Broker(settings, disk=disk)
    starting = asyncio.ensure_future(broker.start())
    while not hasattr(broker, "host"):
        await asyncio.sleep(0.001)
    early = BlockingConnection(f"127.0.0.1:{broker.host.port}")
    opaque = early.send_request(command_of(SEND, b"1"))
    disk.is_told.set()
    await starting
    with pytest.raises(ServerUnreachableError):
        await asyncio.to_thread(early.read_answer, opaque)
    again = BlockingConnection(f"127.0.0.1:{broker.host.port}")
    answer = await asyncio.to_thread(again.ask, command_of(SEND, b"1"))
    assert answer.code == ResponseCode.SUCCESS
    again.close()
    await broker.stop()
