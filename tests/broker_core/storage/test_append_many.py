"""Messages of any topics that are stored together: whole, in order, with few writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.codec.record import draft_of
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.disk import DiskFile

COUNT = 60


def message(number: int, sys_flag: int = 0) -> Message:
    return Message(
        topic="t" if number % 3 else "wide",
        queue_id=0 if number % 3 else number % 4,
        stored_body=f"{number}".encode(),
        properties={
            "UNIQ_KEY": f"{number:032}",
            "KEYS": f"k{number}",
            "TAGS": "ab"[number % 2],
        },
        sys_flag=sys_flag,
        has_checksum=True,
    )


def drafts(store: rocketpy.Store, count: int = COUNT) -> list[RecordDraft]:
    return [admitted(message(number), store.config) for number in range(count)]


def bodies(store: rocketpy.Store) -> list[int]:
    return [int(body) for body in store.scan().read_all()["body"].to_pylist()]


def test_many_are_stored_in_order_over_the_files_of_the_log(store: rocketpy.Store) -> None:
    placed = store._store.append_many(drafts(store))
    assert bodies(store) == [*range(COUNT)]
    rows = store.scan(columns=["queue_offset", "commit_log_offset"]).read_all().to_pylist()
    assert [(row["queue_offset"], row["commit_log_offset"]) for row in rows] == [
        (each.queue_offset, each.physical_offset) for each in placed
    ]
    assert len(store._store.parts.log.files.starts()) > 1
    assert store.query("t", key="k4")["body"].to_pylist() == [b"4"]
    assert store.read("t", tags="b").read_all().num_rows == 20


@pytest.mark.parametrize("has_ext", [False, True])
def test_many_at_once_are_the_same_bytes_as_one_by_one(
    tmp_path: Path, small: rocketpy.StoreConfig, clock: ManualClock, has_ext: bool
) -> None:
    config, written = replace(small, consume_queue_ext=has_ext), list[dict[str, bytes]]()
    for at_once in (1, 7, COUNT):
        path = tmp_path / str(at_once)
        with rocketpy.open(path, config=config, clock=clock) as store:
            store.create_topic("t", queues=1)
            store.create_topic("wide", queues=4)
            every = drafts(store)
            for first in range(0, COUNT, at_once):
                store._store.append_many(every[first : first + at_once])
        folders = ("commitlog", "consumequeue", "consumequeue_ext")
        files = [file for name in folders for file in (path / name).rglob("*") if file.is_file()]
        written.append({str(file.relative_to(path)): file.read_bytes() for file in files})
    assert written[0] == written[1] == written[2]


def test_a_log_file_and_a_queue_are_written_once(
    path: Path, roomy: rocketpy.StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Counter[str]()

    def counted(file: DiskFile, data: bytes, at: int) -> None:
        writes[str(file.path.relative_to(path).parent)] += 1
        write(file, data, at)

    write = DiskFile.write

    with rocketpy.open(path, config=roomy) as store:
        store.create_topic("t", queues=1)
        store.create_topic("wide", queues=4)
        store._store.append_many(drafts(store))
        monkeypatch.setattr(DiskFile, "write", counted)
        monkeypatch.setattr(DiskFile, "write_on", counted)
        store._store.append_many(drafts(store))
        monkeypatch.undo()
    queues = [*(f"consumequeue/wide/{number}" for number in range(4)), "consumequeue/t/0"]
    assert {name: count for name, count in writes.items() if name != "rocketpy"} == {
        "commitlog": 1
    } | dict.fromkeys(queues, 1)


def test_if_one_queue_can_not_be_written_nothing_is_stored(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = ConsumeQueue.put_packed

    def fail(queue: ConsumeQueue, offset: int, units: bytes) -> None:
        if queue.topic == "wide":
            raise OSError("broken")
        put(queue, offset, units)

    with monkeypatch.context() as patch:
        patch.setattr(ConsumeQueue, "put_packed", fail)
        with pytest.raises(OSError, match="broken"):
            store._store.append_many(drafts(store))
    assert bodies(store) == []
    assert store._store.append_many(drafts(store))[0].queue_offset == 0
    assert bodies(store) == [*range(COUNT)]


def test_messages_of_open_transactions_among_them_take_no_number(store: rocketpy.Store) -> None:
    half = message(1, sys_flag=int(SysFlag.TRANSACTION_PREPARED))
    sent = [message(1), half, message(2), half]
    placed = store._store.append_many([admitted(each, store.config) for each in sent])
    assert [each.queue_offset for each in placed] == [0, 0, 1, 0]
    assert store.queues("t") == {0: (0, 2)}


def test_none_at_all_and_one_that_is_too_large_are_refused(store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="no messages"):
        store._store.append_many([])
    large = draft_of(replace(message(1), stored_body=b"x" * 4096))
    with pytest.raises(MessageRefusedError, match="a file of this commit log takes 4088"):
        store._store.append_many([*drafts(store), large])
    assert bodies(store) == []
