"""Nothing is stored that has not passed the gate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[3] / "broker_core"
DOORS = {"intake/gate.py", "codec/record.py"}  # the latter turns a Message into a draft


@pytest.mark.parametrize(
    "made", ["RecordDraft", "BatchRun", "BatchDraft", "EncodedBatch", "draft_of"]
)
def test_drafts_and_batches_are_made_at_the_gate_alone(made: str) -> None:
    makers = {
        path.relative_to(PACKAGES).as_posix()
        for path in PACKAGES.rglob("*.py")
        if re.search(rf"(?<!class )(?<!def )\b{made}\(", path.read_text())
    }
    assert makers
    assert makers <= DOORS
