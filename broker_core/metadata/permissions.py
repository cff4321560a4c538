"""What may be done with a topic: the bits of its `perm`."""

from __future__ import annotations

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1  # new topics may be made after this one
