"""Messages that are gone from a cluster: deleted before or while they are read, or made anew."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.connector.cluster.places import OurPlace
from tests.connector.cluster.queries import SCHEMA, Query, batch, parsed, rows_of

import rocketpy
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.cluster import queues as cluster_queues
from rocketpy.connector.data_loss import DataLossError

COUNT = 60  # messages of 300 bytes, in files of 4 KiB


@pytest.fixture(scope="module")
def servers() -> Iterator[OurPlace]:
    settings = {"mappedFileSizeCommitLog": "4096", "maxMessageSize": "3000"}
    with local_broker(settings=settings) as running:
        place = OurPlace(running)
        with place.cluster:
            yield place


@pytest.fixture
def place(servers: OurPlace, monkeypatch: pytest.MonkeyPatch) -> OurPlace:
    for name in ("_ROUTES_KEPT_S", "_RANGES_KEPT_S"):
        monkeypatch.setattr(cluster_queues, name, 0.0)
    servers.servers.reset()
    servers.create("orders", 1)
    fill(servers, COUNT)
    return servers


def fill(place: OurPlace, count: int) -> None:
    (queue,) = place.create("orders", 1)
    place.send(queue, *(f"{number}" + 150 * "-" for number in range(count)))


def delete_oldest(place: OurPlace) -> int:
    """Let retention delete two files of the log; return the first offset that is left."""
    config = rocketpy.StoreConfig(
        commit_log_file_size=4096,
        max_message_size=3000,
        disk_max_used_ratio=0.0,  # what is expired goes at any hour
    )
    with rocketpy.open(place.servers.store_path, config=config) as store:
        for file in sorted((store.path / "commitlog").iterdir())[:2]:
            os.utime(file, (0, 0))
        assert len(store.clean()) >= 2
        low = store.queues("orders")[0][0]
    assert 0 < low < COUNT
    return low


def given(place: OurPlace, **more: object) -> dict[str, object]:
    return {**place.options, "topic": "orders", **more}


def offsets(rows: list[tuple[MessageQueue, int, str]]) -> list[int]:
    return [offset for _, offset, _ in rows]


def test_what_is_deleted_before_a_plan_stops_a_stream_and_is_named_exactly(
    place: OurPlace,
) -> None:
    query = Query(given(place))
    low = delete_oldest(place)
    with pytest.raises(DataLossError, match=rf"orders/\S+:0 from offset 0 up to {low} \("):
        query.run()


def test_without_fail_on_data_loss_it_goes_on_after_them(
    place: OurPlace, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(given(place, failOnDataLoss="false"))
    low = delete_oldest(place)
    assert offsets(query.run()) == [*range(low, COUNT)]
    assert f"from offset 0 up to {low}" in caplog.text


def test_what_is_deleted_before_a_task_reads_it_is_lost_or_passed_over(place: OurPlace) -> None:
    strict = BatchReader(parsed(given(place)), SCHEMA)
    patient = BatchReader(parsed(given(place, failOnDataLoss="false")), SCHEMA)
    plans = [(reader, reader.partitions()) for reader in (strict, patient)]
    low = delete_oldest(place)
    with pytest.raises(DataLossError, match=f"from offset 0 up to {low} "):
        rows_of(*plans[0])
    assert offsets(rows_of(*plans[1])) == [*range(low, COUNT)]


def test_the_earliest_is_the_first_that_is_left(place: OurPlace) -> None:
    low = delete_oldest(place)
    assert offsets(batch(given(place))) == [*range(low, COUNT)]


def test_a_topic_that_was_made_anew_is_a_loss_and_read_from_its_begin(place: OurPlace) -> None:
    strict, patient = Query(given(place)), Query(given(place, failOnDataLoss="false"))
    strict.run()
    patient.run()
    ClusterTopics(place.cluster).delete("orders")
    fill(place, COUNT + 1)
    with pytest.raises(DataLossError, match="another message stands before that offset"):
        strict.run()
    assert offsets(patient.run()) == [*range(COUNT + 1)]


def test_a_topic_that_was_deleted_is_a_loss(place: OurPlace) -> None:
    query = Query(given(place))
    query.run()
    ClusterTopics(place.cluster).delete("orders")
    with pytest.raises(DataLossError, match="there is no such queue any more"):
        query.run()
