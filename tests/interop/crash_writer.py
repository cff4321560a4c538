"""A process that writes to a store until it is killed.

`python -m tests.interop.crash_writer STORE` sends under sync flush and prints one JSON line per
acknowledged message, right after its receipt.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.interop import workload
from tests.interop.our_side import create_topics, send

import rocketpy

MORE_THAN_ANYONE_WAITS_FOR = 1_000_000


def main(path: Path) -> None:
    with rocketpy.open(path, flush="sync", config=workload.CONFIG) as store:
        create_topics(store)
        for message in workload.messages(MORE_THAN_ANYONE_WAITS_FOR, name="crash"):
            print(json.dumps(asdict(send(store, message))), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
