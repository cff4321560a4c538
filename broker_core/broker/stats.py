"""Counters of what a broker takes and gives; see also handlers/statistics.py."""

from __future__ import annotations

from collections import Counter


class Stats:
    """Counts, without looking at the time: the loop calls this for each request."""

    def __init__(self) -> None:
        self.sent_messages: Counter[str] = Counter()
        self.given_messages: Counter[tuple[str, str]] = Counter()
        self.sent_back_messages: Counter[tuple[str, str]] = Counter()

    def sent(self, topic: str, messages: int, size_bytes: int) -> None:
        """Count messages that were stored."""
        del size_bytes
        self.sent_messages[topic] += messages

    def given(self, group: str, topic: str, messages: int, size_bytes: int) -> None:
        """Count messages that a group got."""
        del size_bytes
        self.given_messages[group, topic] += messages

    def sent_back(self, group: str, topic: str) -> None:
        """Count a message that a group sent back."""
        self.sent_back_messages[group, topic] += 1
