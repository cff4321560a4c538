"""Plans and tasks import what they need: the rest would be most of their first second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_IMPORTED = """
import sys
import rocketpy.connector.source, rocketpy.connector.stream_reader, rocketpy.connector.batch_reader
from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.connector.cluster.keeping import kept_cluster
from rocketpy.connector.cluster_options import ClusterOptions

access = ClusterAccess(ClusterAddress.of_name_servers("127.0.0.1:1"))
with kept_cluster(ClusterOptions(access=access), None) as backend:
    backend._messages
print(*sys.modules)
"""


def test_a_task_does_without_the_store_members_and_groups() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED], capture_output=True, text=True, check=True
    )
    imported = {*done.stdout.split()}
    assert "rocketpy.connector.cluster.reading" in imported
    heavy = {
        "rocketpy.broker_core.storage.store",
        "rocketpy.broker_core.client.groups",
        "rocketpy.broker_core.client.topics",
        "rocketpy.connector.membership",
        "rocketpy.connector.cluster.queues",
        "rocketpy.connector.cluster.tables",
    }
    assert not heavy & imported


_OF_A_FOLDER = """
import sys
import rocketpy
from pyspark_rocketpy import DefaultSource

with rocketpy.open(sys.argv[1]) as store:
    store.create_topic("orders", 1)
source = DefaultSource({"path": sys.argv[1], "topic": "orders", "startingoffsets": "earliest"})
source.streamReader(source.schema()).initialOffset()
print(*sys.modules)
"""


def test_a_plan_of_a_folder_does_without_the_client_of_clusters(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OF_A_FOLDER, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {*done.stdout.split()}
    assert "rocketpy.connector.store.backend" in imported
    assert not {"ssl", "rocketpy.broker_core.client.cluster"} & imported
