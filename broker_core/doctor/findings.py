"""What a check of the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. A warning may be lived with, a fault stops something."""

    check: str
    verdict: Verdict
    what: str
    remedy: str = ""
