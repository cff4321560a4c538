"""A client of another language: Apache's for Go, with a name server and a broker of ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.interop import go_client
from tests.interop.wire_driver import ScenarioResult

import rocketpy
from rocketpy.broker_core.local import LocalBroker

# The first run downloads and compiles its client, which takes a minute of both cores.
pytestmark = [pytest.mark.further, pytest.mark.timeout(go_client.BUILD_TIMEOUT_S + 300)]

SETTINGS = {"transactionCheckInterval": "1000", "transactionTimeOut": "1000"}


@dataclass(frozen=True)
class Played:
    """How all scenarios went, and the broker, which still runs."""

    results: dict[str, ScenarioResult]
    broker: LocalBroker


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    if not go_client.is_installed():
        if os.environ.get("CI"):
            pytest.fail("the tests of the Go client need go, which CI must have installed")
        pytest.skip("the tests of the Go client need go")
    with rocketpy.local_broker(topics=go_client.SCENARIOS, settings=SETTINGS) as broker:
        yield Played(go_client.play(broker.namesrv_addr), broker)


@pytest.mark.parametrize("scenario", go_client.SCENARIOS)
def test_a_go_client_gets_what_it_wants(played: Played, scenario: str) -> None:
    result = played.results[scenario]
    assert result.passed, result.failure
    print(f"{scenario}: {result.seconds:.1f} s, saw {result.saw}")


def test_what_the_go_client_sent_is_read_by_path(played: Played) -> None:
    with played.broker.store() as store:
        columns = ["body", "tags", "keys"]
        found = store.read("go_sync_send", columns=columns).read_all().to_pylist()
        sent = [each for each in found if each["body"].startswith(b"single-")]
        assert len(sent) == 10
        for each in sent:
            number = int(each["body"].rpartition(b"-")[2])
            assert (each["tags"], each["keys"]) == ("paid", f"key-{number}")
        assert sorted(len(each["body"]) for each in found)[-1] == len("long ") * 2000
        assert list(store.verify()) == []
