"""What leaves in one turn: small parts as one piece, large ones as they are, all in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rocketpy.broker_core.net.connection import Connection


class Transport(asyncio.Transport):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[list[bytes]] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name.endswith("name") else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.pieces.append([bytes(data)])

    def writelines(self, list_of_data: Any) -> None:
        self.pieces.append([bytes(each) for each in list_of_data])


@pytest.mark.parametrize(
    ("size", "count", "pieces"),
    [
        pytest.param(300, 4096, 1, id="many messages of a pull"),
        pytest.param(10_000, 3, 1, id="little in all"),
        pytest.param(100_000, 3, 3, id="large ones"),
    ],
)
def test_small_parts_leave_as_one_piece(size: int, count: int, pieces: int) -> None:
    parts = [bytes([number % 256]) * size for number in range(count)]

    async def written() -> list[list[bytes]]:
        connection, transport = Connection(), Transport()
        connection.connection_made(transport)
        connection.write_parts(*(memoryview(part) for part in parts))
        await asyncio.sleep(0)
        return transport.pieces

    (given,) = asyncio.run(written())
    assert len(given) == pieces
    assert b"".join(given) == b"".join(parts)
