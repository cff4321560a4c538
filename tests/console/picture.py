"""Draws the picture of the console in docs/, from the store that `make demo` leaves.

    python -m tests.console.picture rocketpy-demo/store docs/console.png

A copy of the store is looked at while orders come in, a group falls behind, and some messages are
given up.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.console.browser import chromium, resize, use_theme
from tests.console.serving import serving

import rocketpy
from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace
from rocketpy.console.watch import Watch

SIZE = 960, 720
SECONDS, LOOKS_EVERY_S = 12, 0.25
CAUSES = ("no price", "no price", "unknown customer")


class Unchecked(FolderReader):
    """A store of which the doctor says nothing: it would tell of this machine's disk."""

    def check(self) -> Sequence[Finding]:
        return ()


def prepare(path: Path) -> None:
    """Have a group that has read all."""
    with rocketpy.open(path) as store:
        ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
        store.commit("shipping", "orders", ends)


def sell(path: Path) -> None:
    """Send orders for some seconds, by turns faster and slower, and read them a little later."""
    with rocketpy.open(path) as store:
        ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
        for cause in CAUSES:
            receipt = store.send("orders", '{"order": 0}', keys="order-0")
            store.send_back(receipt, group="shipping", delay_level=-1, cause=cause)
        for step in range(int(SECONDS / LOOKS_EVERY_S)):
            store.append("orders", [{"body": "{}"}] * (40 + 60 * (step // 8 % 2)))
            if step % 16 == 11:
                store.commit("shipping", "orders", {n: end for n, end in ends.items()})
                ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
            time.sleep(LOOKS_EVERY_S)


def draw(store: Path, picture: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        path = Path("rocketpy-demo/store")
        shutil.copytree(store, path)
        prepare(path)
        reader = Unchecked(path)
        place = WatchedPlace(reader)
        place.watch = Watch(reader, every_s=LOOKS_EVERY_S, rest=0)
        with serving(place) as server, chromium(Path(folder) / "profile") as browser:
            selling = threading.Thread(target=sell, args=(path,))
            selling.start()
            selling.join()
            resize(browser, SIZE)
            use_theme(browser, "light")
            browser.get(server.address)
            browser.save_screenshot(str(picture))


if __name__ == "__main__":
    draw(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
