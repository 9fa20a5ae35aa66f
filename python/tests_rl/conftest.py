"""One server for all tests, the examples as modules, and an end to every test that hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "examples"))

# A background job of a script ignores SIGINT; so would the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Two cores are shared by learner, environments and server.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Workers that Ray starts find the package and the examples as this process does.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "src"), str(HERE.parent / "examples")])
os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # loopback only, and no file in the user's home
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Ray gives up processes of its own that need longer to start, which they do on a busy machine.
os.environ.setdefault("RAY_agent_register_timeout_ms", "180000")

from paired import SMALL  # noqa: E402

from clustergym import LocalServer, find_gymctl  # noqa: E402

# The ids of all environments.
IDS: list[str] = [
    env["id"]
    for env in json.loads(
        subprocess.run([find_gymctl(), "envs", "--json"], capture_output=True, check=True, timeout=60).stdout
    )["envs"]
]

LIMIT = 600  # seconds that a test may take


def kwargs_of(env_id: str) -> dict[str, Any]:
    """Arguments that make an environment small."""
    # An episode of DelayOffer-v1 asks every job several times.
    return {"JobSelect-v1": SMALL, "DelayOffer-v1": {"window": 32}, "DelayOffer-v2": {"window": 8, "warm": 64}}.get(
        env_id, {}
    )


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of a server that all tests share."""
    with LocalServer() as server:
        yield server.url


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError(f"the test took more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
