"""Places that are started once for a file, and topics of which each test has its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from tests.connector.cluster.places import KINDS, Place, running
from tests.connector.cluster.queries import end_planning

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.cluster import queues as cluster_queues

_numbers = itertools.count(1)

MakeTopic = Callable[..., tuple[str, list[MessageQueue]]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(kind, marks=[pytest.mark.interop] if kind.startswith("apache") else [])
        for kind in KINDS
    ],
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A folder, a cluster of two brokers of ours, a cluster of one broker of Apache's."""
    if request.param.startswith("apache"):
        require_apache()
    with running(str(request.param), tmp_path_factory.mktemp("place") / "store") as found:
        yield found


@pytest.fixture(autouse=True)
def _plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each look of a plan sees what was sent a moment ago; what plans is let go at the end."""
    monkeypatch.setattr(cluster_queues, "_RANGES_KEPT_S", 0.0)
    yield
    end_planning()


@pytest.fixture
def make_topic(place: Place) -> MakeTopic:
    """Make a topic of its own: two queues a broker, three messages in each, odd ones tagged."""

    def make(messages: int = 3, queues: int = 2) -> tuple[str, list[MessageQueue]]:
        topic = f"orders-{next(_numbers)}"
        made = place.create(topic, queues)
        for queue in made:
            for number in range(messages):
                place.send(queue, f"{queue.key}-{number}", tag="odd" if number % 2 else "even")
        return topic, made

    return make


def require_apache() -> None:
    """Skip without Maven and a JDK; in CI fail."""
    from tests.interop.installation import missing_commands

    missing = ", ".join(missing_commands())
    if missing and os.environ.get("CI"):
        pytest.fail(f"this test needs {missing}, which CI must have installed")
    if missing:
        pytest.skip(f"this test needs {missing}")
