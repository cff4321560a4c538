"""docs/storage-format.md says what the code says: offsets, sizes, names, magic numbers, flags."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rocketpy.broker_core.codec import dtypes
from rocketpy.broker_core.codec import layout as record_layout
from rocketpy.broker_core.storage import layout
from rocketpy.broker_core.storage import verify as verify_package
from rocketpy.broker_core.storage.batches.ledger import MOST_WRITERS, PendingBatch
from rocketpy.broker_core.storage.repair.padding import PADDING_TOPIC

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "storage-format.md").read_text("utf-8")
INVARIANTS = [f"I{number}" for number in range(1, 15)]


class Field(NamedTuple):
    """A row of a table: where a field lies and how many bytes it takes."""

    offset: int
    size: int
    name: str


def section(title: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$", TEXT, re.MULTILINE)
    assert found is not None, title
    rest = TEXT[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def table(text: str) -> list[list[str]]:
    """Return the cells of the first table of a text, without its two head lines."""
    lines = [line.strip() for line in text.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[2:]


def documented(title: str) -> list[Field]:
    """Return the fields of a structure that have a fixed place."""
    return [
        Field(int(row[0]), int(row[1]), row[2])
        for row in table(section(title))
        if row[0].isdigit() and row[1].isdigit()
    ]


def coded(dtype: np.dtype[np.void], start: int = 0) -> list[Field]:
    """Return the fields of a structured type."""
    assert dtype.fields is not None
    assert dtype.names is not None
    return [
        Field(start + dtype.fields[name][1], dtype.fields[name][0].itemsize, name)
        for name in dtype.names
    ]


def test_the_record_is_documented_as_it_is_coded() -> None:
    head, foot = coded(dtypes.HEAD), dtypes.FOOT
    host, stamp = record_layout.HOST_V4_SIZE, dtypes.STORE_TIMESTAMP.itemsize
    born_at = dtypes.HEAD.itemsize
    middle = [
        Field(born_at, host, "born_host"),
        Field(born_at + host, stamp, "store_timestamp"),
        Field(born_at + host + stamp, host, "store_host"),
    ]
    foot_at = born_at + 2 * host + stamp
    assert documented("Record") == [*head, *middle, *coded(foot, foot_at)]


def test_the_rest_of_a_record_follows_its_header() -> None:
    rows = table(section("Record"))
    rest = [(row[0], row[1], row[2]) for row in rows if not (row[0].isdigit() and row[1].isdigit())]
    assert rest == [
        (str(record_layout.HEADER_V4_SIZE), "n", "body"),
        ("", "1", "topic_length"),
        ("", "n", "topic"),
        ("", "2", "properties_length"),
        ("", "n", "properties"),
    ]


@pytest.mark.parametrize(
    ("title", "numbers"),
    [
        ("Record", [record_layout.MAGIC_V1, record_layout.MAGIC_V2]),
        ("Blank record", [record_layout.MAGIC_BLANK]),
        ("Queue unit", [layout.FILLER_SIZE]),
    ],
)
def test_magic_numbers_are_documented(title: str, numbers: list[int]) -> None:
    written = {int(number, 16) for number in re.findall(r"`0x([0-9A-F]{8})`", section(title))}
    assert written - {0x7FFFFFFF} == set(numbers) - {0x7FFFFFFF}
    assert set(numbers) <= written


def test_the_flags_are_documented() -> None:
    flags = section("Record").split("**sysFlag**")[1]
    found = {row[1]: int(row[0], 16) for row in table(flags)}
    assert found == {name: int(bit) for name, bit in record_layout.SysFlag.__members__.items()}
    assert f"bits {record_layout.TRANSACTION_MASK:#X}".replace("X", "x") in flags.replace(
        "0XC", "0xC"
    )
    assert f"bits {record_layout.COMPRESSION_MASK:#x}" in flags


def test_the_limits_of_a_record_are_documented() -> None:
    text = section("Record")
    assert f"at most {record_layout.MAX_PROPERTIES:,}" in text
    assert f"over {record_layout.MAX_TOPIC_V1} bytes" in text
    assert f"`{record_layout.CHECKSUM_NAME.decode()}`" in text
    assert f"last {record_layout.CHECKSUM_SIZE} bytes" in text
    assert f"`{record_layout.NAME_VALUE_SEPARATOR:#04x}`" in text
    assert f"`{record_layout.PROPERTY_SEPARATOR:#04x}`" in text


def test_the_blank_record_is_documented() -> None:
    fields = documented("Blank record")
    assert fields == coded(dtypes.HEAD)[:2]
    assert sum(field.size for field in fields) == record_layout.BLANK_SIZE


def test_the_padding_of_a_repair_is_documented() -> None:
    assert f"`{PADDING_TOPIC}`" in section("Blank record")


def test_the_queue_unit_is_documented() -> None:
    assert documented("Queue unit") == coded(layout.QUEUE_UNIT)
    text = section("Queue unit")
    assert str(layout.EXT_LAST_ADDRESS) in text
    assert str(layout.EXT_FIRST_ADDRESS) in text
    assert f"size {layout.FILLER_SIZE}" in text


def struct_fields(format_: str, names: list[str], start: int = 0) -> list[Field]:
    """Return the fields of a struct.Struct, whose letters have no names."""
    sizes = {"q": 8, "i": 4, "h": 2}
    letters = re.findall(r"(\d*)([a-z])", format_)
    widths = [
        int(count) if letter == "s" else sizes[letter]
        for count, letter in letters
        for _ in range(1 if letter == "s" else int(count or 1))
    ]
    offsets = [start + sum(widths[:number]) for number in range(len(widths))]
    return [Field(*parts) for parts in zip(offsets, widths, names, strict=True)]


def test_the_extended_unit_is_documented() -> None:
    names = ["size", "tag_code", "store_time", "bit_map_size"]
    assert documented("Extended queue unit") == struct_fields(layout.EXT_UNIT_STRUCT.format, names)
    text = section("Extended queue unit")
    assert f"`{layout.EXT_END.hex().upper()}`" in text
    assert f"{layout.EXT_END_ROOM} bytes are always kept" in text
    assert f"| {layout.EXT_UNIT_SIZE} | n | bit_map |" in text


def test_the_index_is_documented() -> None:
    header = np.dtype(list(layout.INDEX_HEADER_FIELDS))
    assert documented("Index header") == coded(header)
    assert documented("Index entry") == coded(layout.INDEX_ENTRY)
    (slot,) = documented("Index slot")
    assert slot.size == layout.INDEX_SLOT.itemsize
    sizes = [layout.INDEX_HEADER_SIZE, slot.size, layout.INDEX_ENTRY.itemsize]
    assert "{} + {} \N{MULTIPLICATION SIGN} slots + {}".format(*sizes) in section("Files")


def test_the_checkpoint_is_documented() -> None:
    names = list(layout.CHECKPOINT_FIELDS)
    assert documented("Checkpoint") == struct_fields(layout.CHECKPOINT_STRUCT.format, names)
    assert f"{layout.CHECKPOINT_SIZE} bytes" in section("Checkpoint")


def test_the_tail_is_documented() -> None:
    first = struct_fields(layout.TAIL_STRUCT.format, ["magic", "end", "stored_ms", "check"])
    marks = [
        *struct_fields(layout.MARK_STRUCT.format, ["flushed", "complement"], layout.FLUSHED_AT),
        *struct_fields(layout.MARK_STRUCT.format, ["indexed", "complement"], layout.INDEXED_AT),
    ]
    append = struct_fields(
        layout.APPEND_STRUCT.format,
        ["append_begin", "append_end", "append_number", "append_check"],
        layout.APPEND_AT,
    )
    names = ["removals", "complement"]
    removals = struct_fields(layout.MARK_STRUCT.format, names, layout.REMOVALS_AT)
    intent = struct_fields(
        layout.INTENT_STRUCT.format,
        ["intent_magic", "intent_begin", "intent_complement"],
        layout.INTENT_AT,
    )
    assert documented("rocketpy/tail") == [*first, *marks, *append, *removals, *intent]
    assert f"`{layout.INTENT_MAGIC.decode()}`" in section("rocketpy/tail")
    assert f"`{layout.TAIL_MAGIC.decode()}`" in section("rocketpy/tail")
    assert layout.TAIL_STRUCT.format.startswith("<")


def test_the_staged_chunk_is_documented() -> None:
    text, names = section("Staged chunk"), list(layout.STAGED_FIELDS)
    assert documented("Staged chunk") == struct_fields(layout.STAGED_STRUCT.format, names)
    assert f"`{layout.STAGED_MAGIC.decode()}`" in text
    assert f"from byte {layout.STAGED_CHECKED_AT} on" in text
    assert f"`{layout.STAGED_FORMER_MAGIC.decode()}`" in text
    assert [field.size for field in coded(layout.STAGED_ROW)] == [8, 4, 4, 4, 4]
    assert [field.size for field in coded(layout.STAGED_INDEX)] == [4, 4, 4]


def test_the_ledger_is_documented() -> None:
    text = section("rocketpy/ledger")
    for field in fields(PendingBatch):
        assert f'"{field.name}"' in text
    assert f"last {MOST_WRITERS:,} writers" in section("Files")


def test_every_file_is_documented() -> None:
    paths = " ".join(row[0] for row in table(section("Files")))
    names = (
        layout.COMMIT_LOG, layout.CONSUME_QUEUE, layout.CONSUME_QUEUE_EXT, layout.INDEX,
        layout.CONFIG, layout.CHECKPOINT, layout.ABORT, layout.LOCK, layout.TAIL_FILE,
        layout.OPENERS, layout.SERVER, layout.CUT, layout.LEDGER, layout.LEASES, layout.STAGED,
        layout.REPLAYS, layout.MEMBERS, layout.GENERATIONS, layout.BROADCAST,
    )  # fmt: skip
    for name in names:
        assert re.search(rf"`{re.escape(name)}[`/]", paths), name
    sizes = {row[0]: row[1] for row in table(section("Files"))}
    assert sizes["`checkpoint`"] == str(layout.CHECKPOINT_SIZE)
    assert sizes["`rocketpy/tail`"] == str(layout.TAIL_FILE_SIZE)
    assert f"`{layout.LOCK_TEXT.decode()}`" in sizes["`lock`"]
    assert f"<{layout.FILE_NAME_DIGITS} digits>" in paths


def test_the_invariants_are_numbered_without_gaps() -> None:
    assert re.findall(r"^- \*\*(I\d+)\*\*", section("Invariants"), re.MULTILINE) == INVARIANTS


def test_the_checker_knows_the_same_invariants() -> None:
    told = re.findall(r"^(I\d+) ", verify_package.__doc__ or "", re.MULTILINE)
    assert told == INVARIANTS


def test_every_invariant_is_reported_by_the_checker() -> None:
    folder = ROOT / "broker_core" / "storage" / "verify"
    source = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    reported = set(re.findall(r'"(I\d+)"', source))
    assert reported == set(INVARIANTS)


def test_modules_speak_of_no_other_invariants() -> None:
    spoken: set[str] = set()
    for path in (ROOT / "broker_core" / "storage").glob("*.py"):
        spoken |= set(re.findall(r"^(I\d+)  ", path.read_text("utf-8"), re.MULTILINE))
    assert spoken <= set(INVARIANTS)
    assert {"I1", "I4", "I5", "I6", "I8"} <= spoken


def test_crash_tables_have_four_cells_in_every_row() -> None:
    for title in ("The process dies (`kill -9`)", "The power fails", "Several processes, one dies"):
        rows = table(section(title))
        assert rows
        assert all(len(row) == 4 and all(row) for row in rows)
