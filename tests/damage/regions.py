"""The byte ranges of a store by what they mean, computed from the format alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RECORD_HEAD = (
    ("size", 4), ("magic", 4), ("body crc", 4), ("queue id", 4), ("flag", 4),
    ("queue offset", 8), ("physical offset", 8), ("sys flag", 4), ("born time", 8),
    ("born host", 8), ("store time", 8), ("store host", 8), ("reconsume times", 4),
    ("prepared offset", 8), ("body length", 4),
)  # fmt: skip
QUEUE_UNIT = (("physical offset", 8), ("size", 4), ("tag code", 8))
EXT_UNIT = (("size", 2), ("tag code", 8), ("stored ms", 8), ("map size", 2))
INDEX_HEADER = (
    ("begin time", 8), ("end time", 8), ("begin offset", 8), ("end offset", 8),
    ("used slots", 4), ("count", 4),
)  # fmt: skip
INDEX_ENTRY = (("key hash", 4), ("physical offset", 8), ("seconds", 4), ("previous", 4))
CHECKPOINT = (
    ("physic time", 8), ("logics time", 8), ("index time", 8), ("master flushed", 8),
    ("confirm offset", 8), ("logics offset", 8), ("unused", 4096 - 48),
)  # fmt: skip
TAIL = (
    ("magic", 8), ("end", 8), ("stored ms", 8), ("unused 1", 512 - 24), ("flushed", 8),
    ("complement", 8), ("unused 2", 1024 - 528), ("indexed", 8), ("complement of indexed", 8),
    ("unused 3", 1536 - 1040), ("append begin", 8), ("append end", 8), ("append number", 8),
    ("append check", 8), ("unused 4", 4096 - 1568),
)  # fmt: skip
BLANK = (("size", 4), ("magic", 4))
MAGIC_BLANK = 0xCBD43194
CHECKSUM = 20
Fields = tuple[tuple[str, int], ...]


OWNERS = (
    "first record", "middle record", "newest record", "blank", "log",
    "first entry", "middle entry", "last entry", "delayed entry", "queue",
    "ext unit", "last ext unit", "ext",
    "full index", "full index entry 1", "full index entry last",
    "last index", "last index entry 1", "last index entry last",
    "checkpoint", "tail", "lock", "config",
)  # fmt: skip


class Region(NamedTuple):
    """Some bytes of one file, with a name that says what they are."""

    name: str
    path: Path  # below the store
    start: int
    size: int

    @property
    def owner(self) -> str:
        """What the bytes are a part of."""
        return self.name.partition(":")[0]


def regions(root: Path, *, checksums: bool = True) -> list[Region]:
    """Return the regions of every kind of file; of things that repeat, of one in the middle."""
    found = [*_log(root, checksums), *_queues(root), *_index(root)]
    found += _fields("checkpoint", Path("checkpoint"), 0, CHECKPOINT)
    found += _fields("tail", Path("rocketpy/tail"), 0, TAIL)
    found.append(Region("lock: text", Path("lock"), 0, 4))
    for path in sorted((root / "config").iterdir()):
        size = path.stat().st_size
        found.append(Region(f"config: {path.name}", path.relative_to(root), 0, size))
    assert len({region.name for region in found}) == len(found)
    return found


def _fields(owner: str, path: Path, at: int, fields: Fields) -> Iterator[Region]:
    for name, size in fields:
        yield Region(f"{owner}: {name}", path, at, size)
        at += size


def _log(root: Path, checksums: bool) -> Iterator[Region]:
    paths = sorted((root / "commitlog").iterdir())
    assert len(paths) >= 3
    for which, path, number in (("first", paths[0], 0), ("middle", paths[1], 3)):
        at = _record_at(path, number)
        yield from _record(f"{which} record", root, path, at, checksums)
    blank = _record_at(paths[0], None)
    below = paths[0].relative_to(root)
    yield from _fields("blank", below, blank, BLANK)
    yield Region("blank: rest", below, blank + 8, paths[0].stat().st_size - blank - 8)
    last, end = paths[-1], _record_at(paths[-1], None)
    newest = _record_at(last, _count(last) - 1)
    yield from _record("newest record", root, last, newest, checksums)
    yield Region("log: free", last.relative_to(root), end, last.stat().st_size - end)


def _sizes(path: Path) -> Iterator[int]:
    data, at = path.read_bytes(), 0
    while at + 8 <= len(data):
        size, magic = struct.unpack_from(">iI", data, at)
        if size <= 0 or magic == MAGIC_BLANK:
            return
        yield size
        at += size


def _count(path: Path) -> int:
    return len(list(_sizes(path)))


def _record_at(path: Path, number: int | None) -> int:
    return sum(list(_sizes(path))[:number])


def _record(owner: str, root: Path, path: Path, at: int, checksums: bool) -> Iterator[Region]:
    data, below = path.read_bytes(), path.relative_to(root)
    yield from _fields(owner, below, at, RECORD_HEAD)
    size, head = struct.unpack_from(">i", data, at)[0], sum(size for _, size in RECORD_HEAD)
    body = struct.unpack_from(">i", data, at + head - 4)[0]
    topic_at = at + head + body
    topic = data[topic_at]
    checksum = CHECKSUM if checksums else 0
    rest = at + size - (topic_at + 1 + topic + 2) - checksum
    parts = [("body", body), ("topic length", 1), ("topic", topic), ("properties length", 2)]
    parts.append(("properties", rest))
    if checksum:
        parts += [("check sum name", 9), ("check sum digits", 10), ("check sum end", 1)]
    yield from _fields(owner, below, at + head, tuple(parts))


def _queues(root: Path) -> Iterator[Region]:
    folder = Path("consumequeue/orders/0")
    paths = sorted((root / folder).iterdir())
    assert len(paths) >= 2
    yield from _fields("first entry", folder / paths[0].name, 0, QUEUE_UNIT)
    yield from _fields("middle entry", folder / paths[0].name, 60, QUEUE_UNIT)
    used = paths[-1].read_bytes().rstrip(b"\0")
    end = (len(used) + 19) // 20 * 20
    yield from _fields("last entry", folder / paths[-1].name, end - 20, QUEUE_UNIT)
    yield Region("queue: free", folder / paths[-1].name, end, paths[-1].stat().st_size - end)
    schedule = Path("consumequeue/SCHEDULE_TOPIC_XXXX/2") / f"{0:020d}"
    yield from _fields("delayed entry", schedule, 0, QUEUE_UNIT)
    folder = Path("consumequeue_ext/orders/0")
    if not (root / folder).is_dir():
        return
    paths = sorted((root / folder).iterdir())
    assert len(paths) >= 2
    yield from _fields("ext unit", folder / paths[0].name, 20, EXT_UNIT)
    yield Region("ext: end mark", folder / paths[0].name, 120, 2)
    yield Region("ext: behind end mark", folder / paths[0].name, 122, 6)
    last = paths[-1].read_bytes()
    at = 0
    while last[at : at + 2] == b"\0\x14":
        at += 20
    yield from _fields("last ext unit", folder / paths[-1].name, at - 20, EXT_UNIT)
    yield Region("ext: free", folder / paths[-1].name, at, len(last) - at)


def _index(root: Path) -> Iterator[Region]:
    paths = sorted((root / "index").iterdir())
    assert len(paths) >= 2
    for which, path in (("full", paths[0]), ("last", paths[-1])):
        below, data = path.relative_to(root), path.read_bytes()
        count, slots = struct.unpack_from(">i", data, 36)[0], 8
        entries = 40 + 4 * slots
        yield from _fields(f"{which} index", below, 0, INDEX_HEADER)
        yield Region(f"{which} index: slots", below, 40, 4 * slots)
        yield Region(f"{which} index: entry 0", below, entries, 20)
        for number in (1, count - 1):
            where = f"{which} index entry {'1' if number == 1 else 'last'}"
            yield from _fields(where, below, entries + 20 * number, INDEX_ENTRY)
        if which == "last":
            free = entries + 20 * count
            yield Region("last index: free", below, free, len(data) - free)
