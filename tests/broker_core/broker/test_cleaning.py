"""What is cleaned when a tool asks for it."""

from __future__ import annotations

import os

from tests.broker_core.broker.conftest import Asking, Serve

from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode

FEW = {"mappedFileSizeCommitLog": "4096", "mappedFileSizeConsumeQueue": "100"}


async def expire(asking: Asking) -> None:
    """Send some files of log, and let all but the last be old."""
    for number in range(30):
        await asking.send("orders", f"{number}".encode() * 100)
    root = asking.broker.store.root
    for path in sorted((root / "commitlog").iterdir())[:-1]:
        os.utime(path, (0, 0))


def test_expired_files_are_deleted_at_any_hour(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await expire(asking)
        store = asking.broker.store
        assert store.log_start() == 0
        answer = await asking.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)
        assert answer.code == ResponseCode.SUCCESS
        assert 0 < store.log_start() < store.log_end()
        low, end = store.queue("orders", 0).range()
        assert 0 < low < end == 30

    serve(scenario, **FEW)


def test_queue_files_of_messages_that_are_gone_are_deleted(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await expire(asking)
        store = asking.broker.store
        for start in store.parts.log.files.starts()[:-1]:
            store.parts.log.files.remove(start)
        answer = await asking.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
        assert answer.code == ResponseCode.SUCCESS
        assert store.queue("orders", 0).queue.first_offset() > 0
        assert (await asking.send("orders", b"next")).fields["queueOffset"] == "30"

    serve(scenario, **FEW)


def test_topics_without_settings_are_deleted(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        store = asking.broker.store
        for topic in ("unused", "used"):
            await asking.send(topic, b"x")
        with store.locked():
            store.topics.delete("unused", now_ms=1)
        answer = await asking.ask(RequestCode.CLEAN_UNUSED_TOPIC)
        assert answer.code == ResponseCode.SUCCESS
        assert store.stored_topics() == ["used"]

    serve(scenario)
