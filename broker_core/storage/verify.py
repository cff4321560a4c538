"""Temporary."""
from typing import NamedTuple
class Problem(NamedTuple):
    where: str
def verify(parts): return []
