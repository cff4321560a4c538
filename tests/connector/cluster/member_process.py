"""A member in a process of its own: prints each message that it read, until it is killed."""

from __future__ import annotations

import sys
import time

from tests.connector.cluster.places import ClusterPlace
from tests.connector.cluster.sharing import MemberQuery


def main(namesrv_addr: str, topic: str, member: str, lease: str) -> None:
    query = MemberQuery(ClusterPlace(namesrv_addr), topic, member, memberLease=lease)
    while True:
        for _, _, body in query.batch():
            print(body, flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
