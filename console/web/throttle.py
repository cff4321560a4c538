"""How often a password may be tried: wrong ones make the next try wait, longer each time.

T1  Waits are those of one user from one address, and of one address: others come in meanwhile. A
    right password ends the first kind.
T2  A wait is a quarter of an hour at most, and what nobody tried for that long is forgotten.
T3  What is kept is bounded: of too many, those that were tried longest ago are forgotten.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_S = 900.0
_MOST_KEPT = 10_000
_FREE_OF_USER, _FREE_OF_ADDRESS = 5, 50  # tries without a wait

_Key = tuple[str, ...]


@dataclass(slots=True)
class _Tries:
    wrong: int = 0
    last_s: float = 0.0
    until_s: float = 0.0


class Throttle:
    """Remembers wrong passwords. Any thread may ask."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s, self._lock = now_s, threading.Lock()
        self._kept: OrderedDict[_Key, _Tries] = OrderedDict()

    def wait_s(self, user: str, address: str) -> float:
        """Return how long a user has to wait at an address before the next try; 0 if not at all."""
        now_s = self._now_s()
        with self._lock:
            found = [self._kept.get(key) for key, _ in _keys(user, address)]
        return max([0.0, *(each.until_s - now_s for each in found if each is not None)])

    def wrong(self, user: str, address: str) -> None:
        """Note a wrong password."""
        now_s = self._now_s()
        with self._lock:
            for key, free in _keys(user, address):
                tries = self._kept.pop(key, None)
                if tries is None or now_s - tries.last_s > LONGEST_S:
                    tries = _Tries()
                tries.wrong += 1
                tries.last_s = now_s
                over = min(tries.wrong - free, 10)  # 2 ** 10 s are more than the longest
                tries.until_s = now_s + min(2.0**over, LONGEST_S) if over >= 0 else 0.0
                self._kept[key] = tries
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def right(self, user: str, address: str) -> None:
        """Note a right password."""
        ((of_user, _), _) = _keys(user, address)
        with self._lock:
            self._kept.pop(of_user, None)

    def __len__(self) -> int:
        return len(self._kept)


def _keys(user: str, address: str) -> tuple[tuple[_Key, int], tuple[_Key, int]]:
    network = _network(address)
    return ((user[:64], network), _FREE_OF_USER), ((network,), _FREE_OF_ADDRESS)


def _network(address: str) -> str:
    """Return an address; of IPv6 the network, of which a machine has all addresses."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if found.version == 6:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return address
