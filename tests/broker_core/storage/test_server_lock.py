from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import StoreLockedError
from rocketpy.broker_core.storage.server_lock import ServerLock

HOLD = """
import sys, time
from pathlib import Path
from rocketpy.broker_core.storage.server_lock import ServerLock
lock = ServerLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_second_one_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    first = ServerLock(tmp_path)
    with pytest.raises(StoreLockedError, match=f"locked by process {os.getpid()}"):
        ServerLock(tmp_path)
    first.leave()
    ServerLock(tmp_path).leave()


def test_leaving_twice_is_fine(tmp_path: Path) -> None:
    lock = ServerLock(tmp_path)
    lock.leave()
    lock.leave()


@pytest.mark.crash
def test_one_who_is_killed_loses_it_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreLockedError, match=f"process {other.pid}"):
            ServerLock(tmp_path)
        other.kill()
    ServerLock(tmp_path).leave()
