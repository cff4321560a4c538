"""Index entries come behind the append: keys are found at once, and each entry is written once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.writer import Writer

ASK = """
import sys, rocketpy
with rocketpy.open(sys.argv[1], read_only=True) as store:
    print(store.query("t", key=sys.argv[2])["body"].to_pylist())
"""


@pytest.fixture
def quiet(small: rocketpy.StoreConfig) -> rocketpy.StoreConfig:
    """Nothing is indexed in the background."""
    return replace(small, flush_interval_ms=1_000_000_000)


@pytest.fixture
def sent(path: Path, quiet: rocketpy.StoreConfig, clock: ManualClock) -> rocketpy.Store:
    """Twelve messages, the last seven of which are not in the index yet."""
    store = rocketpy.open(path, config=quiet, clock=clock)
    store.create_topic("t", queues=1)
    send(store, clock, range(5))
    catch_up(store)
    send(store, clock, range(5, 12))
    return store


def send(store: rocketpy.Store, clock: ManualClock, numbers: range) -> None:
    for number in numbers:
        clock.advance(900)
        unique = {"UNIQ_KEY": f"u{number}"}
        store.send("t", f"{number}", keys=[f"k{number}", "all"], tags="x", properties=unique)


def entries(store: rocketpy.Store) -> list[tuple[int, int]]:
    """Return hash and place of every entry of the index."""
    index = store._store.parts.index
    files = [index.file(name) for name in index.names()]
    views = [file.read_entries(1, file.header().count) for file in files]
    return [(int(e["key_hash"]), int(e["physical_offset"])) for view in views for e in view]


def found(store: rocketpy.Store, key: str) -> list[int]:
    return [int(body) for body in store.query("t", key=key)["body"].to_pylist()]


def catch_up(store: rocketpy.Store) -> None:
    store._store._writer.catch_up()


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "index").iterdir())}


def test_a_key_is_found_by_another_process_before_it_is_in_the_index(
    sent: rocketpy.Store, path: Path
) -> None:
    assert len(entries(sent)) == 5 * 4
    command = [sys.executable, "-c", ASK, str(path)]
    for key, expected in (("k11", "[b'11']"), ("u7", "[b'7']"), ("k2", "[b'2']"), ("k12", "[]")):
        answer = subprocess.run([*command, key], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == expected
    sent.close()


def test_a_reader_that_knew_the_store_of_another_broker_finds_new_keys(
    sent: rocketpy.Store, path: Path, quiet: rocketpy.StoreConfig, clock: ManualClock
) -> None:
    sent.close()
    shutil.rmtree(path / "rocketpy")
    with rocketpy.open(path, config=quiet, read_only=True) as reader:
        assert found(reader, "all") == list(range(12))
        with rocketpy.open(path, config=quiet, clock=clock) as store:
            send(store, clock, range(12, 14))
            assert len(entries(store)) == 12 * 4
            assert found(reader, "all") == list(range(14))


def test_a_closed_store_has_the_index_that_each_message_made_at_once(
    tmp_path: Path, quiet: rocketpy.StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("late", 1000), ("some", 3), ("once", 0)):
        monkeypatch.setattr(Writer, "most_unindexed", most)
        clock = ManualClock()
        with rocketpy.open(tmp_path / name, config=quiet, clock=clock) as store:
            store.create_topic("t", queues=1)
            send(store, clock, range(20))
            unique = pa.array([[("UNIQ_KEY", "u20")]], pa.map_(pa.string(), pa.string()))
            store.append("t", pa.table({"body": ["20"], "properties": unique}))
            send(store, clock, range(21, 30))
    assert len(files(tmp_path / "once")) > 1
    assert files(tmp_path / "late") == files(tmp_path / "some") == files(tmp_path / "once")


def test_a_sender_writes_the_entries_once_they_are_many(
    sent: rocketpy.Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writer, "most_unindexed", 8)
    send(sent, clock, range(12, 13))
    assert len(entries(sent)) == 5 * 4
    send(sent, clock, range(13, 14))
    assert len(entries(sent)) == 13 * 4
    assert found(sent, "all") == list(range(14))
    sent.close()


def test_a_message_in_the_index_and_behind_its_mark_is_found_once(sent: rocketpy.Store) -> None:
    tail = sent._store.parts.tail
    mark = tail.indexed()
    assert mark is not None
    catch_up(sent)
    tail.write_indexed(mark)
    assert found(sent, "all") == list(range(12))
    assert list(sent.verify()) == []
    sent.close()


@pytest.mark.parametrize("number", [0, 3, 5, 11])
def test_entries_behind_the_mark_are_not_written_twice(number: int, sent: rocketpy.Store) -> None:
    catch_up(sent)
    expected = entries(sent)
    assert len(set(expected)) == len(expected) == 12 * 4
    sent._store.parts.tail.write_indexed(places(sent)[number])
    catch_up(sent)
    assert entries(sent) == expected
    assert list(sent.verify()) == []
    sent.close()


def test_a_damaged_mark_is_made_up_for_by_the_index(sent: rocketpy.Store, path: Path) -> None:
    with (path / "rocketpy" / "tail").open("r+b") as file:
        file.seek(1024)
        file.write(b"\xff")
    assert found(sent, "all") == list(range(12))
    assert [problem.invariant for problem in sent.verify()] == ["I6"]
    catch_up(sent)
    assert len(set(entries(sent))) == len(entries(sent)) == 12 * 4
    assert list(sent.verify()) == []
    sent.close()


def test_an_append_that_died_is_indexed_with_what_was_sent_before(
    sent: rocketpy.Store, clock: ManualClock
) -> None:
    tail = sent._store.parts.tail
    state = tail.read()
    assert state is not None
    send(sent, clock, range(12, 14))
    tail.write(state)  # as if their sender had died before it could
    assert found(sent, "all") == list(range(14))
    send(sent, clock, range(14, 15))
    assert found(sent, "all") == list(range(15))
    catch_up(sent)
    assert len(set(entries(sent))) == len(entries(sent)) == 15 * 4
    assert list(sent.verify()) == []
    sent.close()


def test_messages_that_another_broker_appended_and_indexed_are_found_once(
    sent: rocketpy.Store, clock: ManualClock
) -> None:
    """Our marks stay where they were; it knows nothing of them."""
    catch_up(sent)
    tail = sent._store.parts.tail
    state, mark = tail.read(), tail.indexed()
    assert state is not None
    assert mark is not None
    send(sent, clock, range(12, 20))
    catch_up(sent)
    tail.write(state)
    tail.write_indexed(mark)
    assert found(sent, "all") == list(range(20))
    send(sent, clock, range(20, 21))
    assert found(sent, "all") == list(range(21))
    sent.close()


@pytest.mark.parametrize("kind", [SysFlag.TRANSACTION_PREPARED, SysFlag.TRANSACTION_ROLLBACK])
def test_the_same_messages_are_found_before_and_after_they_are_indexed(
    kind: SysFlag, sent: rocketpy.Store
) -> None:
    properties = {"KEYS": "half"}
    message = Message(topic="t", stored_body=b"12", properties=properties, sys_flag=int(kind))
    put_message(sent, message)
    before = found(sent, "half")
    catch_up(sent)
    assert found(sent, "half") == before == ([12] if kind == SysFlag.TRANSACTION_PREPARED else [])
    sent.close()


def test_an_open_store_may_lack_entries_and_a_closed_one_may_not(
    sent: rocketpy.Store, path: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    sent.close()
    with rocketpy.open(copy, read_only=True) as store:
        assert list(store.verify()) == []
        (copy / "abort").unlink()
        assert [problem.invariant for problem in store.verify()] == ["I9"]


def test_messages_that_were_stored_without_an_index_get_into_it(
    path: Path, quiet: rocketpy.StoreConfig, clock: ManualClock
) -> None:
    with rocketpy.open(path, config=replace(quiet, message_index=False), clock=clock) as store:
        store.create_topic("t", queues=1)
        send(store, clock, range(12))
        assert found(store, "all") == []
    with rocketpy.open(path, config=quiet, clock=clock) as store:
        assert len(entries(store)) == 12 * 4
        assert found(store, "all") == list(range(12))
        assert list(store.verify()) == []


def test_a_record_that_was_damaged_before_it_is_indexed_is_told(
    sent: rocketpy.Store, path: Path, quiet: rocketpy.StoreConfig
) -> None:
    at = places(sent)[8]
    start = at - at % quiet.commit_log_file_size
    with (path / "commitlog" / f"{start:020d}").open("r+b") as file:
        file.seek(at - start)
        file.write(bytes(8))
    with pytest.raises(CorruptStoreError, match="no record, but the log goes on") as caught:
        catch_up(sent)
    assert caught.value.offset == at
    with pytest.raises(CorruptStoreError):
        sent.close()
    assert (path / "abort").exists()


def places(store: rocketpy.Store) -> list[int]:
    return [int(place.as_py()) for place in store.scan(columns=["commit_log_offset"]).read_all()[0]]
