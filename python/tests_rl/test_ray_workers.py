"""clustergym.ray: workers as actors on two Ray nodes, one of which dies."""

from __future__ import annotations

import os
import re
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

from clustergym import find_gymctl
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
    return [w["state"] for w in crew.status(1.0)]


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
    pids = [w["pid"] for w in crew.status(1.0) if w["state"] == "working"]
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


def test_nodes_need_nothing_of_this_package(nodes: Cluster, fake: str) -> None:
    with begin(fake, 1) as crew:
        (actor,) = crew._actors
        assert (
            ray.get(actor.__ray_call__.remote(lambda _: [m for m in sys.modules if m.startswith("clustergym")])) == []
        )


EXPERIMENT = ["experiment", "run", "estimates", "--quick"]


def results(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("results.csv", "rows.csv", "table.txt")]


def test_a_node_dies_and_the_results_are_those_of_one_machine(nodes: Cluster, tmp_path: Path) -> None:
    alone, spread, token, said = (tmp_path / name for name in ("alone", "spread", "token", "said"))
    command = [find_gymctl(), *EXPERIMENT, "--out"]
    subprocess.run([*command, str(alone), "--workers", "1"], check=True, capture_output=True, timeout=300)
    token.write_text("a-token-of-these-tests\n")
    listen = ["--workers", "0", "--listen", "127.0.0.1:0", "--token-file", str(token), "--ack-wait", "5s"]
    with said.open("wb") as log:
        coordinator = subprocess.Popen([*command, str(spread), *listen], stdout=subprocess.DEVNULL, stderr=log)
    try:
        until(lambda: re.search(r"nats://\S+", said.read_text()) is not None)
        url = re.search(r"nats://[^\s,;]+", said.read_text())[0]  # type: ignore[index]
        with workers(4, url, token_file=token) as crew:
            until(lambda: states(crew) == ["working"] * 4 and all(w["pid"] for w in crew.status()))
            before = {w["node"] for w in crew.status()}
            assert len(before) == 2
            (last,) = nodes.worker_nodes
            dead = last.node_id
            nodes.remove_node(last, allow_graceful=False)
            until(lambda: "waiting" in states(crew) or coordinator.poll() is not None)
            nodes.add_node(num_cpus=2, include_dashboard=False)
            until(lambda: coordinator.poll() is not None, 300)
            assert coordinator.returncode == 0, said.read_text()
            assert crew.wait(120)
            assert dead not in {w["node"] for w in crew.status() if w["state"] == "done"}
    finally:
        coordinator.kill()
        coordinator.wait()
    assert results(spread) == results(alone)


def test_wrong_arguments_are_named() -> None:
    for options, message in (
        ({"n": 0}, "n=0"),
        ({"n": 1, "slots": 0}, "slots=0"),
        ({"n": 1, "cpus": 0.5}, "cpus=0.5"),
        ({"n": 1, "token": "a", "token_file": "b"}, "not both"),
    ):
        with pytest.raises(ValueError, match=message):
            workers(url="nats://localhost:1", **options)  # type: ignore[arg-type]
