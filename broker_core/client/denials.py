"""What a protected broker says when it does not let somebody in, or not as far as asked.

Brokers of 4.x answer with the code of any failure (1) and the words of their AclException, brokers
of 5.x with NO_PERMISSION (16) and a sentence. Both name what is missing in their words only, so
these are read: they were taken from 4.9.7 and 5.5.0, and others stay as they are.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from rocketpy.broker_core.protocol.codes import ResponseCode

# Patterns of this module are texts: who is never refused does not wait until they are compiled.
_ACL = r"(?s:(?:[\w.]+\.)?AclException: *(?P<said>.*?)(?:, *[\w.$]+\([\w.]+:\d+\))?)"


class Denied(Enum):
    """What was refused, and what helps."""

    NOBODY = (
        "it wants to know who asks, and no credentials were given",
        "give some: connect(..., credentials=…), ROCKETPY_ACCESS_KEY and ROCKETPY_SECRET_KEY, or "
        "--credentials FILE",
    )
    UNKNOWN = (
        "it does not know the access key",
        "see whether it is spelt so there, and whether this is the right cluster",
    )
    SECRET = (
        "the secret key is not the one of this access key",
        "give the secret that belongs to it; it may have been changed",
    )
    DISABLED = ("this user is disabled there", "have the user enabled")
    RESOURCE = (
        "no permission for",
        "have a rule added for it: Pub to send, Sub (of 5.x: Sub and Get) to read",
    )
    ADMIN = (
        "this is for administrators",
        "ask with an account that has admin: true, or have them do it",
    )
    OTHER = ("its rules do not allow it", "its words say why")

    @property
    def is_about_identity(self) -> bool:
        """Whether it is who asks that is refused, and not what is asked."""
        return self in _ABOUT_IDENTITY


_ABOUT_IDENTITY = (Denied.NOBODY, Denied.UNKNOWN, Denied.SECRET, Denied.DISABLED)


class Denial(NamedTuple):
    """One refusal: of which kind, for whom, and what it is about, as far as the broker says it."""

    kind: Denied
    access_key: str | None = None
    resource: str | None = None  # such as: topic 'orders'

    def __str__(self) -> str:
        reason, _ = self.kind.value
        of = f" {self.resource}" if self.resource else ""
        key = f" (access key {self.access_key!r})" if self.access_key else ""
        return f"{reason}{of}{key}"


_Words = tuple[tuple[Denied, str], ...]
_WORDS_4: _Words = (
    (Denied.NOBODY, r"No accessKey is configured"),
    (Denied.UNKNOWN, r"No acl config for (?P<key>\S+)"),
    (Denied.SECRET, r"Check signature failed for accessKey=(?P<key>\S+)"),
    (Denied.RESOURCE, r"No default permission for (?P<kind>\w+):(?P<name>\S+)"),
    (Denied.ADMIN, r"Need admin permission for .*accessKey=(?P<key>\S+) is not"),
)
_WORDS_5: _Words = (
    (Denied.NOBODY, r"username cannot be null\.?|authentication field is null\.?"),
    (Denied.UNKNOWN, r"User:(?P<key>\S+) is not found\.?"),
    (Denied.SECRET, r"check signature failed\.?"),
    (Denied.DISABLED, r"User:(?P<key>\S+) is disabled\.?"),
    (
        Denied.RESOURCE,
        r"User:(?P<key>\S+) has no permission to access (?P<kind>\w+):(?P<name>\S+) from .*",
    ),
)


def denial_of(code: int, remark: str) -> Denial | None:
    """Return what an answer refuses; None if it is about something else."""
    said, words = remark.strip(), _WORDS_5
    if code == ResponseCode.SYSTEM_ERROR:
        found = re.fullmatch(_ACL, said)
        if found is None:
            return None
        said, words = found["said"].strip(), _WORDS_4
    elif code != ResponseCode.NO_PERMISSION:
        return None
    for kind, pattern in words:
        if (match := re.fullmatch(pattern, said)) is not None:
            groups = match.groupdict()
            name = groups.get("name")
            resource = f"{groups['kind'].lower()} {name!r}" if name else None
            return Denial(kind, groups.get("key"), resource)
    return Denial(Denied.OTHER) if words is _WORDS_4 else None  # of 5.x the code says many things
