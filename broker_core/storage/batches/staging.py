"""`rocketpy/staged/<transaction>/<file>`: records on their way into the log.

A task writes its records, encoded but not placed, to a file of its own, chunk by chunk. It needs no
lock for that, and nobody reads the file before its name is handed to a commit. What a dead
task left is removed with its transaction, or when it is a day old.
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

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.dtypes import HEADER_V4, HEADERS
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import ANY_HOST_V6
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.disk import Disk, raise_if_full
from rocketpy.broker_core.storage.layout import (
    STAGED,
    STAGED_CHECKED_AT,
    STAGED_INDEX,
    STAGED_MAGIC,
    STAGED_ROW,
    STAGED_STRUCT,
)

_OLD_S = 86_400


class StagedFile:
    """A file that one task writes to."""

    def __init__(self, root: Path, transaction: str) -> None:
        folder = root / STAGED / transaction
        Disk().make_folder(folder)
        self.path = folder / uuid.uuid4().hex
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self.rows = 0

    def put(self, batch: EncodedBatch, queues: int) -> None:
        """Write a batch; `queues` is how many the topic has, or is to get."""
        rows, crcs = np.empty(len(batch.run), STAGED_ROW), batch.run.rest_crcs
        rows["size"], rows["queue_id"] = batch.run.sizes, batch.queue_ids
        rows["tag_code"] = batch.tag_codes if batch.delays_ms is None else batch.delays_ms
        rows["rest_crc"] = 0 if crcs is None else crcs
        index = np.empty(len(batch.index_rows), STAGED_INDEX)
        index["row"], index["key_hash"] = batch.index_rows, batch.index_hashes
        topic, headers, rest = batch.topic.encode(), batch.run.headers, batch.run.rest()
        hosts = int(headers["sys_flag"][0]) & ANY_HOST_V6 if len(rows) else 0
        form = hosts | (crcs is not None)
        counts = len(topic), queues, len(rows), len(index), rest.size, form
        pieces: list[bytes | memoryview] = [
            topic, rows.tobytes(), index.tobytes(), headers.tobytes(), rest.data
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
    queues: int
    rows: npt.NDArray[np.void]
    index: npt.NDArray[np.void]
    run: RecordRun | None  # None where only the rest was asked for

    @property
    def sizes(self) -> Ints:
        """How many bytes each record has."""
        return self.rows["size"].astype(np.int64)

    def codes_at(self, stored_ms: int) -> Ints:
        """Return the tag codes of the queue entries; for messages that wait, their due times."""
        codes: Ints = self.rows["tag_code"]
        return codes + stored_ms if self.topic == SCHEDULE_TOPIC else codes


def staged_chunks(paths: Iterable[Path], *, with_records: bool) -> Iterator[StagedChunk]:
    """Yield what was staged in some files; with their records every byte is checked.

    Raises:
        CorruptStoreError: a file is not as it was written, or not there.
    """
    for chunk in _all_chunks(paths, with_records):
        if len(chunk.rows):
            yield chunk


def staged_topics(paths: Iterable[Path]) -> dict[str, int]:
    """Return the topics of staged files, and how many queues each has or is to get."""
    topics: dict[str, int] = {}
    for chunk in _all_chunks(paths, with_records=False):
        topics[chunk.topic] = max(chunk.queues, topics.get(chunk.topic, 0))
    return topics


def _all_chunks(paths: Iterable[Path], with_records: bool) -> Iterator[StagedChunk]:
    for path in paths:
        try:
            with path.open("rb") as file:
                while head := file.read(STAGED_STRUCT.size):
                    yield _read_chunk(path, file, head, with_records)
        except FileNotFoundError as cause:
            reason = "this part of a batch is gone: run the batch again; if it is gone then, too, "
            reason += "its task had another folder under this path, which must be shared"
            raise CorruptStoreError(path, 0, reason) from cause


def _read_chunk(
    path: Path, file: io.BufferedReader, head: bytes, with_records: bool
) -> StagedChunk:
    at = file.tell() - len(head)
    magic, *fields = STAGED_STRUCT.unpack(head.ljust(STAGED_STRUCT.size, b"\0"))
    check, topic_length, queues, row_count, index_count, rest_size, form = fields
    sizes = topic_length, row_count * STAGED_ROW.itemsize, index_count * STAGED_INDEX.itemsize
    header = HEADERS.get(form & ANY_HOST_V6, HEADER_V4)
    headers_size = row_count * header.itemsize
    left = os.fstat(file.fileno()).st_size - file.tell()
    if magic != STAGED_MAGIC or not _fit((*sizes, headers_size, rest_size), left):
        raise CorruptStoreError(path, at, "not a whole chunk; run the batch again")
    topic, rows, index = (file.read(size) for size in sizes)
    row_table, index_table = np.frombuffer(rows, STAGED_ROW), np.frombuffer(index, STAGED_INDEX)
    run = None
    if with_records:
        headers, rest = np.empty(row_count, header), np.empty(rest_size, np.uint8)
        file.readinto(headers.view(np.uint8).data)
        file.readinto(rest.data)
        pieces = (
            head[STAGED_CHECKED_AT:],
            topic,
            rows,
            index,
            headers.view(np.uint8).data,
            rest.data,
        )
        if check != _crc_of(pieces):
            raise CorruptStoreError(path, at, "does not match its check sum; run the batch again")
        run = RecordRun.of_parts(headers, rest, row_table["rest_crc"] if form & 1 else None)
    else:
        file.seek(headers_size + rest_size, os.SEEK_CUR)
    return StagedChunk(topic.decode(), queues, row_table, index_table, run)


def _fit(sizes: tuple[int, ...], left: int) -> bool:
    return min(sizes) >= 0 and sum(sizes) <= left


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
