"""Brokers of 4.9.7 listen on all addresses: their tests run in a network that nobody else reaches.

Elsewhere these tests are not there; see has_only_loopback().
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interop.installation import VERSION_4, install_4

ROOT = Path(__file__).parents[2]
SOURCE = (
    "tests/connector/cluster/test_reading_places.py",
    "tests/connector/cluster/test_member_places.py",
    "tests/interop/test_access.py",
    "tests/interop/test_metrics.py",
)
CLIENTS = ("tests/interop/test_python_client.py", "tests/interop/test_python_consumers.py")
OTHERS = (
    "tests/connector/cluster/test_cluster_sink_apache.py",
    "tests/interop/test_slaves_of_4.py",
)


@pytest.mark.further
@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "least_passed"),
    [(SOURCE, 40), pytest.param((*CLIENTS, *OTHERS), 20, marks=pytest.mark.soak)],
)
def test_what_holds_of_5_holds_of_4(files: tuple[str, ...], least_passed: int) -> None:
    enter = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if not all(map(shutil.which, ("unshare", "ip"))) or subprocess.run([*enter, "true"]).returncode:
        assert not os.environ.get("CI"), "CI must be able to make network namespaces"
        pytest.skip("this machine makes no network namespaces (unshare -rn, ip)")
    install_4()  # while there is a network
    words = ("-q", "-p", "no:cacheprovider", "-k", VERSION_4, "-m", "not soak")
    command = [*enter, sys.executable, "-m", "pytest", *words, *files]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    passed = int(ran.stdout.split(" passed")[0].split()[-1])
    assert passed >= least_passed, ran.stdout[-500:]
