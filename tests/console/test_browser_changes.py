"""Changes in a real browser, on a folder and on our broker: by the forms, and by all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import Select
from tests.connector.cluster.places import FolderPlace, Place
from tests.console.browser import NARROW, WIDE, chromium, resize, use_theme
from tests.console.serving import serving
from tests.console.shop import fill, shop, until, watched
from tests.console.test_browser import FITS, RULES, Looking, faults, script
from tests.console.visiting import PASSWORD, login

pytestmark = pytest.mark.slow

PLACES = {"folder": 0, "our broker": 1}
PAGES = {
    "login": "login?ended=1",
    "new topic": "0/change/topic-create",
    "change topic": "1/change/topic-change?name=orders",
    "delete topic": "1/change/topic-delete?name=orders",
    "topic": "0/topic?name=orders",
    "send": "0/change/send?topic=orders",
    "dead letters": "1/dead-letters?group=billing",
    "replay": "1/change/replay?group=billing&all=1",
    "reset": "1/change/reset?group=billing&topic=orders&to=latest",
}


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    folder = tmp_path_factory.mktemp("shop")
    place = FolderPlace(folder / "store")
    with shop("ours", folder) as cluster, place.store:
        fill(place)
        yield place, cluster


@pytest.fixture(scope="module")
def looking(
    shops: tuple[Place, Place], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Looking]:
    folder = tmp_path_factory.mktemp("users")
    with (
        chromium(folder / "profile") as browser,
        serving(
            *(watched(each, folder / "trails") for each in shops), login=login(folder)
        ) as server,
    ):
        found = Looking(browser, server.address)
        found.open("0/topics")
        browser.find_element(By.NAME, "user").send_keys("anna")
        browser.find_element(By.NAME, "password").send_keys(PASSWORD, Keys.ENTER)
        until(lambda: browser.current_url.endswith("/0/topics"))
        yield found


@pytest.fixture(autouse=True)
def _as_new(looking: Looking) -> None:
    resize(looking.browser, WIDE)
    use_theme(looking.browser, "light")


def give(looking: Looking, name: str, value: str) -> None:
    field = looking.browser.find_element(By.NAME, name)
    if field.tag_name == "select":
        Select(field).select_by_value(value)
    else:
        field.clear()
        field.send_keys(value)


def clicked(looking: Looking, path: str) -> bool:
    """Click on what a path leads to; false if the page replaced it by itself just then."""
    try:
        looking.browser.find_element(By.XPATH, path).click()
    except StaleElementReferenceException:
        return False
    return True


def press(looking: Looking, text: str) -> None:
    is_gone = staleness_of(looking.browser.find_element(By.TAG_NAME, "html"))
    path = f"//main//*[(self::a or self::button) and normalize-space()='{text}']"
    until(lambda: clicked(looking, path))
    until(lambda: is_gone(looking.browser))
    until(lambda: script(looking, "return document.readyState") == "complete")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_changes_fits_and_has_no_fault_for_who_cannot_see_it(
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


@pytest.mark.parametrize("place", PLACES)
def test_a_topic_is_made_changed_and_deleted_by_the_forms(place: str, looking: Looking) -> None:
    number = PLACES[place]
    looking.open(f"{number}/topics")
    press(looking, "New topic")
    give(looking, "name", "paid")
    give(looking, "queues", "3")
    press(looking, "Make it")
    assert "Done." in looking.find("main")
    looking.browser.refresh()  # asks for nothing, and orders nothing
    assert "Done." in looking.find("main")
    press(looking, "Look at it")
    press(looking, "Change it")
    give(looking, "write_queues", "5")
    give(looking, "perm", "4")
    press(looking, "Change it")
    assert "Done." in looking.find("main")
    press(looking, "Look at it")
    assert "5 to write; may: read" in looking.find(".facts")
    press(looking, "Delete it")
    give(looking, "typed", "paid")
    press(looking, "Delete it with its messages")
    assert "Done." in looking.find("main")
    press(looking, "Look at it")
    assert "paid" not in looking.find("main")
    assert looking.errors() == []


@pytest.mark.parametrize("place", PLACES)
def test_a_message_is_sent_by_the_form_and_read(place: str, looking: Looking) -> None:
    looking.open(f"{PLACES[place]}/messages?topic=orders")
    press(looking, "Send a message")
    text = "<b>one</b>\n\n  two"
    fields = {"body": text, "tag": "paid", "keys": "k-1 k-2", "properties": "region=eu\na=b=c"}
    for name, value in fields.items():
        give(looking, name, value)
    press(looking, "Send it")
    assert "Done." in looking.find("main")
    press(looking, "Look at it")
    assert looking.find("pre") == text
    shown = looking.find("main")
    for each in ("k-1", "k-2", "region", "b=c", "paid"):
        assert each in shown
    assert looking.errors() == []


@pytest.mark.parametrize("place", PLACES)
def test_a_group_is_reset_as_it_was_shown(place: str, looking: Looking) -> None:
    looking.open(f"{PLACES[place]}/group?name=billing")
    press(looking, "Have it read on elsewhere")
    give(looking, "topic", "orders")
    give(looking, "to", "earliest")
    press(looking, "Show what that does")
    again = [each.text for each in looking.browser.find_elements(By.CSS_SELECTOR, ".numbers dd")]
    assert again[0] == "0"
    assert again[2] == "3"
    press(looking, "Reset it so")
    assert "reads on at 0; before: 3" in looking.find("main")
    give_back = f"{PLACES[place]}/change/reset?group=billing&topic=orders&to=%2B3"
    looking.open(give_back)
    press(looking, "Reset it so")
    assert "reads on at 3; before: 0" in looking.find("main")
    assert looking.errors() == []


@pytest.mark.parametrize("place", PLACES)
def test_dead_letters_are_chosen_replayed_and_told(place: str, looking: Looking) -> None:
    browser = looking.browser
    looking.open(f"{PLACES[place]}/dead-letters?group=billing")
    boxes = browser.find_elements(By.CSS_SELECTOR, "main input[type=checkbox]")
    for each in boxes[:2]:
        each.send_keys(Keys.SPACE)
    press(looking, "Replay the chosen …")
    assert "2" in looking.find(".numbers dd")
    press(looking, "Replay them so")
    assert "Done." in looking.find("main")
    assert len(browser.find_elements(By.CSS_SELECTOR, "tbody .verdict.ok")) == 2
    looking.open(f"{PLACES[place]}/change/replay?group=billing&all=1")
    assert len(browser.find_elements(By.CSS_SELECTOR, "tbody .verdict.warning")) == 2
    give(looking, "again", "again")
    press(looking, "Replay them so")
    assert len(browser.find_elements(By.CSS_SELECTOR, "tbody .verdict.ok")) == len(boxes)
    assert looking.errors() == []


def test_by_keyboard_alone_a_topic_is_made(looking: Looking) -> None:
    browser = looking.browser

    def type_in(*keys: str) -> None:
        browser.switch_to.active_element.send_keys(*keys)

    looking.open("0/topics")
    link = browser.find_element(By.LINK_TEXT, "New topic")
    while browser.switch_to.active_element != link:
        type_in(Keys.TAB)
    type_in(Keys.ENTER)
    until(lambda: "topic-create" in browser.current_url)
    until(lambda: browser.switch_to.active_element.get_attribute("name") == "name")
    type_in("typed", Keys.TAB, "7", Keys.ENTER)
    until(lambda: "/done" in browser.current_url)
    assert "Done." in looking.find("main")
    looking.open("0/topic?name=typed")
    assert looking.find(".facts").startswith("7 queues")
