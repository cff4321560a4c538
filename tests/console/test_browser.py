"""The console in a real browser: it can be used, in both themes, on a telephone, by all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

import pytest
from axe_core_python.selenium import Axe
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from tests.connector.cluster.places import FolderPlace
from tests.console.browser import NARROW, WIDE, chromium, resize, use_theme
from tests.console.listener import listener, queries
from tests.console.serving import serving
from tests.console.shop import SCRIPT, fill, shop, until, watched

from rocketpy.console.spark import SparkWatch

pytestmark = pytest.mark.slow

PAGES = {
    "overview": "",
    "topics": "0/topics?all=1",
    "topic": "0/topic?name=orders",
    "groups": "1/groups",
    "group": "1/group?name=billing",
    "messages": "0/messages?topic=orders",
    "message": "0/message?topic=orders&broker=rocketpy&queue=0&offset=9",
    "dead letters": "0/dead-letters?group=billing",
    "members": "0/group?name=sharers",
    "queries": "spark",
    "error": "0/topic?name=orderz",
}
FITS = "return document.documentElement.scrollWidth <= innerWidth"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]}


class Looking(NamedTuple):
    """A browser, and where the console is."""

    browser: Chrome
    address: str

    def open(self, path: str) -> None:
        self.browser.get(self.address + path)

    def find(self, selector: str) -> str:
        return self.browser.find_element(By.CSS_SELECTOR, selector).text

    def errors(self) -> list[str]:
        """Return what the browser complained of since it was asked last."""
        return [
            line["message"]
            for line in self.browser.get_log("browser")  # type: ignore[no-untyped-call]
            if " 404 " not in line["message"]  # which a page of errors is
        ]


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looking]:
    folder = tmp_path_factory.mktemp("shop")
    place = FolderPlace(folder / "store")
    with place.store:
        fill(place)
        place.store.join("sharers", "one", "orders")
        place.store.rebalance("sharers")
        place.store.follow("sharers", "one")
    with (
        shop("ours", folder) as cluster,
        chromium(folder / "profile") as browser,
        listener(queries(str(place.store.path))) as told,
        serving(watched(place), watched(cluster), spark=SparkWatch([told])) as server,
    ):
        yield Looking(browser, server.address)


@pytest.fixture(autouse=True)
def _as_new(looking: Looking) -> None:
    resize(looking.browser, WIDE)
    use_theme(looking.browser, "light")


def script(looking: Looking, text: str) -> object:
    return looking.browser.execute_script(text)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_has_no_errors_and_no_fault_for_who_cannot_see_it(
    page: str, looking: Looking
) -> None:
    looking.open(PAGES[page])
    assert script(looking, FITS)
    resize(looking.browser, NARROW)
    assert script(looking, FITS)
    assert faults(looking, RULES) == []
    use_theme(looking.browser, "dark")
    assert faults(looking, {"runOnly": ["color-contrast"]}) == []
    assert looking.errors() == []


def faults(looking: Looking, options: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return what axe finds wrong with a page: the rule, and the first place."""
    found = Axe().run(looking.browser, options=dict(options))
    assert found["passes"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]]


def test_a_script_in_a_message_is_text_and_does_not_run(looking: Looking) -> None:
    paths = [
        PAGES["message"],
        "0/messages?topic=orders&tag=nasty",
        f"1/messages?by=key&topic=orders&value={quote(SCRIPT)}",
        f"0/dead-letters?group=billing&cause={quote(SCRIPT)}",
    ]
    for path in paths:
        looking.open(path)
        assert SCRIPT in looking.find("main")
        assert "rocketpy console" in looking.browser.title
    looking.open(PAGES["message"])
    script(looking, "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=a()>')")
    until(lambda: any("Content Security Policy" in each for each in looking.errors()))


def test_queries_of_spark_lead_to_their_groups(looking: Looking) -> None:
    def is_told() -> bool:
        looking.open("spark")
        return "billing-1" in looking.find("main")

    until(is_told)
    looking.browser.find_element(By.LINK_TEXT, "billing").click()
    until(lambda: "0/group?name=billing" in looking.browser.current_url)
    assert looking.find("h1").endswith("billing")


def test_the_theme_changes_and_stays(looking: Looking) -> None:
    def scheme() -> object:
        return script(looking, "return getComputedStyle(document.documentElement).colorScheme")

    looking.open("0/topics")
    assert scheme() == "light dark"
    looking.browser.find_element(By.ID, "theme").click()
    assert scheme() == "dark"
    looking.open("0/groups")
    assert scheme() == "dark"
    looking.browser.find_element(By.ID, "theme").click()
    assert scheme() == "light"
    script(looking, "localStorage.clear()")


def test_by_keyboard_alone_a_topic_is_searched_and_its_messages_are_read(looking: Looking) -> None:
    browser = looking.browser

    def press(*keys: str) -> None:
        browser.switch_to.active_element.send_keys(*keys)

    looking.open("0/topics")
    press("/")
    press("ord", Keys.ENTER)
    until(lambda: "q=ord" in browser.current_url)
    link = browser.find_element(By.LINK_TEXT, "orders")
    while browser.switch_to.active_element != link:
        press(Keys.TAB)
    press(Keys.ENTER)
    until(lambda: "topic?name=orders" in browser.current_url)
    assert looking.find("h1").endswith("orders")
    link = browser.find_element(By.LINK_TEXT, "Its newest messages")
    while browser.switch_to.active_element != link:
        press(Keys.TAB)
    press(Keys.ENTER)
    until(lambda: "messages?topic=orders" in browser.current_url)
    assert len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) == 19


def test_messages_are_looked_for_by_the_form(looking: Looking) -> None:
    browser = looking.browser
    looking.open("1/messages?by=key")
    browser.find_element(By.NAME, "topic").send_keys("orders")
    browser.find_element(By.NAME, "value").send_keys("o-3", Keys.ENTER)
    until(lambda: "value=o-3" in browser.current_url)
    browser.find_element(By.CSS_SELECTOR, "tbody a").click()
    until(lambda: "/message?" in browser.current_url)
    assert '"order": 3' in looking.find("pre")
    browser.find_element(By.LINK_TEXT, "hex").click()
    until(lambda: "as=hex" in browser.current_url)
    assert looking.find("pre").startswith("000000  7b 22 6f 72")


def test_an_overview_that_is_left_open_looks_again(looking: Looking) -> None:
    looking.open("")
    script(looking, "document.querySelector('main h1').textContent = 'old'")
    script(looking, "looked = 0")
    # Asked in one step: the heading may be replaced between finding and reading it.
    heading = "return document.querySelector('main h1').textContent"
    until(lambda: script(looking, heading) == "Overview")
