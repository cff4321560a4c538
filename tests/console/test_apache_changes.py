"""All changes on a broker of Apache's, by the same requests as on ours."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.connector.cluster.places import ClusterPlace
from tests.console.shop import CAUSES, READ, shop, until
from tests.interop.installation import install, missing_commands

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.console.answers import MessageQuestion
from rocketpy.console.changes.changer import TopicShape
from rocketpy.console.changes.cluster import ClusterChanger
from rocketpy.console.changes.letters import planned
from rocketpy.console.changes.outcomes import ChangeOutcome
from rocketpy.console.changes.sending import Letter
from rocketpy.console.cluster import ClusterReader
from rocketpy.console.place import WatchedPlace

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def apache(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[WatchedPlace, ClusterChanger]]:
    missing = ", ".join(missing_commands())
    assert not (missing and os.environ.get("CI")), f"CI must have {missing}"
    if missing:
        pytest.skip(f"Apache's broker needs {missing}")
    install()
    folder = tmp_path_factory.mktemp("shop")
    with shop("apache", folder / "store") as made:
        assert isinstance(made, ClusterPlace)
        access = ClusterAccess(made.cluster.address)
        changer = ClusterChanger(access, folder / "trails")
        place = WatchedPlace(ClusterReader(access), changer)
        yield place, changer
        place.close()


def done(outcomes: tuple[ChangeOutcome, ...]) -> bool:
    assert outcomes
    return all(each.is_done for each in outcomes)


def test_topics_messages_groups_and_dead_letters_are_changed(
    apache: tuple[WatchedPlace, ClusterChanger],
) -> None:
    place, changer = apache
    (broker,) = changer.brokers()
    assert done(changer.create_topic("paid", 2, [broker]))
    shown = changer.shapes("paid")
    assert shown == {broker: TopicShape(2, 2, 6)}
    assert done(changer.change_topic("paid", TopicShape(3, 4, 6), shown))
    assert changer.shapes("paid") == {broker: TopicShape(3, 4, 6)}
    sent = changer.send("paid", Letter(b"one", "tag", ("k",), {"region": "eu"}))
    until(lambda: place.newest(MessageQuestion(topic="paid")).messages)
    (found,) = place.newest(MessageQuestion(topic="paid")).messages
    assert (found.queue_id, found.body, found.tags) == (sent.queue_id, b"one", "tag")

    plan = changer.planned_reset("billing", "orders", "earliest")
    assert (plan.skipped, plan.again) == (0, READ)
    assert done(changer.reset(plan))
    moves = changer.planned_reset("billing", "orders", "latest").moves
    assert {each.before for each in moves} == {0}

    letters = place.dead_letters("billing", MessageQuestion(topic="")).letters.messages
    assert len(letters) == len(CAUSES)
    replay = planned(
        "billing",
        "",
        letters,
        writable=place.writable(),
        trail=changer.trail("billing"),
        copies=place.copies_of,
    )
    assert replay.topics == [("orders", len(CAUSES))]
    chosen = [(each.place, each.to) for each in replay.letters]
    assert done(changer.replay("billing", chosen, shown=frozenset(), by="otto"))
    assert not any(
        each.is_done for each in changer.replay("billing", chosen, shown=frozenset(), by="otto")
    )
    newest = place.newest(MessageQuestion(topic="orders")).messages
    copies = [each for each in newest if "ROCKETPY_REPLAY_RUN" in each.properties]
    assert {each.uniq_key for each in copies} == {each.uniq_key for each in letters}

    assert done(changer.delete_topic("paid"))
    until(lambda: "paid" not in changed_names(place))


def changed_names(place: WatchedPlace) -> list[str]:
    place.was_changed()
    return place.topic_names()
