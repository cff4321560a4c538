"""A broker of this process as a source.

B1  The loop is asked for what belongs to it, who is connected and what was counted, in one short
    call; all the rest is looked up in the thread that scrapes.
B2  Counts begin with the broker: Prometheus is prepared for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from rocketpy.broker_core.broker.runtime_info import runtime_info
from rocketpy.broker_core.broker.stats import (
    BROKER_GET_NUMS,
    BROKER_PUT_NUMS,
    GROUP_GET_NUMS,
    GROUP_GET_SIZE,
    SNDBCK_PUT_NUMS,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    Tally,
)
from rocketpy.broker_core.metadata.names import is_reserved_topic
from rocketpy.broker_core.metrics.facts import (
    BrokerFacts,
    ClientKind,
    Facts,
    OnlineMember,
    Rate,
    ScrapeOptions,
    Traffic,
)
from rocketpy.broker_core.metrics.store_look import StoredTimes, StoreLook
from rocketpy.broker_core.metrics.versions import mode_name, version_name
from rocketpy.broker_core.storage.statistics import size_on_disk

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_LOOP_S = 10.0  # for the loop to answer: as long as Prometheus waits

# Tools want them, so the broker tells them as 0; as metrics they would say what nobody measured.
_NOT_MEASURED = frozenset(
    {
        *("getMessageEntireTimeMax", "getMissTps", "pageCacheLockTimeMills", "putLatency99"),
        *("putLatency999", "putMessageEntireTimeMax", "startAcceptSendRequestTimeStamp"),
        "timerReadBehind",
    }
)


class _Live(NamedTuple):
    """What the loop told."""

    sent: Tally
    given: Tally
    producers: Sequence[ClientKind]
    consumers: Sequence[ClientKind]
    members: Sequence[OnlineMember]
    models: dict[str, str]
    read: dict[str, frozenset[str]]


class BrokerSource:
    """Looks at one broker, which runs in a loop of another thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._times = broker, StoredTimes()

    def look(self, wanted: ScrapeOptions) -> Facts:
        """Return what the broker knows now."""
        broker, settings = self._broker, self._broker.settings
        live = self._in_loop()
        look = StoreLook(broker.store, self._times, now_ms=broker.clock.now_ms(), is_served=True)
        groups = broker.groups.all()
        known_groups = groups.keys() | live.read.keys()
        own = {settings.broker_name, settings.broker_cluster_name}
        own.add(f"{settings.broker_cluster_name}_REPLY_TOPIC")
        ends = {
            topic: sum(look.ends(topic))
            for topic in look.topics
            if not is_reserved_topic(topic) and topic not in own
        }
        sent, given = self._traffic(look, known_groups)
        end, flushed = broker.store.log_end(skip_damage=True), broker.store.flushed_end()
        facts = BrokerFacts(
            cluster=settings.broker_cluster_name,
            name=settings.broker_name,
            address=str(broker.host),
            is_up=True,
            figures=self._figures(live),
            now_ms=look.now_ms,
            permission=settings.broker_permission,
            topic_count=len(look.topics),
            group_count=len(groups),
            ends=ends,
            sent=sent,
            given=given,
            lags=look.lags(
                broker.offsets.all(),
                groups.keys(),
                read=live.read,
                pulled=broker.offsets.pulled,
            ),
            producers=live.producers,
            consumers=live.consumers,
            members=live.members,
            models=live.models,
            storage_bytes=size_on_disk(broker.store.root),
            flush_behind_bytes=max(end - flushed, 0),
            rates=[*self._rates(sent, given)] if wanted.exporter_names else (),
            pending=broker.pending.look(look.now_ms),
        )
        return Facts([facts])

    def close(self) -> None:
        """Do nothing: the broker is stopped by whoever started it."""

    def _figures(self, live: _Live) -> dict[str, str]:
        found = runtime_info(self._broker, live.sent, live.given)
        return {name: text for name, text in found.items() if name not in _NOT_MEASURED}

    def _in_loop(self) -> _Live:
        """Return what belongs to the loop.

        Raises:
            TimeoutError: the loop does not answer.
        """
        told: Future[_Live] = Future()

        def tell() -> None:
            try:
                told.set_result(_live(self._broker))
            except Exception as cause:
                told.set_exception(cause)

        self._broker.loop.call_soon_threadsafe(tell)
        return told.result(_LOOP_S)

    def _traffic(self, look: StoreLook, groups: set[str]) -> tuple[list[Traffic], list[Traffic]]:
        """Return what was counted of topics and groups that are there."""
        by_topic, by_group = self._broker.stats.counted()
        sent = [
            Traffic(topic, "", tally.messages, tally.size_bytes)
            for topic, tally in by_topic
            if topic in look.topics
        ]
        given = [
            Traffic(topic, group, tally.messages, tally.size_bytes)
            for (topic, group), tally in by_group
            if topic in look.topics and group in groups
        ]
        return sent, given

    def _rates(self, sent: Sequence[Traffic], given: Sequence[Traffic]) -> Iterator[Rate]:
        find = self._broker.stats.find
        wanted = [(BROKER_PUT_NUMS, "", ""), (BROKER_GET_NUMS, "", "")]
        wanted += [(name, each.topic, "") for each in sent for name in _OF_TOPICS]
        wanted += [(name, each.topic, each.group) for each in given for name in _OF_GROUPS]
        for name, topic, group in wanted:
            found = find(name, f"{topic}@{group}" if group else topic)
            if found is not None:
                yield Rate(name, topic, group, found[0].per_second)


_OF_TOPICS = (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE)
_OF_GROUPS = (GROUP_GET_NUMS, GROUP_GET_SIZE, SNDBCK_PUT_NUMS)


def _live(broker: Broker) -> _Live:
    groups = broker.clients.consumer_groups()
    # A client is in several producer groups, and is one connection all the same in each, as 5.x
    # counts it.
    producers = Counter(
        (each.language.lower(), version_name(each.version))
        for members in broker.clients.producer_groups().values()
        for each in members
    )
    consumers = Counter(
        (
            group.name,
            each.language.lower(),
            version_name(each.version),
            mode_name(group.consume_type),
        )
        for group in groups
        for each in group.members.values()
    )
    sent, given = broker.stats.now()
    return _Live(
        sent=sent,
        given=given,
        producers=[ClientKind("", *kind, "", count) for kind, count in producers.items()],
        consumers=[ClientKind(*kind, count) for kind, count in consumers.items()],
        members=[
            OnlineMember(group.name, each.client_id, str(each.connection.peer))
            for group in groups
            for each in group.members.values()
        ],
        models={group.name: group.message_model for group in groups},
        read={group.name: frozenset(group.subscriptions) for group in groups},
    )
