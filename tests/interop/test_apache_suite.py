"""Apache's own integration tests of 4.9.7 against clusters of two brokers.

A few classes of each subject always, all of them in the soak run. Apache's brokers 5.5.0 are not
among the clusters: their answer to a new group that asks for its offset in an empty queue makes
these tests fail at random, see cluster_addresses.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.apache_suite import BOUNDED, TIMED, SuiteResult, run_suite, suite_classes
from tests.interop.cluster_addresses import TARGETS, Target, has_only_loopback

# That the runner is right is shown by Apache's brokers 4.9.7. They listen on all addresses, hence:
#     unshare -rn sh -c 'ip link set lo up && .venv/bin/python -m pytest tests/interop/...'
# A further cluster is one more line.
CLUSTERS = [
    "ours",
    pytest.param(
        "apache-4",
        marks=[
            pytest.mark.soak,
            pytest.mark.skipif(not has_only_loopback(), reason="not in a network of its own"),
        ],
    ),
]

TESTS = 108  # besides one class that Apache has switched off
PER_JVM = 7
JVMS_AT_ONCE = 2


@pytest.fixture(scope="module", params=CLUSTERS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with TARGETS[request.param](brokers=2) as running:
        yield running


def test_suite_has_its_48_classes() -> None:
    classes = suite_classes()
    assert len(classes) == 48
    assert set(BOUNDED) <= set(classes)


def test_classes_of_each_subject_pass(target: Target) -> None:
    results = list(run_suite(target, BOUNDED, per_jvm=PER_JVM, at_once=JVMS_AT_ONCE))
    assert not _failures(results)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all_classes_pass(target: Target) -> None:
    together = [name for name in suite_classes() if name not in TIMED]
    results = list(run_suite(target, together, per_jvm=PER_JVM, at_once=JVMS_AT_ONCE))
    results += run_suite(target, sorted(TIMED))
    assert not _failures(results)
    assert len([result for result in results if result.outcome == "passed"]) == TESTS


def _failures(results: list[SuiteResult]) -> str:
    return "\n\n".join(
        f"{result.class_name}.{result.method}: {result.text}"
        for result in results
        if result.outcome == "failed"
    )
