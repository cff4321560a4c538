"""The blocking client and processes: forks, Ctrl-C, the end of a program, what is imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.broker_core.client.sending.stored import bodies

from rocketpy.broker_core.local import LocalBroker, local_broker


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(topics={"t": 2}) as running:
        yield running


@pytest.fixture
def fresh(servers: LocalBroker) -> LocalBroker:
    servers.reset()
    return servers


def program(text: str, servers: LocalBroker) -> str:
    """Run a program, which has the name server's address as `address`; return what it prints."""
    command = [sys.executable, "-c", f"address = {servers.namesrv_addr!r}\n{text}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_forked_child_has_connections_of_its_own(fresh: LocalBroker) -> None:
    text = """
import os, rocketpy
mq = rocketpy.connect(address)
mq.send("t", b"parent 1")
child = os.fork()
if child == 0:
    mq.send("t", b"child")
    mq.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
mq.send("t", b"parent 2")
mq.close()
"""
    program(text, fresh)
    assert bodies(fresh, "t") == [b"child", b"parent 1", b"parent 2"]


def test_a_forked_child_administers_with_connections_of_its_own(fresh: LocalBroker) -> None:
    text = """
import os, threading, rocketpy
mq = rocketpy.connect(address)
admin = mq.admin
admin.topics.all()
ends = threading.Event()
def look():
    while not ends.is_set():
        admin.topics.all()
thread = threading.Thread(target=look)
thread.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        assert len(admin.topics.queues("t")) == 2
        mq.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ends.set()
thread.join()
print(len(admin.topics.queues("t")))
mq.close()
"""
    assert program(text, fresh) == "2\n"


def test_a_child_forked_while_others_send_does_not_hang(fresh: LocalBroker) -> None:
    text = """
import os, threading, rocketpy
mq = rocketpy.connect(address)
ends = threading.Event()
def send():
    while not ends.is_set():
        mq.send("t", b"parent")
threads = [threading.Thread(target=send) for _ in range(4)]
for each in threads: each.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        mq.send("t", b"child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ends.set()
for each in threads: each.join()
"""
    program(text, fresh)
    assert bodies(fresh, "t").count(b"child") == 5


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_send(fresh: LocalBroker, method: str) -> None:
    text = f"""
import multiprocessing, rocketpy, sys
def work(number):
    with rocketpy.connect(address) as mq:
        return mq.send("t", b"worker %d" % number).status
sys.modules["__main__"].__spec__ = None
if __name__ == "__main__":
    mq = rocketpy.connect(address)
    mq.send("t", b"parent")
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(set(pool.map(work, range(6))))
"""
    if method == "spawn":  # a child of `-c` has no module to import the function from
        text = text.replace(
            "pool.map(work, range(6))",
            "pool.map(exec, ['import rocketpy; mq = rocketpy.connect(%r); "
            'mq.send("t", b"worker"); mq.close()\' % address] * 6)',
        )
        assert program(text, fresh) == "{None}\n"
    else:
        assert program(text, fresh) == "{'SEND_OK'}\n"
    assert len(bodies(fresh, "t")) == 7


def test_ctrl_c_in_a_send_leaves_a_client_that_works(fresh: LocalBroker) -> None:
    text = """
import rocketpy
mq = rocketpy.connect(address, timeout_s=60)
mq.send("t", b"1")
print("ready", flush=True)
input()
try:
    mq.send("t", b"2")
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(mq.send("t", b"3").status, flush=True)
mq.close()
"""
    command = [sys.executable, "-c", f"address = {fresh.namesrv_addr!r}\n{text}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as it:
        assert it.stdout is not None
        assert it.stdin is not None
        assert it.stdout.readline() == "ready\n"
        with fresh.faults.delay("SEND_MESSAGE_V2", 60) as fault:
            it.stdin.write("go\n")
            it.stdin.flush()
            while not fault.happened:
                time.sleep(0.02)
            os.kill(it.pid, signal.SIGINT)
            out, problems = it.communicate(timeout=60)
    assert (it.returncode, out, problems) == (0, "interrupted\nSEND_OK\n", "")


def test_a_program_that_never_closes_ends_quietly(fresh: LocalBroker) -> None:
    text = """
import rocketpy
mq = rocketpy.connect(address)
print(mq.send("t", b"1").status)
mq.send_async("t", b"2")
"""
    assert program(text, fresh) == "SEND_OK\n"
    assert bodies(fresh, "t") == [b"1", b"2"]


def test_brokers_hear_of_the_end_of_a_program(fresh: LocalBroker) -> None:
    with fresh.faults.delay("UNREGISTER_CLIENT", 0) as told:
        program('import rocketpy\nmq = rocketpy.connect(address)\nmq.send("t", b"1")', fresh)
    assert told.happened == 1


def test_connecting_imports_neither_numpy_nor_pyarrow_and_starts_no_thread(
    fresh: LocalBroker,
) -> None:
    text = """
import sys, threading, rocketpy
mq = rocketpy.connect(address)
print(threading.active_count(), sorted({"numpy", "pyarrow", "pyspark"} & {*sys.modules}))
mq.send("t", b"x" * 10_000, tags="a", sharding_key="k")
with mq.transaction("t", b"x"): pass
with mq.consumer("g", "t", start="earliest") as consumer: consumer.poll(10)
mq.admin.offsets.lag("g"), mq.admin.messages.by_key("t", "k"), mq.admin.brokers.state("broker-a")
mq.close()
print(sorted({"numpy", "pyarrow", "pyspark"} & {*sys.modules}))
"""
    assert program(text, fresh) == "1 []\n[]\n"


def test_connecting_imports_nothing_that_only_servers_and_tools_need(fresh: LocalBroker) -> None:
    text = """
import sys, rocketpy
rocketpy.connect(address)
ours = "rocketpy.broker_core."
needless = {"tempfile", "shutil", "lz4", "zstandard", f"{ours}net.server", f"{ours}net.tls",
            f"{ours}client.cluster", f"{ours}protocol.requests.groups",
            f"{ours}protocol.requests.routes",
            f"{ours}protocol.bodies.connections", f"{ours}metadata.topics"}
print(sorted(needless & {*sys.modules}))
"""
    assert program(text, fresh) == "[]\n"
