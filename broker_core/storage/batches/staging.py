"""`rocketpy/staged/<transaction>/<file>`: records on their way into the log.

A task writes its records, encoded but not placed, to a file of its own, chunk by chunk. It needs no
lock for that, and nobody reads the file before its name is handed to a commit. Records are whole
but for what the log decides, so that a commit copies them and fills that in. What a dead task left
is removed with its transaction, or when it is a day old.
"""

from __future__ import annotations

import io
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.dtypes import HEADERS
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Bytes, Ints
from rocketpy.broker_core.codec.layout import ANY_HOST_V6
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.appends import number_rows
from rocketpy.broker_core.storage.disk import Disk, raise_if_full
from rocketpy.broker_core.storage.index_slots import slot_order
from rocketpy.broker_core.storage.layout import (
    STAGED,
    STAGED_CHECKED_AT,
    STAGED_FORMER_MAGIC,
    STAGED_INDEX,
    STAGED_MAGIC,
    STAGED_ROW,
    STAGED_STRUCT,
)

_OLD_S = 86_400
_HOSTS = {header: hosts for hosts, header in HEADERS.items()}


class StagedFile:
    """A file that one task writes to."""

    def __init__(self, root: Path, transaction: str, index_slots: int) -> None:
        """Make the file; `index_slots` is how many an index file has, or is thought to have."""
        self._index_slots = index_slots
        folder = root / STAGED / transaction
        Disk().make_folder(folder)
        self.path = folder / uuid.uuid4().hex
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self.rows = 0

    def put(self, batch: EncodedBatch, queues: int) -> None:
        """Write a batch; `queues` is how many the topic has, or is to get."""
        run, rows = batch.run, np.empty(len(batch.run), STAGED_ROW)
        rows["tag_code"] = batch.tag_codes if batch.delays_ms is None else batch.delays_ms
        rows["size"], rows["queue_id"] = run.sizes, batch.queue_ids
        rows["number"] = number_rows(batch.queue_ids)
        rows["crc"] = 0 if run.crcs is None else run.crcs
        index = np.empty(len(batch.index_rows), STAGED_INDEX)
        index["row"], index["key_hash"] = batch.index_rows, batch.index_hashes
        index["order"] = slot_order(batch.index_hashes % self._index_slots)
        topic, records = batch.topic.encode(), run.data[: int(run.sizes.sum())]
        form = _HOSTS[run.header] | (run.crcs is not None)
        counts = len(topic), queues, len(rows), len(index), records.size, form
        pieces: list[bytes | memoryview] = [
            topic, rows.view(np.uint8).data, index.view(np.uint8).data, records.data
        ]  # fmt: skip
        head = STAGED_STRUCT.pack(STAGED_MAGIC, 0, *counts)
        check = _crc_of([head[STAGED_CHECKED_AT:], *pieces])
        self._write([STAGED_STRUCT.pack(STAGED_MAGIC, check, *counts), *pieces])
        self.rows += len(rows)

    def declare(self, topic: str, queues: int) -> None:
        """Have a topic exist after the commit, whether or not it gets a message now."""
        name = topic.encode()
        counts = len(name), queues, 0, 0, 0, 0
        head = STAGED_STRUCT.pack(STAGED_MAGIC, 0, *counts)
        check = _crc_of([head[STAGED_CHECKED_AT:], name])
        self._write([STAGED_STRUCT.pack(STAGED_MAGIC, check, *counts), name])

    def _write(self, pieces: list[bytes | memoryview]) -> None:
        size = sum(len(piece) for piece in pieces)
        try:
            written = os.writev(self._fd, pieces)
            rest = memoryview(b"".join(pieces))[written:] if written < size else memoryview(b"")
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as cause:
            raise_if_full(cause, self.path, size)
            raise

    def finish(self) -> None:
        """Close the file; it is whole from here on.

        It need not be durable: a batch that a power failure keeps from being committed is run
        again, and a commit syncs what it copies to the log.
        """
        os.close(self._fd)

    def discard(self) -> None:
        """Remove the file instead."""
        os.close(self._fd)
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """Records of one topic, with what queues and index keep of them."""

    topic: str
    rows: npt.NDArray[np.void]
    index: npt.NDArray[np.void]
    run: RecordRun | None  # None where only the rest was asked for

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> Ints:
        """How many bytes each record has."""
        return self.rows["size"].astype(np.int64)

    def codes_at(self, stored_ms: int) -> Ints:
        """Return the tag codes of the queue entries; for messages that wait, their due times."""
        codes: Ints = self.rows["tag_code"]
        return codes + stored_ms if self.topic == SCHEDULE_TOPIC else codes


class _Head(NamedTuple):
    """The first bytes of a chunk: see STAGED_FIELDS."""

    magic: bytes
    check: int
    topic_length: int
    queues: int
    rows: int
    index_rows: int
    records_size: int
    form: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """How many bytes topic, rows, index entries and records have."""
        entries = self.rows * STAGED_ROW.itemsize, self.index_rows * STAGED_INDEX.itemsize
        return self.topic_length, *entries, self.records_size


class ChunkBuffer:
    """Memory for the records of one chunk after the other.

    New memory for each chunk would cost more than to read into it.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, size: int) -> Bytes:
        """Return room for so many bytes; what was returned before is written over."""
        if self._memory.size < size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size]


def staged_chunks(
    paths: Iterable[Path], records_into: ChunkBuffer | None = None
) -> Iterator[StagedChunk]:
    """Yield what was staged in some files; with their records, every byte is checked.

    These are in the buffer until the next chunk is asked for.

    Raises:
        CorruptStoreError: a file is not as it was written, or not there.
    """
    for path in paths:
        for head, file in _heads(path):
            if head.rows:
                yield _read_chunk(path, file, head, records_into)


def staged_topics(paths: Iterable[Path]) -> dict[str, int]:
    """Return the topics of staged files, and how many queues each has or is to get."""
    topics: dict[str, int] = {}
    for path in paths:
        for head, file in _heads(path):
            topic = file.read(head.topic_length).decode(errors="replace")
            topics[topic] = max(head.queues, topics.get(topic, 0))
    return topics


def _heads(path: Path) -> Iterator[tuple[_Head, io.BufferedReader]]:
    """Yield the heads of the chunks of a file, with the file as it is after each of them."""
    try:
        with path.open("rb") as file:
            size, at = os.fstat(file.fileno()).st_size, 0
            while at < size:
                file.seek(at)
                head = _checked_head(path, at, file.read(STAGED_STRUCT.size), size)
                yield head, file
                at += STAGED_STRUCT.size + sum(head.sizes)
    except FileNotFoundError as cause:
        reason = "this part of a batch is gone: run the batch again; if it is gone then, too, "
        reason += "its task had another folder under this path, which must be shared"
        raise CorruptStoreError(path, 0, reason) from cause


def _checked_head(path: Path, at: int, data: bytes, size: int) -> _Head:
    head = _Head(*STAGED_STRUCT.unpack(data.ljust(STAGED_STRUCT.size, b"\0")))
    if head.magic == STAGED_FORMER_MAGIC:
        reason = "was staged by an earlier version of rocketpy; run the batch again"
        raise CorruptStoreError(path, at, reason)
    left = size - at - STAGED_STRUCT.size
    if head.magic != STAGED_MAGIC or min(head.sizes) < 0 or sum(head.sizes) > left:
        raise CorruptStoreError(path, at, "not a whole chunk; run the batch again")
    return head


def _read_chunk(
    path: Path, file: io.BufferedReader, head: _Head, records_into: ChunkBuffer | None
) -> StagedChunk:
    at = file.tell() - STAGED_STRUCT.size
    topic, rows, index = (file.read(size) for size in head.sizes[:3])
    row_table, index_table = np.frombuffer(rows, STAGED_ROW), np.frombuffer(index, STAGED_INDEX)
    run = None
    if records_into is not None:
        records = records_into.take(head.records_size)
        file.readinto(records.data)
        checked = STAGED_STRUCT.pack(*head)[STAGED_CHECKED_AT:]
        if head.check != _crc_of((checked, topic, rows, index, records.data)):
            raise CorruptStoreError(path, at, "does not match its check sum; run the batch again")
        crcs = row_table["crc"] if head.form & 1 else None
        header = HEADERS[head.form & ANY_HOST_V6]
        run = RecordRun(records, row_table["size"].astype(np.int64), header, crcs)
    return StagedChunk(topic.decode(), row_table, index_table, run)


def _crc_of(pieces: Iterable[bytes | memoryview]) -> int:
    crc = 0
    for piece in pieces:
        crc = crc32(piece, crc)
    return crc


def remove_staged(root: Path, transactions: Iterable[str]) -> None:
    """Remove all that some transactions staged, and whatever has lain there for a day."""
    for name in transactions:
        shutil.rmtree(root / STAGED / name, ignore_errors=True)
    for folder in (root / STAGED).iterdir() if (root / STAGED).is_dir() else ():
        if time.time() - _last_change_s(folder) > _OLD_S:
            shutil.rmtree(folder, ignore_errors=True)


def _last_change_s(folder: Path) -> float:
    times = []
    for path in [folder, *folder.iterdir()] if folder.is_dir() else []:
        try:
            times.append(path.stat().st_mtime)
        except FileNotFoundError:
            continue  # its own transaction removes it just now
    return max(times, default=time.time())
