"""What one scrape asks the brokers of a cluster, and what of their answers it keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.delay.pending import Pending
from rocketpy.broker_core.metadata.names import is_reserved_topic
from rocketpy.broker_core.metrics.cluster_answers import Answers, Asked, Body
from rocketpy.broker_core.metrics.cluster_delays import (
    ASK_TIMERS,
    NO_TIMERS,
    pending_of,
    timed_of,
)
from rocketpy.broker_core.metrics.cluster_progress import AgeMemory, lags_of
from rocketpy.broker_core.metrics.facts import (
    ClientKind,
    OnlineMember,
    Rate,
    ScrapeOptions,
    TopicLag,
    Traffic,
)
from rocketpy.broker_core.metrics.figures import number_of
from rocketpy.broker_core.metrics.versions import mode_name, version_name
from rocketpy.broker_core.protocol.bodies.connections import ConsumerConnection, ProducerTable
from rocketpy.broker_core.protocol.bodies.groups import GroupSettingsTable
from rocketpy.broker_core.protocol.bodies.routes import KeyValueTable
from rocketpy.broker_core.protocol.bodies.statistics import BrokerStats, TopicStats
from rocketpy.broker_core.protocol.bodies.topics import TopicSettingsTable
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.groups import (
    GetAllProducers,
    GetBrokerConsumeStats,
    GetConsumerConnections,
)
from rocketpy.broker_core.protocol.requests.topics import GetTopicStats, ViewStats

_OF_TOPICS = ("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE")
_OF_GROUPS = ("GROUP_GET_NUMS", "GROUP_GET_SIZE", "SNDBCK_PUT_NUMS")
_GONE = frozenset({ResponseCode.TOPIC_NOT_EXIST})
_OFFLINE = frozenset({ResponseCode.CONSUMER_NOT_ONLINE})
_NEVER_COUNTED = frozenset({ResponseCode.SYSTEM_ERROR})
# Not known to all brokers of 4.x.
_UNKNOWN_THERE = frozenset({ResponseCode.REQUEST_CODE_NOT_SUPPORTED})


@dataclass(slots=True)
class BrokerLook:
    """What one broker has told so far. Filled by one thread."""

    name: str
    own_topics: frozenset[str]  # which it made for itself
    figures: Mapping[str, str] = field(default_factory=dict)
    permission: int | None = None
    delay_levels: str | None = None
    timed: Mapping[str, int] | None = None  # messages that wait, by topic
    pending: Pending | None = None
    topic_count: int | None = None
    group_count: int | None = None
    # Without RocketMQ's own; each with whether it is read in all its queues.
    topics: dict[str, bool] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    lags: list[TopicLag] = field(default_factory=list)
    producers: list[ClientKind] = field(default_factory=list)
    consumers: list[ClientKind] = field(default_factory=list)
    members: list[OnlineMember] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    rates: list[Rate] = field(default_factory=list)

    def sent(self) -> list[Traffic]:
        """Return what came: messages by topic, as queues count them, and the bytes of all."""
        size = number_of(self.figures, "putMessageSizeTotal")
        of_all = [] if size is None else [Traffic("", "", None, int(size))]
        return [*of_all, *(Traffic(topic, "", end, None) for topic, end in self.ends.items())]

    def given(self) -> list[Traffic]:
        """Return what went out; brokers tell others no totals by group."""
        messages = number_of(self.figures, "msgGetTotalTodayNow")
        return [] if messages is None else [Traffic("", "", int(messages), None)]

    # --- what takes answers -----------------------------------------------------------------------

    def take_figures(self, body: Body) -> None:
        """Take what the broker tells of itself."""
        self.figures = KeyValueTable.decode(body).table

    def take_settings(self, body: Body) -> None:
        """Take its permission and its delay levels out of its settings."""
        settings = java_properties.parse(bytes(body).decode("utf-8"))
        self.delay_levels = settings.get("messageDelayLevel")
        if "brokerPermission" in settings:
            self.permission = int(settings["brokerPermission"])

    def take_timed(self, body: Body) -> None:
        """Take what waits for a time of its own."""
        self.timed = timed_of(body)

    def take_topics(self, body: Body) -> None:
        """Take the names of its topics."""
        topics = TopicSettingsTable.decode(body).topics
        self.topic_count = len(topics)
        self.topics = {
            name: each.read_queues == each.write_queues
            for name, each in topics.items()
            if not is_reserved_topic(name) and name not in self.own_topics
        }

    def take_groups(self, body: Body) -> None:
        """Take the names of its groups."""
        self.groups = [*GroupSettingsTable.decode(body).groups]
        self.group_count = len(self.groups)

    def take_producers(self, body: Body) -> None:
        """Take who sends."""
        kinds = Counter(
            (each.language.lower(), version_name(each.version))
            for members in ProducerTable.decode(body).data.values()
            for each in members
        )
        self.producers = [ClientKind("", *kind, "", count) for kind, count in kinds.items()]

    def take_consumers(self, group: str, body: Body) -> None:
        """Take who consumes for a group."""
        found = ConsumerConnection.decode(body)
        mode = mode_name(found.consume_type)
        kinds = Counter(
            (each.language.lower(), version_name(each.version)) for each in found.connections
        )
        self.consumers += [ClientKind(group, *kind, mode, count) for kind, count in kinds.items()]
        self.members += [
            OnlineMember(group, each.client_id, each.client_addr) for each in found.connections
        ]
        if found.message_model:
            self.models[group] = found.message_model

    def take_lags(self, body: Body) -> None:
        """Take how far its groups are."""
        self.lags = lags_of(body)

    def take_ends_of_lags(self) -> None:
        """Take the ends of topics that groups read, which need not be asked for then."""
        for lag in self.lags:
            if self.topics.get(lag.topic) and lag.topic not in self.ends:
                self.ends[lag.topic] = sum(each.end for each in lag.queues)

    def take_ends(self, topic: str, body: Body) -> None:
        """Take the ends of a topic's queues."""
        table = TopicStats.decode(body).offset_table
        self.ends[topic] = sum(each.max_offset for each in table.values())


def look_at(
    answers: Answers,
    clusters: Mapping[str, str],
    ages: AgeMemory,
    *,
    now_ms: int,
    wanted: ScrapeOptions,
) -> dict[str, BrokerLook]:
    """Ask brokers, given with their clusters, and return what each told."""
    looks = {
        broker: BrokerLook(broker, frozenset({broker, cluster, f"{cluster}_REPLY_TOPIC"}))
        for broker, cluster in clusters.items()
    }
    answers.ask(asked for look in looks.values() for asked in _of_broker(look))
    answers.ask(asked for look in looks.values() for asked in _of_topics_and_groups(look))
    lags = ages.filled(answers, {broker: look.lags for broker, look in looks.items()}, now_ms)
    for broker, look in looks.items():
        look.lags = lags[broker]
    _take_pending(answers, looks, now_ms)
    if wanted.exporter_names:
        answers.ask(
            asked for broker, look in looks.items() for asked in _rates(look, clusters[broker])
        )
    return looks


def _take_pending(answers: Answers, looks: Mapping[str, BrokerLook], now_ms: int) -> None:
    pending = pending_of(
        answers,
        {broker: look.figures for broker, look in looks.items()},
        {broker: look.timed for broker, look in looks.items()},
        {broker: look.delay_levels for broker, look in looks.items() if look.delay_levels},
        now_ms,
    )
    for broker, look in looks.items():
        look.pending = pending.get(broker)


def _of_broker(look: BrokerLook) -> Iterator[Asked]:
    """Yield what takes one request."""
    plain = {
        RequestCode.GET_BROKER_RUNTIME_INFO: look.take_figures,
        RequestCode.GET_BROKER_CONFIG: look.take_settings,
        RequestCode.GET_ALL_TOPIC_CONFIG: look.take_topics,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: look.take_groups,
    }
    for code, take in plain.items():
        yield Asked(look.name, RemotingCommand(code), take)
    yield Asked(look.name, ASK_TIMERS, look.take_timed, NO_TIMERS)
    producers = command_of(GetAllProducers())
    yield Asked(look.name, producers, look.take_producers, _UNKNOWN_THERE)
    yield Asked(look.name, command_of(GetBrokerConsumeStats(is_order=False)), look.take_lags)


def _of_topics_and_groups(look: BrokerLook) -> Iterator[Asked]:
    look.take_ends_of_lags()
    for topic in look.topics.keys() - look.ends.keys():
        command = command_of(GetTopicStats(topic=topic))
        yield Asked(look.name, command, partial(look.take_ends, topic), _GONE)
    for group in look.groups:
        command = command_of(GetConsumerConnections(consumer_group=group))
        yield Asked(look.name, command, partial(look.take_consumers, group), _OFFLINE)


def _rates(look: BrokerLook, cluster: str) -> Iterator[Asked]:
    """Yield requests for what a broker counts; statistics that never counted are refused."""
    wanted = [(name, "", "", cluster) for name in ("BROKER_PUT_NUMS", "BROKER_GET_NUMS")]
    wanted += [(name, topic, "", topic) for topic in look.topics for name in _OF_TOPICS]
    wanted += [
        (name, lag.topic, lag.group, f"{lag.topic}@{lag.group}")
        for lag in look.lags
        for name in _OF_GROUPS
    ]
    for name, topic, group, key in wanted:

        def take(body: Body, of: tuple[str, str, str] = (name, topic, group)) -> None:
            look.rates.append(Rate(*of, BrokerStats.decode(body).stats_minute.tps))

        command = command_of(ViewStats(stats_name=name, stats_key=key))
        yield Asked(look.name, command, take, _NEVER_COUNTED)
