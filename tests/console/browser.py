"""Debian's Chromium without a screen, driven by selenium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

_QUIET = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # nothing is loaded from elsewhere
)
WIDE, NARROW = (1280, 900), (390, 844)


def missing() -> str:
    """Return what is lacking to run a browser."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return ", ".join(lacking)


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """Have a browser with a profile of its own; without one the test is skipped, in CI it fails."""
    if lacking := missing():
        assert not os.environ.get("CI"), f"tools/ensure_chromium.sh brings {lacking}"
        pytest.skip(f"there is no {lacking}: tools/ensure_chromium.sh brings it")
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in (*_QUIET, f"--user-data-dir={profile}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def resize(browser: Chrome, size: tuple[int, int]) -> None:
    """Have the page be this wide and high, as a telephone or a screen shows it."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def use_theme(browser: Chrome, theme: str) -> None:
    """Have the system say that it is dark, or light."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
