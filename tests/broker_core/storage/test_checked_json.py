"""Each small file with a check sum: the bytes of older versions, and ours as those read them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.project.docs_tables import names_in, tables

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.broadcast import (
    read_broadcast_offsets,
    write_broadcast_offsets,
)
from rocketpy.broker_core.rebalance.generation import (
    Generation,
    read_generation,
    write_generation,
)
from rocketpy.broker_core.rebalance.membership import Member, read_members, write_members
from rocketpy.broker_core.storage.batches.ledger import (
    Ledger,
    PendingBatch,
    read_ledger,
    write_ledger,
)
from rocketpy.broker_core.storage.checked_json import COMPACT, IN_ORDER, SORTED, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.existing import adapt, note_sizes
from rocketpy.broker_core.storage.identity import identity_of, note_identity
from rocketpy.broker_core.storage.queue_ends import NotedEnds, QueueEnd, QueueEndsFile

DISK = Disk()
QUEUES = [MessageQueue("orders", "rocketpy", number) for number in range(3)]
STORE_ID = "6435b0f99d0e492cbc072c345dd1c96e"
LEDGER = Ledger(
    {"query 1 topic orders": 3, "año": 2},
    PendingBatch(writer="delivery", number=7, begin=100, size=20, crc=1, note={"level 3": [5]}),
    {"delivery": {"timer": [0, 9, 1000, 2]}},
)
ENDS = NotedEnds(
    420,
    {
        ("orders", 0): QueueEnd(2, 140),
        ("orders", 3): QueueEnd(1, 280),
        ("%RETRY%año", 0): QueueEnd(5, 0),
    },
)
SIZES = StoreConfig(index_slots=77, index_entries=308, commit_log_file_size=1 << 20)
MEMBERS = {
    "m1": Member(
        name="m1",
        token="t-1",
        topics=("orders", "año"),
        joined_ms=1000,
        lease_ms=10000,
        until_ms=11000,
        acknowledged=2,
        holds=frozenset(QUEUES[:2]),
    )
}
GENERATION = Generation(
    number=2,
    strategy="averagely",
    basis="b1",
    made_ms=1000,
    made_by="host/ñ",
    reason="m1 joined",
    queues={"m2": tuple(QUEUES[2:]), "m1": tuple(QUEUES[:2])},
)
OFFSETS = {QUEUES[0]: 4, QUEUES[1]: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file: what its first version wrote, how that read it, and how it is used now."""

    path: str
    old_bytes: bytes
    old_key: str
    old_text: Callable[[Any], bytes]  # what the check sum of the first version is of
    means: object
    read: Callable[[Path], object]
    write: Callable[[Path], None]
    is_found_anew: bool = False  # a damaged one counts as missing


def text_in_order(content: object) -> bytes:
    return json.dumps(content).encode()


def text_sorted(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def text_compact(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


KINDS = {
    "ledger": Kind(
        path="rocketpy/ledger",
        old_bytes=(
            b'{\n "crc": 863009224,\n "ledger": {\n  "numbers": {\n'
            b'   "query 1 topic orders": 3,\n   "a\\u00f1o": 2\n  },\n'
            b'  "pending": {\n   "writer": "delivery",\n   "number": 7,\n'
            b'   "begin": 100,\n   "size": 20,\n   "crc": 1,\n   "note": {\n'
            b'    "level 3": [\n     5\n    ]\n   }\n  },\n  "notes": {\n'
            b'   "delivery": {\n    "timer": [\n     0,\n     9,\n     1000,\n'
            b"     2\n    ]\n   }\n  }\n }\n}"
        ),
        old_key="ledger",
        old_text=text_in_order,
        means=LEDGER,
        read=read_ledger,
        write=lambda root: write_ledger(root, LEDGER, DISK),
    ),
    "queues": Kind(
        path="rocketpy/queues",
        old_bytes=(
            b'{"crc": 3041640496, "queues": {"upto": 420, "ends": {"orders": {"0": [2,'
            b' 140], "3": [1, 280]}, "%RETRY%a\\u00f1o": {"0": [5, 0]}}}}'
        ),
        old_key="queues",
        old_text=text_in_order,
        means=ENDS,
        read=lambda root: QueueEndsFile(root, DISK).read(),
        write=lambda root: QueueEndsFile(root, DISK).write(ENDS),
        is_found_anew=True,
    ),
    "sizes": Kind(
        path="rocketpy/sizes",
        old_bytes=(
            b'{\n "crc": 471098712,\n "sizes": {\n'
            b'  "commit_log_file_size": 1048576,\n'
            b'  "consume_queue_file_entries": 300000,\n'
            b'  "consume_queue_ext": false,\n'
            b'  "consume_queue_ext_file_size": 50331648,\n  "index_slots": 77,\n'
            b'  "index_entries": 308\n }\n}'
        ),
        old_key="sizes",
        old_text=text_sorted,
        means=SIZES,
        read=lambda root: adapt(root, StoreConfig()),
        write=lambda root: note_sizes(root, SIZES, DISK),
        is_found_anew=True,
    ),
    "id": Kind(
        path="rocketpy/id",
        old_bytes=(b'{"crc": 1586471157, "id": "6435b0f99d0e492cbc072c345dd1c96e"}'),
        old_key="id",
        old_text=str.encode,
        means=STORE_ID,
        read=lambda root: identity_of(root).id,
        write=lambda root: note_identity(root, DISK),
        is_found_anew=True,
    ),
    "members": Kind(
        path="rocketpy/members/billing.json",
        old_bytes=(
            b'{"crc":342700146,"content":{"members":[{"acknowledged":2,'
            b'"holds":[["orders","rocketpy",0],["orders","rocketpy",1]],'
            b'"joinedMs":1000,"leaseMs":10000,"name":"m1","token":"t-1",'
            b'"topics":["orders","a\xc3\xb1o"],"untilMs":11000}],"version":1}}\n'
        ),
        old_key="content",
        old_text=text_compact,
        means=MEMBERS,
        read=lambda root: read_members(root, "billing"),
        write=lambda root: write_members(root, "billing", MEMBERS, DISK),
    ),
    "generation": Kind(
        path="rocketpy/generations/billing.json",
        old_bytes=(
            b'{"crc":1989431339,"content":{"basis":"b1","madeBy":"host/\xc3\xb1",'
            b'"madeMs":1000,"members":{"m1":[["orders","rocketpy",0],["orders",'
            b'"rocketpy",1]],"m2":[["orders","rocketpy",2]]},"number":2,'
            b'"reason":"m1 joined","strategy":"averagely","version":1}}\n'
        ),
        old_key="content",
        old_text=text_compact,
        means=GENERATION,
        read=lambda root: read_generation(root, "billing"),
        write=lambda root: write_generation(root, "billing", GENERATION, DISK),
    ),
    "broadcast": Kind(
        path="rocketpy/broadcast/billing/m1.json",
        old_bytes=(
            b'{"crc":183097273,"content":{"offsets":[["orders","rocketpy",0,4],'
            b'["orders","rocketpy",1,0]],"version":1}}\n'
        ),
        old_key="content",
        old_text=text_compact,
        means=OFFSETS,
        read=lambda root: read_broadcast_offsets(root, "billing", "m1"),
        write=lambda root: write_broadcast_offsets(root, ("billing", "m1"), OFFSETS, DISK),
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rocketpy").mkdir()
    return tmp_path


def put(root: Path, kind: Kind, data: bytes) -> None:
    (root / kind.path).parent.mkdir(parents=True, exist_ok=True)
    (root / kind.path).write_bytes(data)


def as_an_older_version_reads(data: bytes, kind: Kind) -> Any:
    document = json.loads(data)
    assert document["crc"] == zlib.crc32(kind.old_text(document[kind.old_key]))
    return document[kind.old_key]


@every_kind
def test_a_file_of_an_older_version_is_read(root: Path, kind: Kind) -> None:
    put(root, kind, kind.old_bytes)
    assert kind.read(root) == kind.means


@every_kind
def test_an_older_version_reads_what_is_written_now(root: Path, kind: Kind) -> None:
    kind.write(root)
    found = as_an_older_version_reads((root / kind.path).read_bytes(), kind)
    if kind.means != STORE_ID:  # each store has another
        expected = as_an_older_version_reads(kind.old_bytes, kind)
        assert found == expected
        assert kind.read(root) == kind.means


def test_the_docs_name_each_file_and_its_key() -> None:
    told = {
        file.partition("…")[0]: key.strip("`")
        for files, key, _ in tables("storage-format.md")["JSON with a CRC"]
        for file in names_in(files)
    }
    del told["rocketpy/removed"]  # which older versions do not know
    assert all(any(kind.path.startswith(file) for kind in KINDS.values()) for file in told)
    for kind in KINDS.values():
        (key,) = (key for file, key in told.items() if kind.path.startswith(file))
        assert key == kind.old_key


def test_the_order_of_writers_in_the_ledger_is_kept(root: Path) -> None:
    write_ledger(root, LEDGER, DISK)
    assert list(read_ledger(root).numbers) == ["query 1 topic orders", "año"]


@every_kind
@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "changed"])
def test_a_damaged_file_is_told_from_a_missing_one(root: Path, kind: Kind, is_cut: bool) -> None:
    missing = kind.read(root)
    old = kind.old_bytes
    put(root, kind, old[:-3] if is_cut else old.replace(b'"crc"', b'"src"'))
    if kind.is_found_anew:
        assert kind.read(root) == missing
    else:
        with pytest.raises(CorruptStoreError, match="does not match its check sum; "):
            kind.read(root)


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b"\xff", b'{"crc": 0}', b'{"crc": 0, "x": {}}'])
def test_what_is_no_such_document_is_damaged(tmp_path: Path, data: bytes) -> None:
    file = CheckedJson(key="x", form=IN_ORDER, noun="the note", remedy="write it again")
    (tmp_path / "note").write_bytes(data)
    reason = "the note does not match its check sum; write it again"
    with pytest.raises(CorruptStoreError, match=reason):
        file.read(tmp_path / "note", dict)
    assert file.read_if_sound(tmp_path / "note", dict) is None


def test_a_content_that_its_user_cannot_take_is_damaged(tmp_path: Path) -> None:
    file = CheckedJson(key="x", form=SORTED)
    file.write(tmp_path / "note", {"a": 1}, DISK)
    with pytest.raises(CorruptStoreError):
        file.read(tmp_path / "note", lambda content: content["b"])


def test_a_path_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"")
    assert CheckedJson(key="x", form=IN_ORDER).read(tmp_path / "note" / "id", str) is None


@given(
    st.recursive(
        st.text() | st.integers(-(2**63), 2**63 - 1),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_the_compact_form_is_the_text_that_orjson_writes(content: object) -> None:
    # Older versions made and checked members, generations and offsets with it.
    assert COMPACT.encode(content).encode() == text_compact(content)
