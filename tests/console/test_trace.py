"""The page of a message shows what its clients have traced, or says why there is nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from axe_core_python.selenium import Axe
from selenium.webdriver.common.by import By
from tests.console.browser import NARROW, chromium, resize
from tests.console.serving import ask, serving

import rocketpy
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import EVERY_MESSAGE, MessageLife
from rocketpy.console.opening import opened
from rocketpy.console.place import WatchedPlace

TRACED = {"traceTopicEnable": "true"}


def sent(broker: LocalBroker, *, trace: bool) -> None:
    """Send a message and consume it."""
    with rocketpy.connect(broker.namesrv_addr, group="billing", trace=trace) as mq:
        mq.send("orders", b"x", queue_id=0)
        with mq.consumer("readers", "orders", start="earliest") as consumer:
            while not consumer.poll(1):
                pass
    time.sleep(0.1)


def at_folder(broker: LocalBroker) -> WatchedPlace:
    return opened(broker.store_path)


def at_cluster(broker: LocalBroker) -> WatchedPlace:
    return opened(ClusterAddress.of_name_servers(broker.namesrv_addr))


places = pytest.mark.parametrize("open_place", [at_folder, at_cluster])
OpenPlace = Callable[[LocalBroker], WatchedPlace]


@pytest.fixture(scope="module")
def traced() -> Iterator[LocalBroker]:
    with local_broker(settings=TRACED, topics={"orders": 1}) as broker:
        sent(broker, trace=True)
        yield broker


def life(place: WatchedPlace, broker: LocalBroker) -> MessageLife:
    """Return the life of the first message."""
    try:
        queue = MessageQueue("orders", broker.brokers[0].name, 0)
        (message,) = place._reader.read(queue, 0, 1, EVERY_MESSAGE)
        return place.life(message)
    finally:
        place.close()


@places
def test_a_trace_is_part_of_a_life(traced: LocalBroker, open_place: OpenPlace) -> None:
    found = life(open_place(traced), traced)
    assert found.trace is not None
    assert [event.group for _, event in found.trace.sends] == ["billing"]
    assert [(each.group, each.is_success) for each in found.trace.deliveries] == [("readers", True)]
    assert (found.untraced, found.troubles) == ("", ())


@places
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "Tracing is off: there is no topic RMQ_SYS_TRACE_TOPIC"),
        ({**TRACED, "traceOn": "false"}, "Tracing is off at the broker that took it: traceOn"),
        (TRACED, "Its clients have written nothing of it"),
    ],
)
def test_without_a_trace_it_says_why(
    settings: dict[str, str], says: str, open_place: OpenPlace
) -> None:
    with local_broker(settings=settings, topics={"orders": 1}) as broker:
        sent(broker, trace=settings.get("traceOn") == "false")
        found = life(open_place(broker), broker)
    assert found.trace is None
    assert found.untraced.startswith(says)


def page(broker: LocalBroker) -> str:
    asked = {"topic": "orders", "broker": broker.brokers[0].name, "queue": 0, "offset": 0}
    return f"/0/message?{urlencode(asked)}"


def test_the_page_shows_who_sent_it_and_who_got_it(traced: LocalBroker) -> None:
    with serving(at_cluster(traced)) as server:
        answered = ask(server, page(traced))
    assert answered.status == 200
    told = answered.text.partition("What its clients have traced")[2]
    for word in ("sent to orders", "billing", "consumed", "readers", "done"):
        assert word in told


@pytest.mark.slow
def test_in_a_browser_the_trace_fits_a_telephone_and_has_no_fault(
    traced: LocalBroker, tmp_path: Path
) -> None:
    with serving(at_folder(traced)) as server, chromium(tmp_path) as browser:
        resize(browser, NARROW)
        browser.get(f"http://127.0.0.1:{server.port}{page(traced)}")
        table = browser.find_element(By.CSS_SELECTOR, '[aria-label="Trace"]')
        assert "sent to orders" in table.text
        fits = "return document.documentElement.scrollWidth <= innerWidth"
        assert browser.execute_script(fits)
        found = Axe().run(browser, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
