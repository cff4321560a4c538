"""Groups reset from the console: what was shown is done, or nothing is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.console.shop import READ, shop, until, watched
from tests.console.visiting import Visitor, hidden_fields, visiting

import rocketpy
from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.local import local_broker
from rocketpy.console.changes.cluster import ClusterChanger
from rocketpy.console.changes.outcomes import ChangedMeanwhileError
from rocketpy.console.changes.resets import PlannedMove, PlannedReset, require_same
from rocketpy.console.place import WatchedPlace

RESET = "/0/change/reset"


class There(NamedTuple):
    """A place in which a group is reset by an operator."""

    place: WatchedPlace
    otto: Visitor

    def read(self) -> dict[int, int]:
        found = self.place.group("billing").queues
        return {each.queue_id: each.committed for each in found if each.topic == "orders"}

    def form(self, to: str) -> dict[str, list[str]]:
        page = self.otto.get(f"{RESET}?group=billing&topic=orders&to={to}")
        assert page.status == 200, page.text
        return hidden_fields(page.text)


@contextmanager
def a_place(kind: str, folder: Path) -> Iterator[There]:
    with shop(kind, folder / "store") as made:
        place = watched(made)
        with visiting(folder, place) as visitors:
            yield There(place, visitors["otto"])


@pytest.fixture(params=["folder", "ours"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[There]:
    with a_place(str(request.param), tmp_path) as found:
        yield found


@pytest.fixture(scope="module", params=["folder", "ours"])
def untouched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[There]:
    """One for all tests that change nothing."""
    with a_place(str(request.param), tmp_path_factory.mktemp("shop")) as found:
        yield found


def test_what_is_skipped_and_read_again_is_shown_and_then_done(there: There) -> None:
    otto = there.otto
    page = otto.get(f"{RESET}?group=billing&topic=orders&to=latest").text
    assert "<dt>Skipped</dt><dd>16</dd>" in page
    assert "<dt>Read again</dt><dd>0</dd>" in page
    assert there.read() == {0: READ, 1: 0}  # a look changes nothing
    shown = otto.follow(otto.post(RESET, there.form("latest"))).text
    assert "reads on at 10; before: 3" in shown
    assert there.read() == {0: 10, 1: 9}
    again = otto.get(f"{RESET}?group=billing&topic=orders&to=2026-01-31T08:00:00Z").text
    assert "<dt>Read again</dt><dd>19</dd>" in again
    assert otto.post(RESET, there.form("2026-01-31T08:00:00Z")).status == 303
    assert there.read() == {0: 0, 1: 0}


def test_a_preview_that_holds_no_more_does_nothing(there: There) -> None:
    old, newer = there.form("latest"), there.form("%2B1")
    assert there.otto.post(RESET, newer).status == 303
    got = there.otto.post(RESET, old)
    assert (got.status, "nothing was changed: look again" in got.text) == (409, True)
    assert there.read() == {0: READ + 1, 1: 1}
    fresh = hidden_fields(got.text)  # the page shows what would be done now
    assert there.otto.post(RESET, fresh).status == 303
    assert there.read() == {0: 10, 1: 9}


def test_messages_that_came_since_the_preview_are_not_skipped(there: There) -> None:
    old = there.form("latest")
    got = there.otto.submit("/0/change/send", {"topic": "orders", "body": "new", "queue": "0"})
    assert got.status == 303
    assert there.otto.post(RESET, old).status == 303
    assert there.read() == {0: 10, 1: 9}
    assert there.place.topic("orders").queues[0].end == 11


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        ("", 400),
        ("[]", 400),
        ("nonsense", 400),
        (json.dumps([[["rocketpy", 0, 3, 10**9, 0, 10]], None]), 409),
        (json.dumps([[["rocketpy", "0", 3, 5, 0, 10]], None]), 400),
    ],
)
def test_a_preview_that_was_made_up_does_nothing(shown: str, status: int, untouched: There) -> None:
    fields = {**untouched.form("latest"), "shown": [shown]}
    assert untouched.otto.post(RESET, fields).status == status
    assert untouched.read() == {0: READ, 1: 0}


@pytest.mark.parametrize(("to", "says"), [("soon", "soon"), ("", "What would be done")])
def test_a_place_that_cannot_be_is_told(to: str, says: str, untouched: There) -> None:
    page = untouched.otto.get(f"{RESET}?group=billing&topic=orders&to={to}")
    assert (says in page.text) is bool(to)


def test_consumers_that_run_are_told_by_their_broker() -> None:
    with local_broker(topics={"orders": 1}) as servers:
        mq = rocketpy.connect(servers.namesrv_addr)
        got: list[bytes] = []
        listener = mq.listen("billing", "orders", lambda each: got.append(each.body))
        for number in range(5):
            mq.send("orders", b"%d" % number)
        until(lambda: len(got) == 5)
        access = ClusterAccess(ClusterAddress.of_name_servers(servers.namesrv_addr))
        changer = ClusterChanger(access)
        plan = changer.planned_reset("billing", "orders", "earliest")
        assert plan.members == 1
        assert all(each.is_done for each in changer.reset(plan))
        until(lambda: len(got) == 10)
        listener.close()
        mq.close()


def test_a_group_that_reads_on_meanwhile_may_and_one_that_went_elsewhere_may_not() -> None:
    shown = PlannedReset("g", "t", "earliest", (PlannedMove("b", 0, 5, 0, 0, 9),))
    for members, before, is_same in (
        (None, 5, True),
        (None, 6, False),
        (1, 6, True),
        (1, 4, False),
    ):
        move = PlannedMove("b", 0, before, 0, 0, 9)
        now = PlannedReset("g", "t", "earliest", (move,), members)
        if is_same:
            require_same(shown, now)
        else:
            with pytest.raises(ChangedMeanwhileError):
                require_same(shown, now)
    started = PlannedReset("g", "t", "earliest", shown.moves, 1, told_ms=1)
    with pytest.raises(ChangedMeanwhileError, match="have started"):
        require_same(shown, started)
