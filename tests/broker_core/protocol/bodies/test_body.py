"""Bodies in JSON: values and back, Apache's recorded bytes, and clear errors for anything else."""

from __future__ import annotations

import pickle
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_core.protocol.bodies.samples import body_classes, sample
from tests.broker_core.protocol.recordings import body_of, recorded

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.bodies.body import Body, layout_of
from rocketpy.broker_core.protocol.bodies.connections import ConsumerList
from rocketpy.broker_core.protocol.bodies.groups import GroupList, GroupSettings
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.bodies.offsets import ResetOffsets, ResetOffsetsForC
from rocketpy.broker_core.protocol.bodies.queue_locks import (
    LockBatchRequest,
    LockBatchResponse,
    UnlockBatchRequest,
)
from rocketpy.broker_core.protocol.bodies.routes import (
    ClusterInfo,
    KeyValueTable,
    TopicList,
    TopicRouteData,
)
from rocketpy.broker_core.protocol.bodies.statistics import (
    BrokerStats,
    ConsumeQueueEntries,
    ConsumeStats,
    ConsumeStatsList,
    ReplicaStatus,
    TopicStats,
)
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings
from rocketpy.broker_core.protocol.errors import BodyError

REQUESTS: dict[int, type[Body]] = {
    34: HeartbeatData,
    41: LockBatchRequest,
    42: UnlockBatchRequest,
    200: GroupSettings,
}
ANSWERS: dict[int, type[Body]] = {
    28: KeyValueTable,
    38: ConsumerList,
    41: LockBatchResponse,
    103: KeyValueTable,
    105: TopicRouteData,
    106: ClusterInfo,
    202: TopicStats,
    206: TopicList,
    208: ConsumeStats,
    222: ResetOffsets,
    300: GroupList,
    305: TopicList,
    315: BrokerStats,
    317: ConsumeStatsList,
    321: ConsumeQueueEntries,
    351: TopicSettings,
    907: ReplicaStatus,
}


def recorded_bodies() -> list[tuple[type[Body], bytes]]:
    found, asked = [], {}
    for frame in recorded():
        place = (frame["conn"], frame["opaque"], frame.get("n") is None)
        if not frame["response"]:
            asked[place] = frame["code"]
            kind = REQUESTS.get(frame["code"])
        else:
            kind = ANSWERS.get(asked.get(place, -1)) if frame["code"] == 0 else None
        data = body_of(frame)
        if kind is not None and data:
            found.append((kind, data))
    return found


def written(body: Body) -> bytes:
    return body.encode(quotes_ids=True) if isinstance(body, TopicRouteData) else body.encode()


def test_a_recorded_body_is_written_in_the_bytes_that_apache_wrote() -> None:
    bodies = recorded_bodies()
    for kind, data in bodies:
        assert written(kind.decode(data)) == data
    counted = Counter(kind for kind, _ in bodies)
    assert counted.total() > 100
    assert {*REQUESTS.values(), *ANSWERS.values()} - {KeyValueTable} == counted.keys()


@pytest.mark.parametrize("kind", body_classes(), ids=lambda kind: kind.__name__)
def test_a_body_is_read_as_it_was_written(kind: type[Body]) -> None:
    body = sample(kind)
    assert kind.decode(body.encode()) == body
    assert kind.decode(memoryview(body.encode())) == body


@pytest.mark.parametrize("kind", body_classes(), ids=lambda kind: kind.__name__)
def test_no_body_has_a_name_twice(kind: type[Body]) -> None:
    names = [layout.wire_name for layout in layout_of(kind)]
    assert len(names) == len({*names})


def test_members_that_are_null_or_missing_have_their_defaults() -> None:
    found = HeartbeatData.decode(b'{"clientID":"c","consumerDataSet":null,"strange":[{}]}')
    assert found == HeartbeatData(client_id="c")


def test_members_are_taken_as_clients_in_other_languages_write_them() -> None:
    subscription = b'{"topic":"t","subVersion":"12","codeSet":["5"],"classFilterMode":"False"}'
    (consumer,) = HeartbeatData.decode(
        b'{"clientID":"c","consumerDataSet":[{"groupName":7,"consumeType":0,"messageModel":0,'
        b'"consumeFromWhere":4,"subscriptionDataSet":[%b]}]}' % subscription
    ).consumers
    assert consumer == ConsumerData(
        group_name="7",
        consume_type="CONSUME_ACTIVELY",
        message_model="BROADCASTING",
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        subscriptions=(SubscriptionData(topic="t", sub_version=12, codes=(5,)),),
    )


def test_keys_that_are_numbers_are_read_quoted_and_bare() -> None:
    for key in (b"0", b'"0"'):
        data = b'{"brokerDatas":[{"brokerAddrs":{%b:"a:1"},"brokerName":"b"}]}' % key
        (broker,) = TopicRouteData.decode(data).broker_datas
        assert broker.broker_addrs == {0: "a:1"}


def test_queues_are_keys() -> None:
    data = b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:5}}'
    body = ResetOffsets(offset_table={MessageQueue("t", "b", 1): 5})
    assert ResetOffsets.decode(data) == body
    assert body.encode() == data
    assert ResetOffsetsForC.of(body.offset_table).encode() == (
        b'{"offsetTable":[{"brokerName":"b","offset":5,"queueId":1,"topic":"t"}]}'
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "HeartbeatData: a body that is no JSON"),
        (b"[]", "a body that is not an object"),
        (b"null", "a body that is not an object"),
        (b"{}", "the member 'clientID' is missing"),
        (b'{"clientID":[]}', "the member 'clientID' is [], not a text"),
        (b'{"clientID":"c","heartbeatFingerprint":1.5}', "is 1.5, not a whole number of 64 bits"),
        (b'{"clientID":"c","withoutSub":1}', "'withoutSub' is 1, not true or false"),
        (b'{"clientID":"c","consumerDataSet":{}}', "'consumerDataSet' is {}, not a list"),
        (b'{"clientID":"c","consumerDataSet":[5]}', "'consumerDataSet' is 5, not an object"),
        (b'{"clientID":"c","consumerDataSet":[{}]}', "'consumerDataSet.groupName' is missing"),
        (
            b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":3}]}',
            "'consumerDataSet.consumeType' is 3, not one of 3 names",
        ),
        (b"[" * 200_000, "no JSON: brackets inside brackets"),
        (b'{"clientID":"\xff"}', "no JSON: 'utf-8' codec"),
    ],
)
def test_what_is_wrong_with_a_body_is_said(data: bytes, words: str) -> None:
    with pytest.raises(BodyError) as refused:
        HeartbeatData.decode(data)
    assert words in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_key_that_is_no_queue_is_refused() -> None:
    for key in (b'"q"', b"5", b'{"topic":"t"}', b'{"topic":"t","brokerName":"b","queueId":"x"}'):
        with pytest.raises(BodyError, match="offsetTable"):
            ResetOffsets.decode(b'{"offsetTable":{%b:5}}' % key)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Whatever could be taken for structure.
    | st.text(st.sampled_from('"\\{}[]:,-0123 \x00é\ue000')),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a body in which something was replaced: members by values, bytes by bytes."""
    kind = draw(st.sampled_from(body_classes()))
    members: Any = sample(kind).members()
    for name in draw(st.sets(st.sampled_from(sorted(members)), max_size=2)):
        members[name] = draw(values)
    data = java_json.dumps(members)
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.binary(max_size=2)) + data[at + draw(st.integers(0, 3)) :]


@given(st.binary(max_size=60) | values.map(java_json.dumps) | damaged())
def test_no_bytes_raise_anything_but_a_body_error(data: bytes) -> None:
    for kind in body_classes():
        with suppress(BodyError):
            kind.decode(data).encode()
