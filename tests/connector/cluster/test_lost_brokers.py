"""A broker that does not answer is not gone: nothing is skipped, nothing is called lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from tests.broker_core.client.forwarder import Forwarder
from tests.connector.cluster.places import OurPlace
from tests.connector.cluster.queries import SCHEMA, Query, Rows, batch, parsed, rows_of

from rocketpy.broker_core.client import range_reading
from rocketpy.broker_core.client.pulling import Puller
from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.cluster import queues as cluster_queues
from rocketpy.connector.topics import UnreachableError

A, B = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-b", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[OurPlace]:
    with local_broker(brokers=2) as running:
        place = OurPlace(running)
        with place.cluster:
            yield place


@pytest.fixture
def place(servers: OurPlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[OurPlace]:
    """Both brokers run at the begin, each with three messages in its one queue."""
    for name in ("_ROUTES_KEPT_S", "_PASSED_OVER_S"):  # each look asks anew
        monkeypatch.setattr(cluster_queues, name, 0.0)
    monkeypatch.setattr(range_reading, "_LONGEST_DELAY_S", 0.1)
    servers.servers.reset()
    servers.create("orders", 1)
    for queue in (A, B):
        servers.send(queue, *(f"{queue.key}-{number}" for number in range(3)))
    yield servers
    if not servers.servers.brokers[1].is_running:
        servers.servers.start_broker(1)


def given(place: OurPlace, **more: object) -> dict[str, object]:
    return {**place.options, "topic": "orders", **more}


def of(*queues: MessageQueue, first: int = 0, last: int = 3) -> Rows:
    return [(queue, n, f"{queue.key}-{n}") for queue in queues for n in range(first, last)]


def test_a_stream_reads_the_other_broker_and_later_all_of_the_lost_one(
    place: OurPlace, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(given(place, maxRowsPerTrigger=2))
    assert query.run(2) == of(A, B, last=1)
    place.servers.kill_broker(1)
    place.send(A, f"{A.key}-3")
    found = [*query.run(), *query.run()]
    assert sorted(found) == of(A, first=1, last=4)
    assert query.at["offsets"] == {"orders": {"broker-a:0": 4, "broker-b:0": 1}}
    assert "orders on broker-b" in caplog.text
    assert "The others are read meanwhile" in caplog.text
    query.restart()  # the checkpoint keeps the position of what is out of sight
    assert query.run() == []
    place.servers.start_broker(1)
    assert query.run() == of(B, first=1)


def test_available_now_does_not_end_before_it_has_read_a_lost_broker(place: OurPlace) -> None:
    query = Query(given(place, retryTimeout="1s"))
    query.run()
    place.servers.kill_broker(1)
    with pytest.raises(UnreachableError, match=r"orders on broker-b \(.*Nothing is lost: see to"):
        query.available_now()
    place.servers.start_broker(1)
    query.restart()
    place.send(B, f"{B.key}-3")
    assert query.available_now() == [of(B, first=3, last=4)]


def test_without_fail_on_data_loss_available_now_goes_on_without_it(place: OurPlace) -> None:
    query = Query(given(place, retryTimeout="1s", failOnDataLoss="false"))
    query.run()
    place.servers.kill_broker(1)
    place.send(A, f"{A.key}-3")
    assert query.available_now() == [of(A, first=3, last=4)]
    assert query.at["offsets"]["orders"]["broker-b:0"] == 3


def test_a_batch_names_the_broker_that_it_cannot_ask(place: OurPlace) -> None:
    plan = BatchReader(parsed(given(place, retryTimeout="0s", requestTimeout="1s")), SCHEMA)
    parts = plan.partitions()
    place.servers.kill_broker(1)
    with pytest.raises(UnreachableError, match=r"orders/broker-b:0 \(nothing came for 0 s: "):
        rows_of(plan, parts)


def test_a_task_waits_for_a_broker_that_comes_back(
    place: OurPlace, caplog: pytest.LogCaptureFixture
) -> None:
    plan = BatchReader(parsed(given(place)), SCHEMA)
    parts = plan.partitions()
    place.servers.kill_broker(1)
    waits = threading.Event()

    class Starter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
            waits.set()

    log = logging.getLogger(range_reading.__name__)
    handler = Starter()
    log.addHandler(handler)

    def start_again() -> None:
        waits.wait(20)
        place.servers.start_broker(1)

    back = threading.Thread(target=start_again)
    back.start()
    try:
        assert rows_of(plan, parts) == of(A, B)
    finally:
        log.removeHandler(handler)
        back.join()
    assert "reading orders/broker-b:0 at 0 again" in caplog.text


def test_offsets_are_committed_to_the_brokers_that_answer(
    place: OurPlace, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(given(place, consumerGroup="billing"))
    query.run()
    place.servers.kill_broker(1)
    query.run()
    assert place.committed("billing", [A]) == {A: 3}
    assert "offsets of group billing were not committed" in caplog.text
    place.servers.start_broker(1)
    query.reader._consumer._no_commit_before = 0.0  # type: ignore[attr-defined]
    query.run()
    assert place.committed("billing", [A, B]) == {A: 3, B: 3}


def test_an_idle_stream_asks_for_ranges_and_pulls_nothing(
    place: OurPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.send(A, f"{A.key}-3")
    query = Query(given(place))
    query.run()
    pulls: list[object] = []
    monkeypatch.setattr(Puller, "pull", lambda *asked, **_: pulls.append(asked))
    assert [query.run(), query.run()] == [[], []]
    assert pulls == []


def test_a_stream_goes_on_while_no_name_server_answers(
    place: OurPlace, caplog: pytest.LogCaptureFixture
) -> None:
    with Forwarder(place.servers.namesrv_addr) as way:
        query = Query(given(place, namesrvAddr=way.address, retryTimeout="0s"))
        assert query.run() == of(A, B)
        way.close()
        place.send(B, f"{B.key}-3")
        assert query.run() == of(B, first=3, last=4)
        assert "going on with the queues of orders as they were known" in caplog.text
        way.open()
        place.send(A, f"{A.key}-3")
        assert query.run() == of(A, first=3, last=4)


def test_name_servers_that_do_not_answer_are_named() -> None:
    asked = {"namesrvAddr": "127.0.0.1:1", "topic": "orders", "retryTimeout": "0s"}
    with pytest.raises(UnreachableError, match=r"orders \(127.0.0.1:1 does not answer"):
        batch({**asked})
