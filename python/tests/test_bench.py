"""``gymctl speed bridge``, whose Python half is in this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import clustergym
from clustergym import bench
from fake import FakeServer, Peer


def test_bench_bridge_measures_every_row_and_compares_them(tmp_path: Path) -> None:
    src = Path(clustergym.__file__).parents[1]
    done = subprocess.run(
        [clustergym.find_gymctl(), "bench", "bridge", "--quick", "--json", "--python", sys.executable],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(src), os.environ.get("PYTHONPATH", "")])},
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["bridge"]
    assert all(row["rate"] > 0 and row["runs"] > 0 for row in rows)
    (bare,) = [row for row in rows if row["what"].startswith("frames of JobSelect-v1's size")]
    assert bare["frame_bytes"] > 64 * 1024, "replies of 64 environments, all of them sent"
    assert bare["bytes"] * bare["envs"] >= bare["frame_bytes"], "every call gets a frame of its own"
    assert {row["what"] for row in rows} >= {
        "Trivial-v1 over the bridge",
        "the same in Python, SyncVectorEnv",
        "JobSelect-v1 over the bridge, all of it sent",
        "JobSelect-v1 in one Go process",
    }


def test_a_bare_connection_waits_from_now_on_and_reads_each_frame_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def echo(peer: Peer) -> None:
        while True:
            _, data = peer.recv_frame()
            peer.frame(bytes(int.from_bytes(data[:4], "little")))

    began = time.monotonic()
    moments, connections = [], []
    dial = bench.dial

    def noted(url: str, token: str | None, deadline: float, *more: Any) -> Any:
        moments.append(deadline)
        connections.append(dial(url, token, deadline, *more))
        return connections[0]

    monkeypatch.setattr(bench, "dial", noted)
    with FakeServer(echo) as server:
        call, crossed = bench.bare(server.url, 20, 100)
        try:
            for _ in range(3):
                before = crossed()
                call()
                assert crossed() - before == 20 + 6 + 100 + 2, "there and back, each with its head"
        finally:
            connections[0].close()
    assert began + 9 < moments[0] < time.monotonic() + 11, "a moment of the clock, no duration"
