"""Apache's broker serves a repaired store: it walks past padding and loses no sound message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.broker_core.storage.damaged_stores import (
    FILE_SIZE,
    make_store,
    overwrite,
    problems,
    records,
    rows,
)
from tests.interop.apache import ApacheBroker
from tests.interop.installation import missing_commands

from rocketpy.broker_core.property_names import LOST
from rocketpy.broker_core.storage.repair import repair_to

pytestmark = [
    pytest.mark.further,
    pytest.mark.interop,
    pytest.mark.skipif(
        bool(missing_commands()) and "CI" not in os.environ, reason="needs Maven and a JDK"
    ),
]

SETTINGS = {
    "mappedFileSizeCommitLog": FILE_SIZE,
    "mappedFileSizeConsumeQueue": 16 * 20,
    "maxHashSlotNum": 50,
    "maxIndexNum": 200,
}


@pytest.mark.parametrize("is_clean", [True, False])
def test_apache_serves_all_that_was_saved(tmp_path: Path, is_clean: bool) -> None:
    store = make_store(tmp_path / "store")
    places = [place for place, _ in records(store)]
    for number in (20, 21, 99, 280):
        overwrite(store, places[number] + 95, b"\xff\x00\xff")
    mended = repair_to(store, tmp_path / "mended").path
    saved = rows(mended)
    if not is_clean:
        (mended / "abort").write_text("1")
    with ApacheBroker(mended, settings=SETTINGS) as broker:
        pulled = broker.tool.pull(["logs", "orders"])
    served = {(m["topic"], m["queueId"], m["queueOffset"]): m for m in pulled}
    lost = {place for place, m in served.items() if LOST in m["properties"]}
    assert len(lost) == 4
    assert served.keys() - lost == saved.keys()
    assert {place: served[place]["body"] for place in saved} == {
        place: row["body"] for place, row in saved.items()
    }
    assert problems(mended) == []
