"""`/metrics` of the console: what its watches saw last, by the names of `rocketpy metrics`.

Nothing is asked of a place for it, however often it is scraped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rocketpy.broker_core.metrics.facts import Facts, ScrapeOptions
from rocketpy.broker_core.metrics.serving import scrape_options
from rocketpy.broker_core.metrics.text import text_of_places
from rocketpy.console.place import WatchedPlace


def metrics_text(places: Sequence[WatchedPlace], query: str) -> bytes:
    """Return all families of all places that were seen; `query` is that of the address."""
    looks: dict[str, Facts] = {}
    ages_s: dict[str, float] = {}
    for place in places:
        look = place.watch.last
        if look is not None:
            looks[place.title] = look.facts
            ages_s[place.title] = max(time.time() - look.at_ms / 1000, 0.0)
    wanted = scrape_options(query, ScrapeOptions())
    return text_of_places(looks, ages_s, by_queue=wanted.by_queue)
