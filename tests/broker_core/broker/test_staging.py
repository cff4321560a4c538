"""Rows staged at a broker: what uploads and commits may be told, and what they are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.broker import staging as uploads
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.request import Request
from rocketpy.broker_core.protocol.requests.staging import (
    AskStaged,
    CommitStaged,
    DropStaged,
    StageRows,
)
from rocketpy.broker_core.storage.layout import STAGED


@pytest.fixture(scope="module")
def running() -> Iterator[LocalBroker]:
    with rocketpy.local_broker(topics=["t"]) as broker:
        yield broker


@pytest.fixture
def broker(running: LocalBroker) -> LocalBroker:
    running.reset()
    return running


def ask(broker: LocalBroker, request: Request, body: bytes = b"") -> RemotingCommand:
    with Cluster(broker.namesrv_addr) as cluster:
        return cluster.ask(broker.address, command_of(request, body))


def rows(*bodies: str) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"body": pa.array(bodies, pa.string())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def upload(
    number: int, *, part: str = "p", topic: str = "t", is_last: bool = False, name: str = "tx"
) -> StageRows:
    return StageRows(
        transaction=name, part=part, number=number, topic=topic, rows_name="rows", is_last=is_last
    )


def staged(broker: LocalBroker, *bodies: str) -> str:
    ask(broker, upload(0), rows(*bodies))
    return ask(broker, upload(1, is_last=True)).fields["file"]


def found(broker: LocalBroker) -> list[bytes]:
    with broker.store() as store:
        return sorted(store.read("t", columns=["body"]).read_all()["body"].to_pylist())


def test_rows_are_stored_by_the_commit_that_names_them(broker: LocalBroker) -> None:
    file = staged(broker, "a", "b")
    assert found(broker) == []
    commit = CommitStaged(writer="w", number=3)
    assert ask(broker, commit, b'["%b"]' % file.encode()).fields["isNew"] == "true"
    assert found(broker) == [b"a", b"b"]
    assert ask(broker, AskStaged(writer="w")).fields["last"] == "3"
    again = staged(broker, "a", "b")
    assert ask(broker, commit, b'["%b"]' % again.encode()).fields["isNew"] == "false"
    assert found(broker) == [b"a", b"b"]
    assert list((broker.store_path / STAGED).iterdir()) == []


def test_a_request_that_comes_again_adds_nothing(broker: LocalBroker) -> None:
    for number in (0, 0, 1, 1):
        assert ask(broker, upload(number), rows(f"{number}")).code == ResponseCode.SUCCESS
    files = {ask(broker, upload(2, is_last=True)).fields["file"] for _ in range(2)}
    (file,) = files
    ask(broker, CommitStaged(writer="w", number=0), b'["%b"]' % file.encode())
    assert found(broker) == [b"0", b"1"]


def test_a_request_of_an_upload_that_is_not_known_is_refused(broker: LocalBroker) -> None:
    answer = ask(broker, upload(1), rows("a"))
    assert answer.code == ResponseCode.ILLEGAL_OPERATION
    assert "run the task again" in str(answer.remark)


@pytest.mark.parametrize(
    ("request_", "body", "code"),
    [
        (upload(0, name="../../etc"), rows("a"), ResponseCode.INVALID_PARAMETER),
        (upload(0, part="a/b"), rows("a"), ResponseCode.INVALID_PARAMETER),
        (upload(0), b"no arrow", ResponseCode.INVALID_PARAMETER),
        (upload(0), rows("a")[:-40], ResponseCode.INVALID_PARAMETER),
        (upload(0, topic="missing"), rows("a"), ResponseCode.TOPIC_NOT_EXIST),
        (CommitStaged(writer="w", number=0), b"{", ResponseCode.INVALID_PARAMETER),
        (CommitStaged(writer="w", number=0), b'["../x"]', ResponseCode.INVALID_PARAMETER),
        (CommitStaged(writer="w", number=0), b'["tx/gone"]', ResponseCode.SYSTEM_ERROR),
        (DropStaged(transaction=".."), b"", ResponseCode.INVALID_PARAMETER),
    ],
)
def test_what_cannot_be_is_refused(
    broker: LocalBroker, request_: Request, body: bytes, code: ResponseCode
) -> None:
    assert ask(broker, request_, body).code == code
    assert found(broker) == []


def test_a_row_that_cannot_be_stored_is_named_and_the_upload_dropped(broker: LocalBroker) -> None:
    ask(broker, upload(0), rows("a", "x" * (4 << 20) + "y"))
    answer = ask(broker, upload(1, is_last=True))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "row 1 of rows" in str(answer.remark)
    assert ask(broker, upload(1, is_last=True)).code == ResponseCode.ILLEGAL_OPERATION


def test_uploads_are_bounded(broker: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_UPLOADS", 2)
    codes = [ask(broker, upload(0, part=f"p{part}"), rows("a")).code for part in range(3)]
    assert codes == [ResponseCode.SUCCESS, ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY]
    ask(broker, DropStaged(transaction="tx"))
    assert ask(broker, upload(0), rows("a")).code == ResponseCode.SUCCESS
