"""What the transaction bits of a sysFlag mean for queues and index: one rule for all who ask.

As in Apache's broker, a message of an open or undone transaction has no queue entry. It takes no
number of its queue either: its record says queue offset 0, and the next message goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.codec.layout import TRANSACTION_MASK, SysFlag

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_WITH_ENTRY = (0, int(SysFlag.TRANSACTION_COMMIT))


def is_queued(sys_flag: int) -> bool:
    """Whether a message has a number and an entry in its queue."""
    return sys_flag & TRANSACTION_MASK in _WITH_ENTRY


def queued(sys_flags: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return which messages have a number and an entry in their queue."""
    import numpy as np  # of those who ask for many: clients ask for one, and have no numpy

    return np.isin(sys_flags & TRANSACTION_MASK, _WITH_ENTRY)


def is_indexed(sys_flag: int) -> bool:
    """Whether a message is in the index: it is not if it belongs to an undone transaction."""
    return sys_flag & TRANSACTION_MASK != SysFlag.TRANSACTION_ROLLBACK


def indexed(sys_flags: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return which messages are in the index: not those of undone transactions."""
    import numpy as np

    return np.isin(sys_flags & TRANSACTION_MASK, SysFlag.TRANSACTION_ROLLBACK, invert=True)
