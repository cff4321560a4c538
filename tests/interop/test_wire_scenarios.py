"""Real Java clients of two versions play every scenario against a cluster.

One run per client version and cluster; the tests look at the results one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
from tests.interop.cluster_addresses import TARGETS, Target
from tests.interop.installation import VERSION
from tests.interop.wire_driver import (
    CLIENT_VERSIONS,
    ScenarioResult,
    listed_scenarios,
    play,
    scenarios_of,
)

Results = dict[str, ScenarioResult]

# That the scenarios are right is shown by Apache's broker; a further cluster is one more line.
CLUSTERS = ["ours", pytest.param("apache", marks=pytest.mark.soak)]


@pytest.fixture(scope="module", params=CLUSTERS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with TARGETS[request.param]() as running:
        yield running


@pytest.fixture(scope="module")
def played(target: Target) -> Callable[[str], Results]:
    """All scenarios of a client's version, played when the first of them is asked for."""

    @cache
    def play_all(version: str) -> Results:
        return play(target, scenarios_of(version), client_version=version)

    return play_all


@pytest.mark.parametrize(
    ("client_version", "scenario"),
    [
        pytest.param(version, scenario, marks=[] if version == VERSION else [pytest.mark.further])
        for version in CLIENT_VERSIONS
        for scenario in scenarios_of(version)
    ],
)
def test_java_client_plays_scenario(
    played: Callable[[str], Results], client_version: str, scenario: str
) -> None:
    result = played(client_version)[scenario]
    assert result.passed, result.failure


@pytest.mark.parametrize("client_version", CLIENT_VERSIONS)
def test_scenarios_are_those_of_the_driver(client_version: str) -> None:
    assert listed_scenarios(client_version) == scenarios_of(client_version)
