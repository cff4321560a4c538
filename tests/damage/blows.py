"""What can happen to a file: bits turn, bytes are overwritten, lost or added, the file goes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from tests.damage.regions import Region

KINDS = ("bit", "bytes", "zeros", "cut", "garbage", "delete")
_FOLLOWING = 40  # zeros and garbage reach at most so far beyond a region's first byte


class Blow(NamedTuple):
    """One piece of damage: the bytes of `path` from `start` to `end` are not what they were."""

    kind: str
    path: Path
    start: int
    end: int

    def touches(self, path: Path, start: int, end: int) -> bool:
        """Whether it may have changed any of these bytes of a file."""
        return path == self.path and start < self.end and self.start < end


def strike(root: Path, region: Region, kind: str, seed: int) -> Blow | None:
    """Damage a store in a region; None if that would change nothing."""
    chance = random.Random(f"{region.name} {kind} {seed}")
    path = root / region.path
    old = path.read_bytes()
    if kind == "delete":
        path.unlink()
        return Blow(kind, region.path, 0, len(old))
    at = region.start + chance.randrange(max(region.size, 1))
    if kind == "bit":
        new = _with(old, at, bytes([old[at] ^ 1 << chance.randrange(8)])) if old else old
    elif kind == "bytes":
        size = min(chance.randint(1, 8), region.start + region.size - at)
        new = _with(old, at, chance.randbytes(size))
    elif kind == "zeros":
        size = min(region.size, region.start + region.size - at, _FOLLOWING)
        new = _with(old, at, bytes(size))
    elif kind == "cut":
        new = old[:at]
    else:
        new = old + chance.randbytes(chance.randint(1, _FOLLOWING))
    if new == old:
        return None
    path.write_bytes(new)
    differ = [n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b]
    first = differ[0] if differ else min(len(old), len(new))
    last = differ[-1] + 1 if len(old) == len(new) else max(len(old), len(new))
    return Blow(kind, region.path, first, last)


def _with(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]
