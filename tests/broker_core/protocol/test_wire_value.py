"""Values of the wire behave as frozen dataclasses with named arguments do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping

import pytest

from rocketpy.broker_core.protocol.wire_value import WireValue


class Point(WireValue):
    """Two numbers and a name."""

    x: int
    y: int = 0
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Named(Point):
    """A point with one more."""

    name: str | None = None


def test_what_is_not_given_is_the_default() -> None:
    point = Named(x=1, name="a")
    assert (point.x, point.y, point.names, point.name) == (1, 0, {}, "a")
    assert Point(x=1).names is not Point(x=1).names


def test_it_is_compared_and_hashed_by_its_values() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1)
    plain = Named(x=1, names=(), name="b")  # type: ignore[arg-type]  # for hash()
    assert hash(plain) == hash(Named(x=1, names=(), name="b"))  # type: ignore[arg-type]


def test_it_says_what_it_is() -> None:
    assert repr(Named(x=1)) == "Named(x=1, y=0, names={}, name=None)"


def test_it_does_not_change() -> None:
    point = Point(x=1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x


def test_a_changed_copy_a_copy_and_a_pickle_are_values_too() -> None:
    point = Named(x=1, name="a")
    assert dataclasses.replace(point, x=2) == Named(x=2, name="a")
    assert [field.name for field in dataclasses.fields(point)] == ["x", "y", "names", "name"]
    assert copy.deepcopy(point) == point == pickle.loads(pickle.dumps(point))


@pytest.mark.parametrize(
    ("values", "said"),
    [({"x": 1, "z": 2}, "Point: nothing is called 'z'"), ({"y": 2}, "Point: x must be given")],
)
def test_what_is_wrong_is_said(values: dict[str, int], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Point(**values)  # type: ignore[arg-type]
