"""Tasks of a worker share connections one after the other, and never more than that."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest
from tests.connector.cluster.places import OurPlace
from tests.connector.cluster.queries import SCHEMA, parsed, rows_of

from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.blocking import BlockingConnection
from rocketpy.broker_core.protocol.bodies.routes import ClusterInfo
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.cluster import keeping
from rocketpy.connector.cluster.backend import ClusterBackend
from rocketpy.connector.cluster.keeping import close_kept, kept_cluster
from rocketpy.connector.cluster_options import ClusterOptions

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[OurPlace]:
    with local_broker() as running:
        place = OurPlace(running)
        with place.cluster:
            yield place


@pytest.fixture
def place(servers: OurPlace) -> Iterator[OurPlace]:
    close_kept()
    servers.servers.reset()
    servers.create("orders", 1)
    servers.send(QUEUE, "0", "1", "2")
    yield servers
    close_kept()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses to which connections were opened."""
    seen, connect = list[str](), BlockingConnection.__init__

    def noted(self: BlockingConnection, address: str, **more: object) -> None:
        seen.append(address)
        connect(self, address, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(BlockingConnection, "__init__", noted)
    return seen


def options(place: OurPlace, **more: str) -> ClusterOptions:
    found = parsed({**place.options, "topic": "orders", **more}).cluster
    assert found is not None
    return found


def used(options: ClusterOptions, seen: object = None) -> ClusterBackend:
    """Return the backend of a task that asked for something."""
    with kept_cluster(options, seen) as backend:
        assert backend.range(QUEUE) == (0, 3)
    return backend


def test_the_second_task_opens_no_connection(place: OurPlace, opened: list[str]) -> None:
    reader = BatchReader(parsed({**place.options, "topic": "orders"}), SCHEMA)
    (part,) = reader.partitions()
    assert len(rows_of(reader, [part])) == 3
    before = len(opened)
    assert len(rows_of(reader, [part])) == 3
    assert len(opened) == before


@pytest.mark.parametrize("end", [ValueError(), GeneratorExit()])
def test_what_ended_early_is_closed(place: OurPlace, end: BaseException) -> None:
    seen = list[ClusterBackend]()

    def task() -> None:
        with kept_cluster(options(place), None) as backend:
            seen.append(backend)
            backend.range(QUEUE)
            raise end

    with pytest.raises(type(end)):
        task()
    assert not keeping._kept
    assert not seen[0]._cluster._connections


def test_it_is_kept_for_those_alone_who_want_the_same(place: OurPlace) -> None:
    first = used(options(place))
    assert used(options(place)) is first
    other = used(options(place, requestTimeout="3s"))
    assert other is not first
    assert not first._cluster._connections
    assert used(options(place, requestTimeout="3s"), ClusterInfo()) is not other


def test_a_task_in_a_task_has_its_own(place: OurPlace) -> None:
    with kept_cluster(options(place), None) as outer, kept_cluster(options(place), None) as inner:
        assert inner is not outer


def test_it_is_not_kept_for_long(place: OurPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = used(options(place))
    monkeypatch.setattr(keeping, "_KEPT_S", 0.0)
    assert used(options(place)) is not first


def test_a_broker_that_was_started_again_is_asked_on_a_new_connection(
    place: OurPlace, opened: list[str]
) -> None:
    first = used(options(place))
    place.servers.kill_broker(0)
    place.servers.start_broker(0)
    opened.clear()
    assert used(options(place)) is first
    assert opened


def _forked(options: ClusterOptions, kept: int) -> None:
    assert id(used(options)) != kept


def test_a_forked_process_has_its_own(place: OurPlace, opened: list[str]) -> None:
    first = used(options(place))
    child = multiprocessing.get_context("fork").Process(
        target=_forked, args=(options(place), id(first))
    )
    child.start()
    child.join()
    assert child.exitcode == 0
    opened.clear()
    assert used(options(place)) is first  # the child closed its own copy alone
    assert not opened
