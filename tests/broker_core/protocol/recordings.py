"""Frames between Apache's own programs, recorded: a client's conversations, mqadmin's, and binary.

Each is a dict: the frame as `hex`, its direction (`>` from the client), what its header says.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("recorded")

Recorded = dict[str, Any]


@cache
def recorded() -> list[Recorded]:
    """Return all frames whose bytes were kept."""
    found = []
    for file in sorted(FOLDER.iterdir()):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            found += [json.loads(line) for line in lines]
    return [frame for frame in found if "hex" in frame]


def bytes_of(frame: Recorded) -> bytes:
    """Return the whole frame; zeros stand for what the recording left out of a long body."""
    data = bytes.fromhex(frame["hex"])
    return data.ljust(4 + int.from_bytes(data[:4], "big"), b"\0")


def body_of(frame: Recorded) -> bytes | None:
    """Return the body, None where the recording left some of it out."""
    whole = len(frame["hex"]) // 2 == 4 + int(frame["hex"][:8], 16)
    data = bytes.fromhex(frame["hex"])[8 + frame["headerLength"] :]
    return data if whole else None
