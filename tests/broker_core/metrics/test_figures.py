from __future__ import annotations

import pytest

from rocketpy.broker_core.metrics.figures import number_of, rate_of, size_of, times_of
from rocketpy.broker_core.metrics.versions import mode_name, version_name


@pytest.mark.parametrize(
    ("text", "place", "size"),
    [
        ("0 B", 0, 0),
        ("225 B", 0, 225),
        ("1.5 KiB", 0, 1536),
        ("Total : 252.0 GiB, Free : 99.5 GiB.", 0, 252 * 2**30),
        ("Total : 252.0 GiB, Free : 99.5 GiB.", 1, 99.5 * 2**30),
        ("12 Bytes", 0, 12),
        ("Total : 252.0 GiB.", 1, None),
        ("", 0, None),
        (None, 0, None),
    ],
)
def test_a_size_is_read_as_brokers_print_it(
    text: str | None, place: int, size: float | None
) -> None:
    assert size_of(text, place) == size


def test_a_number_that_is_not_told_is_none() -> None:
    figures = {"a": "7", "b": "-1", "c": "null", "tps": "1.5 2.5 3.5"}
    assert [number_of(figures, name) for name in "abcd"] == [7.0, None, None, None]
    assert [rate_of(figures, "tps", place) for place in (0, 2, 3)] == [1.5, 3.5, None]


def test_times_of_puts_are_read_by_their_span() -> None:
    assert times_of("[<=0ms]:12 [0~10ms]:3 [10s~]:0 ") == {"<=0ms": 12, "0~10ms": 3, "10s~": 0}
    assert times_of("null") == {}


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (513, "v5_5_0"),
        (512, "v5_5_0_snapshot"),
        (407, "v4_9_7"),
        (213, "v4_0_0"),
        (211, "v211"),
        (9999, "v9999"),
    ],
)
def test_a_version_has_apaches_name(number: int, name: str) -> None:
    assert version_name(number) == name


def test_a_mode_has_the_name_that_5x_labels_it_with() -> None:
    assert [mode_name(each) for each in ("CONSUME_PASSIVELY", "CONSUME_ACTIVELY", None)] == [
        *("push", "pull", "")
    ]
