"""The property `__CRC32#` that guards our records, and Apache's handling of it.

Apache writes it with `enabledAppendPropCRC` and refuses records without it on recovery with
`forceVerifyPropCRC`; a broker with neither serves such records like any other (that is what
test_our_store_in_apache.py runs).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop import workload
from tests.interop.apache import ApacheBroker
from tests.interop.our_side import CHECKSUM_PROPERTY, in_order, read_all, write_until_killed

import rocketpy

STRICT = {**workload.SETTINGS, "enabledAppendPropCRC": True, "forceVerifyPropCRC": True}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checksum") / "store"
    write_until_killed(path, at_least=300)
    return path


def test_a_broker_that_insists_on_check_sums_recovers_our_records_and_we_its(store: Path) -> None:
    with rocketpy.open(store, read_only=True, config=workload.CONFIG) as ours:
        written = read_all(ours, workload.TOPICS)
    apache = ApacheBroker(store, settings=STRICT)
    apache.start()
    try:
        apache.tool.send("orders", [{"body": b"from java", "keys": "java-key"}] * 50)
        pulled = apache.tool.pull(workload.TOPICS)
    finally:
        apache.kill()
    assert all(CHECKSUM_PROPERTY in message["properties"] for message in pulled)
    assert len(pulled) >= len(written) + 50
    with rocketpy.open(store, config=workload.CONFIG) as ours:
        assert list(ours.verify()) == []
        assert read_all(ours, workload.TOPICS) == in_order(pulled)
