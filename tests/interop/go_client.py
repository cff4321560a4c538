"""The Go client, played in named scenarios against a cluster: go/main.go.

The program is built once per state of its sources, into a folder beside that of Apache's jars; its
modules come from Go's own proxy, with the hashes of go.sum.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.wire_driver import ScenarioResult

SOURCES = Path(__file__).parent / "go"
CACHE = Path.home() / ".cache" / "rocketpy" / "go-client"
BUILD_TIMEOUT_S = 1200
RUN_TIMEOUT_S = 200.0
LOG_TAIL_CHARACTERS = 4000

SCENARIOS = (
    "go_sync_send",
    "go_push_consume",
    "go_tag_filter",
    "go_ordered",
    "go_delay",
    "go_retry",
    "go_transaction",
)


def is_installed() -> bool:
    """Return whether this machine has Go."""
    return shutil.which("go") is not None


@functools.cache
def built() -> Path:
    """Return the program, which is built if the cache has it not.

    Raises:
        RuntimeError: Go failed; the text ends with what it printed.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs would download and compile the same
        files = sorted(each for each in SOURCES.iterdir() if each.suffix in (".go", ".mod", ".sum"))
        digest = hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]
        program = CACHE / f"driver-{digest}"
        if not program.exists():
            unfinished = CACHE / "unfinished"
            _build(unfinished)
            unfinished.rename(program)
        return program


def _build(program: Path) -> None:
    done = subprocess.run(
        ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), "."],
        cwd=SOURCES,
        env={**os.environ, "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"go build ended with {done.returncode}:\n{done.stderr[-4000:]}")


def play(namesrv_addr: str, scenarios: Sequence[str] = SCENARIOS) -> dict[str, ScenarioResult]:
    """Play scenarios, all at once, and return their results by name.

    Each needs a topic of its own name. One without a result, because the program ended or the time
    was up, has failed.
    """
    command = [str(built()), namesrv_addr, *scenarios]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        printed, errors = process.communicate(timeout=RUN_TIMEOUT_S)
        ending = f"ended with {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        printed, errors = process.communicate()
        ending = f"was stopped after {RUN_TIMEOUT_S:.0f} s"
    lines = [ScenarioResult(**json.loads(line)) for line in printed.splitlines()]
    results = {each.scenario: each for each in lines}
    tail = errors[-LOG_TAIL_CHARACTERS:]
    text = f"the program {ending} without a result of this scenario:\n{tail}"
    return {s: results.get(s, ScenarioResult(s, False, 0.0, {}, text)) for s in scenarios}
