"""The names that rocketmq-exporter has, for boards that were made for it.

Labels are the exporter's (RMQMetricsCollector), odd as some are. Its figures of single consumers
(`rocketmq_client_…`) are not told: each consumer would have to be asked through its broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rocketpy.broker_core.metadata.names import (
    DEAD_LETTER_TOPIC_PREFIX,
    is_dead_letter_topic,
    is_retry_topic,
)
from rocketpy.broker_core.metrics.exporter_figures import OF_RUNTIME
from rocketpy.broker_core.metrics.facts import BrokerFacts, Rate, TopicLag
from rocketpy.broker_core.metrics.families import GAUGE, Family, Row

_ALL = Sequence[BrokerFacts]
_Rows = Callable[[_ALL], Iterable[Row]]
_BROKER = ("cluster", "brokerIP", "broker")
_TOPIC = ("cluster", "broker", "topic")
_GROUP_OF_BROKER = ("cluster", "broker", "group")
_GROUP = ("cluster", "broker", "topic", "group")
_DIFF = ("group", "topic", "countOfOnlineConsumers", "msgModel")
_RUNTIME = ("cluster", "brokerIP", "brokerHost", "des", "boottime", "broker_version")
_MODELS = {"BROADCASTING": "0", "CLUSTERING": "1"}  # the exporter labels the number


def _plain(topic: str) -> bool:
    return not (is_retry_topic(topic) or is_dead_letter_topic(topic))


def _rate(name: str, labels: Callable[[BrokerFacts, Rate], tuple[str, ...]]) -> _Rows:
    """Return rows of a rate, by the name of the statistic."""

    def rows(brokers: _ALL) -> Iterator[Row]:
        for broker in brokers:
            for rate in broker.rates:
                if rate.name == name:
                    yield labels(broker, rate), rate.per_second

    return rows


def _of_broker(name: str) -> _Rows:
    return _rate(name, lambda broker, _: (broker.cluster, broker.address, broker.name))


def _of_topic(name: str) -> _Rows:
    return _rate(name, lambda broker, rate: (broker.cluster, broker.name, rate.topic))


def _of_group(name: str) -> _Rows:
    return _rate(name, lambda broker, rate: (broker.cluster, broker.name, rate.topic, rate.group))


def _ends(is_meant: Callable[[str], bool], prefix: str = "") -> _Rows:
    """Return rows of the ends of topics, each by its name without the prefix."""

    def rows(brokers: _ALL) -> Iterator[Row]:
        for broker in brokers:
            for topic, end in broker.ends.items():
                if is_meant(topic):
                    yield (broker.cluster, broker.name, topic.removeprefix(prefix)), end

    return rows


def _lags(value: Callable[[TopicLag], float | None]) -> _Rows:
    def rows(brokers: _ALL) -> Iterator[Row]:
        for broker in brokers:
            for each in broker.lags:
                number = value(each)
                if number is not None:
                    yield (broker.cluster, broker.name, each.topic, each.group), number

    return rows


def _diffs(is_meant: Callable[[str], bool]) -> _Rows:
    """Return rows of lags over all brokers, as the exporter adds them up."""

    def rows(brokers: _ALL) -> Iterator[Row]:
        online, models = _online(brokers), _models(brokers)
        sums = Counter[tuple[str, str]]()
        for broker in brokers:
            for each in broker.lags:
                if is_meant(each.topic):
                    sums[each.group, each.topic] += each.lag
        for (group, topic), lag in sums.items():
            yield (group, topic, str(len(online.get(group, ()))), models.get(group, "1")), lag

    return rows


def _counts(brokers: _ALL) -> Iterator[Row]:
    online = _online(brokers)
    groups = {each.group for broker in brokers for each in broker.lags} | online.keys()
    for group in sorted(groups):
        members = sorted(online.get(group, ()))
        addresses = ";".join(address for _, address in members)
        yield (addresses, ";".join(client_id for client_id, _ in members), group), len(members)


def _online(brokers: _ALL) -> dict[str, set[tuple[str, str]]]:
    """Return who is online by group: ids and addresses, each once, however many brokers it has."""
    found: dict[str, dict[str, str]] = {}
    for broker in brokers:
        for each in broker.members:
            found.setdefault(each.group, {})[each.client_id] = each.address
    return {group: {*members.items()} for group, members in found.items()}


def _models(brokers: _ALL) -> dict[str, str]:
    return {
        group: _MODELS.get(model, "1")
        for broker in brokers
        for group, model in broker.models.items()
    }


def _runtime(value: Callable[[BrokerFacts], float | None]) -> _Rows:
    def rows(brokers: _ALL) -> Iterator[Row]:
        for broker in brokers:
            number = value(broker)
            if number is not None:
                figures = broker.figures
                version = figures.get("brokerVersion", "")
                about = figures.get("brokerVersionDesc", ""), figures.get("bootTimestamp", "")
                yield (broker.cluster, broker.address, broker.name, *about, version), number

    return rows


def _gauge(name: str, help_text: str, labels: tuple[str, ...], rows: _Rows) -> Family[_ALL]:
    return Family(name, GAUGE, help_text, labels, rows)


OF_EXPORTER: Sequence[Family[_ALL]] = (
    _gauge(
        "rocketmq_broker_tps", "Messages stored a second.", _BROKER, _of_broker("BROKER_PUT_NUMS")
    ),
    _gauge(
        "rocketmq_broker_qps", "Messages given a second.", _BROKER, _of_broker("BROKER_GET_NUMS")
    ),
    _gauge(
        "rocketmq_producer_tps", "Messages stored a second.", _TOPIC, _of_topic("TOPIC_PUT_NUMS")
    ),
    _gauge(
        *("rocketmq_producer_message_size", "Bytes stored a second.", _TOPIC),
        _of_topic("TOPIC_PUT_SIZE"),
    ),
    _gauge("rocketmq_producer_offset", "The ends of a topic's queues.", _TOPIC, _ends(_plain)),
    _gauge(
        *("rocketmq_topic_retry_offset", "The ends of a retry topic's queues.", _TOPIC),
        _ends(is_retry_topic),
    ),
    _gauge(
        *("rocketmq_topic_dlq_offset", "Dead letters of a group, ever.", _GROUP_OF_BROKER),
        _ends(is_dead_letter_topic, DEAD_LETTER_TOPIC_PREFIX),
    ),
    _gauge(
        "rocketmq_consumer_tps", "Messages given a second.", _GROUP, _of_group("GROUP_GET_NUMS")
    ),
    _gauge(
        *("rocketmq_consumer_message_size", "Bytes given a second.", _GROUP),
        _of_group("GROUP_GET_SIZE"),
    ),
    _gauge(
        *("rocketmq_send_back_nums", "Messages sent back a second.", _GROUP),
        _of_group("SNDBCK_PUT_NUMS"),
    ),
    _gauge(
        *("rocketmq_consumer_offset", "What a group has read of a topic's queues.", _GROUP),
        _lags(lambda each: sum(queue.committed for queue in each.queues)),
    ),
    _gauge(
        "rocketmq_group_get_latency_by_storetime",
        "Milliseconds since the oldest message that a group has not read was stored.",
        *(_GROUP, _lags(lambda each: each.age_ms)),
    ),
    _gauge("rocketmq_group_diff", "Messages that a group has not read.", _DIFF, _diffs(_plain)),
    _gauge(
        *("rocketmq_group_retrydiff", "Retries that a group has not read.", _DIFF),
        _diffs(is_retry_topic),
    ),
    _gauge(
        *("rocketmq_group_dlqdiff", "Dead letters that their own group has not read.", _DIFF),
        _diffs(is_dead_letter_topic),
    ),
    _gauge(
        *("rocketmq_group_count", "Consumers that are online.", ("caddr", "localaddr", "group")),
        _counts,
    ),
    *(
        _gauge(f"rocketmq_brokeruntime_{name}", told, _RUNTIME, _runtime(value))
        for name, told, value in OF_RUNTIME
    ),
)
