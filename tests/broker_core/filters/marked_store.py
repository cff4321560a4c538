"""A store as Apache's broker leaves it for a group with an SQL filter, with maps made by hand."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import rocketpy
from rocketpy.broker_core.filters import BloomBits
from rocketpy.broker_core.storage.layout import EXT_FIRST_ADDRESS

SQL = "region = 'eu'"
GROUP_BITS = BloomBits.of_group("g", "t", map_bits=112, count=3)
BORN_MS, WRITTEN_MS = 1_000_000, 9_000_000


def make_marked_store(path: Path) -> None:
    """Make a store whose broker marked messages 2 and 3 of 0 to 4 as passing the filter of `g`.

    In truth all pass but number 3. Number 0 came before the group, and 4 has no map at all.
    """
    config = rocketpy.StoreConfig(
        commit_log_file_size=4096,
        max_message_size=3000,
        consume_queue_file_entries=5,
        consume_queue_ext=True,
        consume_queue_ext_file_size=1024,
    )
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        for number in range(5):
            region = "us" if number == 3 else "eu"
            store.send("t", f"{number}", properties={"region": region})
    hit = sum(1 << position for position in GROUP_BITS.positions).to_bytes(14, "little")
    maps = [bytes(14), bytes(14), hit, hit, b""]
    _put_units(path, [BORN_MS, *[BORN_MS + 1] * 4], maps)
    register(path, GROUP_BITS)


def _put_units(path: Path, times: list[int], maps: list[bytes]) -> None:
    """Give the entries of the queue units with these store times and maps."""
    entries = path / "consumequeue" / "t" / "0" / "00000000000000000000"
    units = path / "consumequeue_ext" / "t" / "0" / "00000000000000000000"
    queue, ext = bytearray(entries.read_bytes()), bytearray(units.stat().st_size)
    at = 0
    for number, (time_ms, bit_map) in enumerate(zip(times, maps, strict=True)):
        unit = struct.pack(">hqqh", 20 + len(bit_map), 0, time_ms, len(bit_map)) + bit_map
        ext[at : at + len(unit)] = unit
        struct.pack_into(">q", queue, 20 * number + 12, EXT_FIRST_ADDRESS + at)
        at += len(unit)
    entries.write_bytes(queue)
    units.write_bytes(ext)


def register(path: Path, bits: BloomBits, **changed: Any) -> None:
    """Write what the broker writes of the group, changed at will."""
    group = {
        "bloomFilterData": {"bitNum": bits.map_bits, "bitPos": [*bits.positions]},
        "bornTime": BORN_MS,
        "clientVersion": 1,
        "consumerGroup": "g",
        "deadTime": 0,
        "expression": SQL,
        "expressionType": "SQL92",
        "topic": "t",
        **changed,
    }
    table = {"filterDataByTopic": {"t": {"groupFilterData": {"g": group}, "topic": "t"}}}
    file = path / "config" / "consumerFilter.json"
    file.write_text(json.dumps(table))
    os.utime(file, ns=(WRITTEN_MS * 1_000_000,) * 2)
