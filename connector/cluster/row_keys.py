"""Unique keys by which a row that was sent is known again, whoever sends it next.

A key is made of the batch (which writer's, and its number), of what the row says, of its partition,
and of how many equal rows came before it there. So
K1  a task that is run again gives its rows the same keys, in whatever order they come;
K2  equal rows have different keys, in one partition or in several;
K3  a row that another run has in another partition is known by the part that is its content.
A content is 96 bits of a hash: two rows that differ and have the same one are not to be expected.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Keys = npt.NDArray[np.bytes_]
_Ints = npt.NDArray[np.int64]

_CONTENT_BYTES = 12
# All in hexadecimal digits.
_PARTS = np.dtype(
    [
        ("batch", "S12"),
        ("content", f"S{2 * _CONTENT_BYTES}"),
        ("partition", "S6"),
        ("before", "S8"),  # how many equal rows come before it in its partition
    ]
)
KEY = np.dtype(f"S{_PARTS.itemsize}")
MOST_PARTITIONS = 1 << 24


def batch_token(writer: str, number: int) -> bytes:
    """Return what the keys of a batch begin with."""
    return hashlib.sha256(f"{writer}\n{number}".encode()).hexdigest()[:12].encode()


def numbers_of(contents: pa.Array) -> _Ints:
    """Return a number for each row, made of all that it says; none is negative."""
    found = [mmh3.mmh3_x64_128_utupledigest(each)[0] >> 1 for each in contents.to_pylist()]
    return np.array(found, np.int64)


def contents_of(keys: Keys) -> Keys:
    """Return the part of keys that tells what rows say."""
    return np.ascontiguousarray(keys).view(_PARTS)["content"]


def partitions_of(keys: Keys) -> _Ints:
    """Return the partitions of keys."""
    digits = np.ascontiguousarray(np.ascontiguousarray(keys).view(_PARTS)["partition"])
    return np.array([int(each, 16) for each in digits.tolist()], np.int64)


@dataclass(slots=True)
class RowKeys:
    """Gives the rows of one partition of a batch their keys, chunk by chunk."""

    batch: bytes
    partition: int
    _equal: EqualValues = field(default_factory=lambda: EqualValues())

    def of(self, contents: pa.Array) -> Keys:
        """Return the keys of the next rows, by all that they say, as bytes."""
        digests = np.frombuffer(
            b"".join(map(mmh3.mmh3_x64_128_digest, contents.to_pylist())), np.uint8
        ).reshape(-1, 16)
        before = self._equal.before(np.ascontiguousarray(digests[:, :8]).view(np.int64).ravel())
        keys = np.empty(len(contents), _PARTS)
        keys["batch"] = self.batch
        keys["content"] = _hexadecimal(digests[:, :_CONTENT_BYTES])
        keys["partition"] = f"{self.partition:06x}".encode()
        keys["before"] = _hexadecimal(before.astype(">u4").view(np.uint8).reshape(-1, 4))
        return keys.view(KEY)


def _hexadecimal(rows: npt.NDArray[np.uint8]) -> Keys:
    return np.frombuffer(rows.tobytes().hex().encode(), f"S{2 * rows.shape[1]}")


@dataclass(slots=True)
class EqualValues:
    """Counts how often each value came before: 16 bytes of memory a value, no loop over them."""

    # Sorted values and their counts, in runs of which each is longer than the next.
    _runs: list[tuple[_Ints, _Ints]] = field(default_factory=list)

    def before(self, values: _Ints) -> _Ints:
        """Return of each value how many equal ones came before it, in this call or an earlier."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        firsts = _firsts(ordered)
        unique, counts = ordered[firsts], np.diff(firsts, append=len(ordered))
        earlier = np.zeros(len(unique), np.int64)
        for known, times in self._runs:
            at = np.minimum(np.searchsorted(known, unique), len(known) - 1)
            earlier += np.where(known[at] == unique, times[at], 0)
        found = np.empty(len(values), np.int64)
        found[order] = np.arange(len(values)) + np.repeat(earlier - firsts, counts)
        if len(unique):
            self._add(unique, counts)
        return found

    def _add(self, values: _Ints, counts: _Ints) -> None:
        self._runs.append((values, counts))
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= len(self._runs[-1][0]):
            (last, last_counts), (former, former_counts) = self._runs.pop(), self._runs.pop()
            both = np.concatenate([former, last])
            order = np.argsort(both, kind="stable")
            both, times = both[order], np.concatenate([former_counts, last_counts])[order]
            firsts = _firsts(both)
            self._runs.append((both[firsts], np.add.reduceat(times, firsts)))


def _firsts(ordered: _Ints) -> _Ints:
    """Return where each value comes first."""
    return np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
