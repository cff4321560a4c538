"""Check sums are zlib's, with and without the faster library."""

from __future__ import annotations

import subprocess
import sys
import zlib

import pytest

from rocketpy.broker_core.codec.crc32 import crc32


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 40, memoryview(b"0123456789")[3:]])
@pytest.mark.parametrize("start", [0, 1, 0xFFFFFFFF])
def test_it_is_the_crc_of_zlib(data: bytes | memoryview, start: int) -> None:
    assert crc32(data, start) == zlib.crc32(data, start)


def test_zlib_serves_where_zlib_ng_cannot_be_installed() -> None:
    program = (
        "import sys; sys.modules['zlib_ng'] = None\n"
        "import zlib, rocketpy.broker_core.codec.crc32 as here\n"
        "print(here.crc32 is zlib.crc32)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
