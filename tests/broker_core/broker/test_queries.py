"""Messages by key and by place: the bytes that the log has."""

from __future__ import annotations

import pytest
from tests.broker_core.broker.conftest import Asking, Serve

from rocketpy.broker_core.codec.record import decode_record
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

ALWAYS = {"beginTimestamp": 0, "endTimestamp": (1 << 63) - 1}


async def query(asking: Asking, key: str, **fields: object) -> RemotingCommand:
    header = {"topic": "orders", "key": key, "maxNum": 32, **ALWAYS, **fields}
    return await asking.ask(RequestCode.QUERY_MESSAGE, header)


def bodies(answer: RemotingCommand) -> list[bytes]:
    data, at, found = bytes(answer.body), 0, []
    while at < len(data):
        found.append(decode_record(data, at).stored_body)
        at += int.from_bytes(data[at : at + 4], "big")
    return found


async def fill(asking: Asking) -> None:
    for number in range(5):
        properties = f"KEYS\x01same k{number}\x02TAGS\x01t{number % 2}\x02UNIQ_KEY\x01u{number}\x02"
        await asking.send("orders", f"body {number}".encode(), i=properties)
    await asking.send("other", b"of another topic", i="KEYS\x01same\x02")


@pytest.mark.parametrize(
    ("key", "fields", "found"),
    [
        ("k3", {"indexType": "K"}, [3]),
        ("same", {"indexType": "K"}, [0, 1, 2, 3, 4]),
        ("same", {"indexType": "K", "maxNum": 2}, [3, 4]),
        ("u2", {"_UNIQUE_KEY_QUERY": "true"}, [2]),
        ("u2", {"indexType": "U"}, [2]),
        ("u2", {"indexType": "K"}, []),
        ("u2", {}, [2]),
        ("t1", {"indexType": "T"}, [1, 3]),
        ("nosuch", {"indexType": "K"}, []),
        ("same", {"indexType": "K", "endTimestamp": 1}, []),
    ],
)
def test_messages_are_found_by_key(
    serve: Serve, key: str, fields: dict[str, object], found: list[int]
) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking)
        answer = await query(asking, key, **fields)
        code = ResponseCode.SUCCESS if found else ResponseCode.QUERY_NOT_FOUND
        assert answer.code == code
        assert bodies(answer) == [f"body {number}".encode() for number in found]
        assert {"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"} <= answer.fields.keys()

    serve(scenario)


def test_a_message_is_found_by_its_place(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        sent = await asking.send("orders", b"hello")
        place = int(sent.fields["msgId"][16:], 16)
        answer = await asking.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": place})
        assert bodies(answer) == [b"hello"]
        for wrong in (place + 1, 1 << 40, -1):
            refused = await asking.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": wrong})
            assert refused.code == ResponseCode.SYSTEM_ERROR
            assert refused.remark == f"can not find message by the offset, {wrong}"

    serve(scenario)


def test_messages_of_a_deleted_topic_are_found_until_retention_takes_them(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking)
        await asking.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})
        assert bodies(await query(asking, "k3", indexType="K")) == [b"body 3"]

    serve(scenario)
