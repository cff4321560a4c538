"""Sessions: who is logged in, by a random id that only the browser has.

I1  The server keeps a hash of the id, in memory: neither a look at it nor a restart lets one in.
I2  An id is made at login, never taken from a browser: who knew one before has nothing of it.
I3  A session ends half an hour after its last request, twelve hours after login, at logout, and
    when its account is not any more what it was.
I4  A user has ten sessions at most, the oldest make room; of each, little is kept.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rocketpy.console.accounts import Account

IDLE_S, LONGEST_S = 1800.0, 12 * 3600.0
_OF_A_USER = 10
_MOST_RESULTS = 20


@dataclass(slots=True, kw_only=True)
class BrowserSession:
    """One browser that is logged in. `results` are what its last changes came to, by form."""

    account: Account
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    began_s: float
    seen_s: float
    results: OrderedDict[str, Any] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)  # one change at a time

    def keep(self, form: str, result: Any) -> None:
        """Keep what a form came to."""
        self.results[form] = result
        while len(self.results) > _MOST_RESULTS:
            self.results.popitem(last=False)


class Sessions:
    """All sessions of a console. Any thread may ask."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s, self._lock = now_s, threading.Lock()
        self._by_hash: OrderedDict[str, BrowserSession] = OrderedDict()

    def open(self, account: Account) -> str:
        """Return the id of a new session."""
        token, now_s = secrets.token_urlsafe(32), self._now_s()
        with self._lock:
            for key in [key for key, each in self._by_hash.items() if self._is_over(each)]:
                del self._by_hash[key]
            of_user = [k for k, each in self._by_hash.items() if each.account.name == account.name]
            for key in of_user[: max(len(of_user) - _OF_A_USER + 1, 0)]:
                del self._by_hash[key]
            session = BrowserSession(account=account, began_s=now_s, seen_s=now_s)
            self._by_hash[_hash(token)] = session
        return token

    def find(
        self, token: str, account_of: Callable[[str], Account | None]
    ) -> BrowserSession | None:
        """Return the session of an id, if it is one that may go on; `account_of` is asked now."""
        key = _hash(token)
        with self._lock:
            session = self._by_hash.get(key)
        if session is None:
            return None
        if self._is_over(session) or account_of(session.account.name) != session.account:
            self.close(token)
            return None
        session.seen_s = self._now_s()
        return session

    def close(self, token: str) -> None:
        """End the session of an id, if there is one."""
        with self._lock:
            self._by_hash.pop(_hash(token), None)

    def _is_over(self, session: BrowserSession) -> bool:
        now_s = self._now_s()
        return now_s - session.seen_s > IDLE_S or now_s - session.began_s > LONGEST_S

    def __len__(self) -> int:
        return len(self._by_hash)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
