"""clustergym.ray: workers as actors on two Ray nodes, one of which dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from clustergym.ray import Workers, workers

FAKE = f"""#!{sys.executable}
import os, pathlib, sys, threading, time
assert sys.argv[1] == "worker", sys.argv
here = pathlib.Path(sys.argv[2])
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
print("token", pathlib.Path(sys.argv[sys.argv.index("--token-file") + 1]).read_text().strip(), file=sys.stderr, flush=True)
(here / str(os.getpid())).touch()
while not (here / "done").exists():
    if (here / "wrong").exists():
        print("gymctl: the token is wrong", file=sys.stderr)
        sys.exit(2)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=2, include_dashboard=False)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
def fake(tmp_path: Path) -> str:
    """A program that is a worker until a file says that all is done."""
    program = tmp_path / "gymctl"
    program.write_text(FAKE)
    program.chmod(0o755)
    (tmp_path / "queue").mkdir()
    return str(program)


def until(true: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def states(crew: Workers) -> list[str]:
    return [w["state"] for w in crew.status()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def begin(fake: str, n: int, **options: Any) -> Workers:
    return workers(n, str(Path(fake).parent / "queue"), token="secret", gymctl=fake, **options)


def test_workers_are_spread_over_nodes_and_end_with_the_work(nodes: Cluster, fake: str) -> None:
    with begin(fake, 4) as crew:
        until(lambda: states(crew) == ["working"] * 4 and all(w["said"] for w in crew.status()))
        now = crew.status()
        assert len({w["node"] for w in now}) == 2, now
        assert now[0]["said"] == ["token secret"]
        assert crew.wait(0.1) is False
        (Path(fake).parent / "queue" / "done").touch()
        assert crew.wait(60)
        assert states(crew) == ["done"] * 4
    assert crew.status() == []


def test_stop_ends_the_programs_and_those_that_found_no_node(nodes: Cluster, fake: str) -> None:
    crew = begin(fake, 5)  # the cluster has four CPUs
    until(lambda: sorted(states(crew)) == ["waiting"] + ["working"] * 4)
    pids = [w["pid"] for w in crew.status() if w["state"] == "working"]
    assert all(alive(pid) for pid in pids)
    crew.stop()
    assert not any(alive(pid) for pid in pids)


def test_a_program_that_crashes_is_started_again_and_one_that_is_refused_is_not(nodes: Cluster, fake: str) -> None:
    with begin(fake, 1) as crew:
        until(lambda: all(w["said"] for w in crew.status()))
        (one,) = crew.status()
        os.kill(one["pid"], signal.SIGKILL)
        until(lambda: crew.status()[0]["pid"] not in (0, one["pid"]))
        assert crew.status()[0]["restarts"] == 1
        (Path(fake).parent / "queue" / "wrong").touch()
        with pytest.raises(RuntimeError, match="the token is wrong"):
            crew.wait(60)


def test_wrong_arguments_are_named() -> None:
    for options, message in (
        ({"n": 0}, "n=0"),
        ({"n": 1, "slots": 0}, "slots=0"),
        ({"n": 1, "cpus": 0.5}, "cpus=0.5"),
        ({"n": 1, "token": "a", "token_file": "b"}, "not both"),
    ):
        with pytest.raises(ValueError, match=message):
            workers(url="nats://localhost:1", **options)  # type: ignore[arg-type]
