from __future__ import annotations

import zlib

import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft, WrittenMessage, cut
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulling import Puller
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.codec.record import decode_record, message_body
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    QueueNotFoundError,
    TopicNotFoundError,
)
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message import Message, join_properties, split_properties
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.batches import join_batch


def stored(cluster: Cluster, queue: MessageQueue, queue_offset: int) -> Message:
    return decode_record(Puller(cluster).pull(queue, queue_offset, most=1).records)


def test_a_message_is_stored_with_all_that_it_has(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 2)
    draft = MessageDraft(
        body=b"1 euro", tags="paid", keys=["o-1", "o-2"], properties={"region": "eu"}, flag=7
    )
    receipt = Producer(cluster).send("orders", draft)
    message = stored(cluster, receipt.queue, receipt.queue_offset)
    assert receipt.status == "SEND_OK"
    assert (message.stored_body, message.flag, message.msg_id) == (b"1 euro", 7, receipt.msg_id)
    named = {"TAGS": "paid", "KEYS": "o-1 o-2", "region": "eu", "UNIQ_KEY": receipt.uniq_key}
    assert named.items() <= message.properties.items()


def test_queues_of_all_brokers_take_turns(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 2)
    producer = Producer(cluster)
    sent = [producer.send("orders", MessageDraft(body=b"x")).queue for _ in range(8)]
    assert sorted(sent) == sorted(cluster.route("orders").writable() * 2)


def test_a_sharding_key_has_one_queue_the_same_as_in_a_store(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 2)
    draft = MessageDraft(body=b"x", sharding_key="customer-7")
    sent = {Producer(cluster).send("orders", draft).queue for _ in range(3)}
    assert sent == {cluster.route("orders").writable()[queue_of("customer-7", 4)]}


def test_a_body_over_4_kib_travels_compressed(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    body = b"euro" * 1024
    for size in (4095, 4096):
        receipt = Producer(cluster).send("orders", MessageDraft(body=body[:size]))
        message = stored(cluster, receipt.queue, receipt.queue_offset)
        assert message_body(message) == body[:size]
        is_compressed = message.stored_body == zlib.compress(body[:size], 5)
        assert is_compressed == (size == 4096)


def test_an_empty_message_is_sent_too(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    receipt = Producer(cluster).send("orders", MessageDraft(body=b"", tags="none"))
    message = stored(cluster, receipt.queue, receipt.queue_offset)
    assert (message.stored_body, message.properties["TAGS"]) == (b"", "none")


def test_many_messages_are_spread_evenly_and_stay_in_order(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 2)
    bodies = [b"%06d" % number for number in range(1000)]
    receipts = Producer(cluster).send_many("orders", (MessageDraft(body=body) for body in bodies))
    assert len({(each.queue, each.queue_offset) for each in receipts}) == 1000
    found = []
    for queue in cluster.route("orders").readable():
        pulled = Puller(cluster).pull(queue, 0)
        at, of_queue = 0, []
        while at < len(pulled.records):
            message = decode_record(pulled.records, at)
            of_queue.append(message.stored_body)
            at += int.from_bytes(pulled.records[at : at + 4], "big")
        assert of_queue == sorted(of_queue)
        assert len(of_queue) == 250
        found += of_queue
    assert sorted(found) == bodies


def test_messages_are_written_together_as_each_alone() -> None:
    own = {"UNIQ_KEY": "mine", "a": "b"}
    drafts = [
        MessageDraft(b"plain"),
        MessageDraft(b""),
        MessageDraft(b"tagged", tags="t", keys=["k1", "k2"], flag=7),
        MessageDraft(b"keyed", properties=own),
        MessageDraft(b"later", delay_level=3),
    ]
    together = WrittenMessage.of_all(drafts, 1000)
    assert len({each.uniq_key for each in together}) == len(drafts)
    for draft, found in zip(drafts, together, strict=True):
        assert found.draft is draft
        properties = split_properties(found.properties)
        assert properties == draft.all_properties(found.uniq_key)
        assert found.properties == join_properties(properties)
        assert found.batch_bytes == len(join_batch([(0, draft.body, found.properties)]))
    assert together[3].uniq_key == "mine"
    with pytest.raises(MessageRefusedError, match="6 bytes are more than the 5"):
        WrittenMessage.of_all([MessageDraft(b"small"), MessageDraft(b"larger")], 5)


def test_batches_are_cut_at_the_limit() -> None:
    written = [WrittenMessage.of(MessageDraft(body=b"x" * 100), 1000) for _ in range(10)]
    size = written[0].batch_bytes
    assert [len(batch) for batch in cut(written, 3 * size)] == [3, 3, 3, 1]
    assert [len(batch) for batch in cut(written, size - 1)] == [1] * 10


def test_messages_that_wait_are_sent_one_by_one(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    drafts = [MessageDraft(body=b"later", delay_level=18) for _ in range(3)]
    Producer(cluster).send_many("orders", [*drafts, MessageDraft(body=b"now")])
    topics = ClusterTopics(cluster)
    assert sum(span.messages for span in topics.queues("orders")) == 1
    assert sum(span.messages for span in topics.queues("SCHEDULE_TOPIC_XXXX")) == 3


@pytest.mark.parametrize(
    ("draft", "error"),
    [
        (MessageDraft(body=b"x", queue_id=2), QueueNotFoundError),
        (MessageDraft(body=b"x" * ((4 << 20) + 1)), MessageRefusedError),
        (MessageDraft(body=b"x", properties={"big": "x" * 32_767}), MessageRefusedError),
        (MessageDraft(body=b"x", properties={"a\x01b": "x"}), MessageRefusedError),
        (MessageDraft(body=b"x", delay_level=1, deliver_at_ms=1), MessageRefusedError),
        (MessageDraft(body=b"x", delay_level=-1), MessageRefusedError),
    ],
)
def test_what_no_broker_takes_is_not_sent(
    cluster: Cluster, draft: MessageDraft, error: type[Exception]
) -> None:
    ClusterTopics(cluster).create("orders", 2)
    with pytest.raises(error):
        Producer(cluster).send("orders", draft)
    assert not any(span.messages for span in ClusterTopics(cluster).queues("orders"))


def test_a_topic_that_is_missing_is_not_made(cluster: Cluster) -> None:
    with pytest.raises(TopicNotFoundError):
        Producer(cluster).send("payments", MessageDraft(body=b"x"))


def test_what_a_lost_broker_does_not_take_goes_to_another(servers: LocalBroker) -> None:
    servers.reset()
    with Cluster(servers.namesrv_addr, timeout_s=5) as cluster:
        ClusterTopics(cluster).create("orders", 1)
        producer = Producer(cluster)
        producer.send_many("orders", [MessageDraft(body=b"x")] * 2)  # both are connected
        servers.kill_broker(1)
        sent = [producer.send("orders", MessageDraft(body=b"x")).queue.broker for _ in range(4)]
        assert sent == ["broker-a"] * 4


def test_what_has_one_queue_goes_nowhere_else(servers: LocalBroker) -> None:
    servers.reset()
    with Cluster(servers.namesrv_addr, timeout_s=5) as cluster:
        ClusterTopics(cluster).create("orders", 1)
        fixed = MessageDraft(body=b"x", sharding_key=key_of("broker-b", cluster))
        servers.kill_broker(1)
        with pytest.raises((ServerUnreachableError, NoBrokerError)):
            Producer(cluster).send("orders", fixed)
        assert ClusterTopics(cluster).spans([("broker-a", "orders")])["orders"][0].messages == 0


def key_of(broker: str, cluster: Cluster) -> str:
    """Return a sharding key whose queue is on a broker."""
    queues = cluster.route("orders").writable()
    keys = (f"key-{number}" for number in range(100))
    return next(key for key in keys if queues[queue_of(key, len(queues))].broker == broker)
