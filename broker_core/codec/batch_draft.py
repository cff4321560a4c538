"""Records of batches as drafts: what draft.py is for a single one, column by column.

The records of all batches that came together are laid out side by side in one run, with gaps for
what only the log knows; a draft is the part of a run that belongs to one batch. When drafts are
placed the gaps of all of them are filled at once, and each record gets its check sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.crc import checksum_properties
from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.draft import HEADER_STRUCTS, topic_field
from rocketpy.broker_core.codec.dtypes import HEADERS
from rocketpy.broker_core.codec.gather import Ints, pieces
from rocketpy.broker_core.codec.layout import ANY_HOST_V6, CHECKSUM_SIZE, MAX_PROPERTIES
from rocketpy.broker_core.codec.sys_flags import is_indexed
from rocketpy.broker_core.errors import MessageRefusedError

_POSITIVE = 0x7FFFFFFF
_LENGTH = np.dtype(">u2")  # of the properties
_LENGTH_ROOM = bytes(_LENGTH.itemsize)
_CHECKSUM = np.dtype(f"V{CHECKSUM_SIZE}")


class BatchHead(NamedTuple):
    """What the messages of a batch share. Hosts are packed."""

    topic: str
    queue_id: int
    born_host: bytes
    store_host: bytes
    born_ms: int
    sys_flag: int = 0
    reconsume_times: int = 0


class BatchMessages(NamedTuple):
    """What messages of batches have each for itself; one or more for each batch."""

    counts: Sequence[int]  # how many messages each batch has
    bodies: Sequence[bytes]
    body_lengths: Ints
    properties: Sequence[bytes]  # each is empty, or closed by a separator
    properties_lengths: Ints
    text: bytes  # all properties, one string after the other
    flags: npt.NDArray[np.int32]
    tag_codes: Ints


class BatchRun:
    """The records of batches, side by side. Their sizes are known."""

    __slots__ = (
        *("_header_rows", "_headers", "_records", "has_checksum"),
        *("_text", "_text_lengths", "sizes", "starts", "tags"),
    )

    def __init__(
        self, heads: Sequence[BatchHead], messages: BatchMessages, *, has_checksum: bool
    ) -> None:
        """Lay records out; all hosts of one kind have one width.

        Raises:
            MessageRefusedError: the properties of one are too long for a record.
        """
        self.has_checksum, self.tags = has_checksum, messages.tag_codes
        self._text, self._text_lengths = messages.text, messages.properties_lengths
        after = bytes(CHECKSUM_SIZE if has_checksum else 0)
        lengths, count = messages.properties_lengths + len(after), len(messages.bodies)
        if int(lengths.max()) > MAX_PROPERTIES:
            reason = f"{lengths.max()} bytes in all, a record holds {MAX_PROPERTIES}"
            raise MessageRefusedError("properties", reason)
        shared, names = self._shared(heads, messages.counts)
        parts = [bytes(self._headers.itemsize), b"", b"", b"", after] * count
        parts[1::5], parts[2::5], parts[3::5] = messages.bodies, names, messages.properties
        self._records = bytearray().join(parts)
        # Up to the length of the properties, that included: a name has room for it after it.
        before = messages.body_lengths + shared.repeat(messages.counts)
        self.sizes = before + lengths
        self.starts = np.cumsum(self.sizes) - self.sizes  # of each record, from the first one on
        self._put(self.starts + (before - _LENGTH.itemsize), lengths.astype(_LENGTH))
        crcs = np.fromiter(map(crc32, messages.bodies), np.uint32, count)
        headers = self._headers
        headers["total_size"], headers["flag"] = self.sizes, messages.flags
        headers["body_crc"], headers["body_length"] = crcs & _POSITIVE, messages.body_lengths

    def _shared(
        self, heads: Sequence[BatchHead], counts: Sequence[int]
    ) -> tuple[Ints, list[bytes]]:
        """Make headers of what batches share.

        Returns:
            How many bytes header and name have in each batch, and the name of each row: with its
            length before it, and room for the length of the properties after it.
        """
        first = heads[0]
        layout, host_flags = HEADER_STRUCTS[len(first.born_host), len(first.store_host)]
        packed, lengths, names = [], [], list[bytes]()
        for head, count in zip(heads, counts, strict=True):
            magic, name = topic_field(head.topic)
            sys_flag = head.sys_flag & ~ANY_HOST_V6 | host_flags
            hosts = head.born_host, 0, head.store_host
            numbers = 0, magic, 0, head.queue_id, 0, 0, 0, sys_flag, head.born_ms
            packed.append(layout.pack(*numbers, *hosts, head.reconsume_times, 0, 0))
            lengths.append(layout.size + len(name) + _LENGTH.itemsize)
            names += [name + _LENGTH_ROOM] * count
        # numpy copies rows of a structured type field by field, of a plain one as a whole
        plain = np.dtype(f"V{layout.size}")
        self._header_rows = np.frombuffer(b"".join(packed), plain).repeat(counts)
        self._headers = self._header_rows.view(HEADERS[host_flags])
        return np.array(lengths, np.int64), names

    def view(self, first: int, last: int) -> memoryview:
        """Return the bytes of some records; what place() fills in later is seen."""
        start, stop = int(self.starts[first]), int(self.starts[last - 1] + self.sizes[last - 1])
        return memoryview(self._records)[start:stop]

    def text(self, first: int, last: int) -> tuple[bytes, Ints]:
        """Return the property strings of some records, one after the other, and their lengths."""
        lengths = self._text_lengths[first:last]
        if len(lengths) == len(self.starts):
            return self._text, lengths
        begin = int(self._text_lengths[:first].sum())
        return self._text[begin : begin + int(lengths.sum())], lengths

    def place(self, rows: slice, queue_offsets: Ints, physical_offsets: Ints, at_ms: int) -> None:
        """Give records their offsets, their store time and their check sums."""
        headers, starts = self._headers[rows], self.starts[rows]
        headers["queue_offset"], headers["physical_offset"] = queue_offsets, physical_offsets
        headers["store_timestamp"] = at_ms
        self._put(starts, self._header_rows[rows])
        if self.has_checksum:
            lengths = self.sizes[rows] - CHECKSUM_SIZE
            records = pieces(self._records, starts, lengths)
            crcs = np.fromiter(map(crc32, records), np.uint32, len(records))
            self._put(starts + lengths, checksum_properties(crcs).view(_CHECKSUM))

    def _put(self, positions: Ints, values: npt.NDArray[Any]) -> None:
        """Write one value to each position."""
        count = len(self._records) - values.itemsize + 1
        target = np.ndarray((count,), values.dtype, self._records, strides=(1,))
        target[positions] = values


class BatchDraft:
    """The records of one batch, or of a part of it: those from `first` up to `last` of a run."""

    __slots__ = ("count", "first", "is_indexed", "last", "queue", "records", "run", "size")
    is_queued, delay_ms = True, 0

    def __init__(self, head: BatchHead, run: BatchRun, first: int, last: int) -> None:
        self.queue, self.run = (head.topic, head.queue_id), run
        self.is_indexed = is_indexed(head.sys_flag)
        self.first, self.last, self.count = first, last, last - first
        self.records = run.view(first, last)  # they are whole once they are placed
        self.size = len(self.records)

    @property
    def starts(self) -> Ints:
        """Where its records begin, from the first one on."""
        starts: Ints = self.run.starts[self.first : self.last]
        return starts - int(starts[0])

    @property
    def tag_codes(self) -> Ints:
        """What its queue keeps of the tags."""
        return self.run.tags[self.first : self.last]
