"""A worker's fixed cost: what is done once per process, and between tasks."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, os, socket
from rocketpy.connector.worker import make_ready

server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
unix, other = socket.socketpair()
make_ready()
make_ready()
before = sorted(os.listdir("/proc/self/fd"))
assert gc.get_freeze_count() > 0
for _ in range(3):
    gc.collect()
assert sorted(os.listdir("/proc/self/fd")) == before, "descriptors are left open"
connection, _ = server.accept()
client.sendall(b"still open")
assert connection.recv(100) == b"still open"
unix.sendall(b"too")
assert other.recv(100) == b"too"
print(len(gc.callbacks))
"""


def test_a_worker_is_made_ready_once_and_its_connections_live_on() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "1\n"
