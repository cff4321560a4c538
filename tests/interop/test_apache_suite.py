"""Apache's own integration tests of 4.9.7 against clusters of two brokers.

A few classes of each subject always, all of them in the soak run. Apache's brokers 5.5.0 are not
among the clusters: their answer to a new group that asks for its offset in an empty queue makes
these tests fail at random, see cluster_addresses.py.
"""

from __future__ import annotations

import textwrap
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
TRIES_ALONE = 3
TEXT_CHARACTERS = 400  # of a failure: Apache's tests list all bodies that they miss


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
@pytest.mark.timeout(2700)
def test_all_classes_pass(target: Target) -> None:
    """Classes that fail beside others are run again alone: some race against their own clients."""
    together = [name for name in suite_classes() if name not in TIMED]
    results = list(run_suite(target, together, per_jvm=PER_JVM, at_once=JVMS_AT_ONCE))
    results += run_suite(target, sorted(TIMED))
    assert len([each for each in results if each.outcome in ("passed", "failed")]) == TESTS
    failed = sorted({each.class_name for each in results if each.outcome == "failed"})
    print(f"run again alone:\n{_failures(results)}")
    last_tries = {name: _tried_again(target, name) for name in failed}
    assert not [text for text in last_tries.values() if text]


def _tried_again(target: Target, class_name: str) -> str:
    """Return what fails in a class that is run alone, in the last of some tries; empty if none."""
    for _ in range(TRIES_ALONE):
        text = _failures(list(run_suite(target, [class_name])))
        if not text:
            break
    return text


def _failures(results: list[SuiteResult]) -> str:
    return "\n".join(
        f"{result.class_name}.{result.method}: {textwrap.shorten(result.text, TEXT_CHARACTERS)}"
        for result in results
        if result.outcome == "failed"
    )
