"""Apache's broker opens a store in which we deleted a topic, and we open what it made of it."""

from __future__ import annotations

from pathlib import Path

from tests.interop.apache import ApacheBroker

import rocketpy

CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=1 << 20,
    consume_queue_file_entries=100,
    index_slots=500,
    index_entries=2000,
)
SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 500,
    "maxIndexNum": 2000,
}


def test_apache_serves_a_topic_that_was_deleted_and_made_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with rocketpy.open(path, config=CONFIG) as store:
        for topic in ("orders", "gone", "kept"):
            store.create_topic(topic, queues=1)
            for number in range(5):
                store.send(topic, f"old {number}", keys=["k"])
        for topic in ("orders", "gone"):
            store._store.delete_topic(topic)
        store.create_topic("orders", queues=1)
        store.send("orders", "new")
    with ApacheBroker(path, settings=SETTINGS) as broker:
        sent = broker.tool.send("orders", [{"body": b"newer"}])
        assert sent[0]["queueOffset"] == 1
        pulled = broker.tool.pull(["orders", "kept"])
    found = {(m["topic"], m["queueOffset"]): m["body"] for m in pulled}
    kept = {("kept", number): f"old {number}".encode() for number in range(5)}
    assert found == {("orders", 0): b"new", ("orders", 1): b"newer", **kept}
    (path / "abort").write_text("1")  # all is replayed that the note does not exclude
    (path / "checkpoint").unlink()
    with rocketpy.open(path, config=CONFIG) as store:
        table = store.read("orders", queue_id=0).read_all()
        assert table.column("body").to_pylist() == [b"new", b"newer"]
        assert "gone" not in store._store.topic_names()
        assert list(store.verify()) == []
