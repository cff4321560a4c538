"""The header of a record as types of numpy, for many records at once; see layout.py."""

from __future__ import annotations

import numpy as np

from rocketpy.broker_core.codec.layout import (
    ANY_HOST_V6,
    FOOT_FIELDS,
    FOOT_STRUCT,
    HEAD_FIELDS,
    HEAD_STRUCT,
    HEADER_V4_SIZE,
    HOST_V4_SIZE,
    HOST_V6_SIZE,
    STORE_TIMESTAMP_TYPE,
    SysFlag,
)

HEAD = np.dtype(list(HEAD_FIELDS))
FOOT = np.dtype(list(FOOT_FIELDS))
STORE_TIMESTAMP = np.dtype(STORE_TIMESTAMP_TYPE)


def _header(born_host_size: int, store_host_size: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            *HEAD_FIELDS,
            ("born_host", f"V{born_host_size}"),
            ("store_timestamp", STORE_TIMESTAMP_TYPE),
            ("store_host", f"V{store_host_size}"),
            *FOOT_FIELDS,
        ]
    )


# The whole header of a record: with IPv4 hosts, and by which of its hosts are IPv6 (sysFlag &
# ANY_HOST_V6).
HEADER_V4 = _header(HOST_V4_SIZE, HOST_V4_SIZE)
HEADERS: dict[int, np.dtype[np.void]] = {
    0: HEADER_V4,
    int(SysFlag.BORN_HOST_V6): _header(HOST_V6_SIZE, HOST_V4_SIZE),
    int(SysFlag.STORE_HOST_V6): _header(HOST_V4_SIZE, HOST_V6_SIZE),
    ANY_HOST_V6: _header(HOST_V6_SIZE, HOST_V6_SIZE),
}

assert HEAD.itemsize == HEAD_STRUCT.size
assert FOOT.itemsize == FOOT_STRUCT.size
assert HEADER_V4.itemsize == HEADER_V4_SIZE
