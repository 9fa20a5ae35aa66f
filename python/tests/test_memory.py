"""Observations in shared memory are the same as those that are sent."""

from __future__ import annotations

import gc
import os
import pickle
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import clustergym
from clustergym import Client, ProtocolError, RemoteVectorEnv, _memory
from clustergym._memory import Region, sees
from fake import FakeServer, Peer, serve_well, welcome
from test_envs import SMALL, equal
from test_resume import Wire

pytestmark = pytest.mark.skipif(not _memory.POSSIBLE, reason="memory without a name and yet with a path is Linux's")

N = 32  # small JobSelect-v1, 32 times: above what a server deems worth sharing


@pytest.fixture
def ours(url: str) -> Iterator[Client]:
    with Client(url, timeout=20) as c:
        yield c


@pytest.fixture
def sending(url: str) -> Iterator[Client]:
    with Client(url, timeout=20, shared_memory=False) as c:
        yield c


def make(client: Client, **more: Any) -> RemoteVectorEnv:
    return RemoteVectorEnv("JobSelect-v1", N, client=client, **{"kwargs": SMALL, **more})


def shares(envs: RemoteVectorEnv) -> bool:
    return envs.handle._region is not None


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("options", [{"obs": "dict"}, {}, {"mask": ["obs"]}], ids=["dict", "flat", "mask in obs"])
def test_shared_trajectories_are_those_that_are_sent(
    ours: Client, sending: Client, mode: AutoresetMode, options: dict[str, Any]
) -> None:
    a, b = make(ours, autoreset_mode=mode, **options), make(sending, autoreset_mode=mode, **options)
    assert shares(a)
    assert not shares(b)
    assert equal(a.reset(seed=4), b.reset(seed=4))
    for t in range(60):
        actions = a.action_masks().argmax(axis=1)
        if mode is AutoresetMode.DISABLED:
            done = np.zeros(N, bool) if t == 0 else x[2] | x[3]  # noqa: F821
            if done.any():
                assert equal(a.reset(options={"reset_mask": done}), b.reset(options={"reset_mask": done}))
                actions = a.action_masks().argmax(axis=1)
        elif t == 20:
            some = np.arange(N) % 3 == 0
            assert equal(a.reset(options={"reset_mask": some}), b.reset(options={"reset_mask": some}))
            actions = a.action_masks().argmax(axis=1)
        x, y = a.step(actions), b.step(actions)
        assert equal(x, y), t
    blob = a.snapshot()
    later = [a.step(a.action_masks().argmax(axis=1))[0] for _ in range(3)] if mode is not AutoresetMode.DISABLED else []
    assert equal(a.restore(blob)[0], x[0])
    for obs in later:
        assert equal(a.step(a.action_masks().argmax(axis=1))[0], obs)
    rows = [3, 7]
    assert equal(a.restore(b.snapshot(rows), rows)[0], a._batch.all(a._obs, True))
    assert a.stats.bytes_in < b.stats.bytes_in / 3


def test_what_is_returned_is_ones_own(ours: Client) -> None:
    envs = make(ours)
    first, _ = envs.reset(seed=1)
    kept = first.copy()
    for _ in range(5):
        envs.step(envs.action_masks().argmax(axis=1))
    assert equal(first, kept)
    assert first.flags.writeable
    assert first.flags.owndata
    assert first.flags.c_contiguous


def test_without_copies_observations_are_views_that_change(ours: Client) -> None:
    envs = make(ours, copy=False, obs="dict")
    first, _ = envs.reset(seed=1)
    before = {key: part.copy() for key, part in first.items()}
    for _ in range(5):
        now = envs.step(envs.action_masks().argmax(axis=1))[0]
    assert not equal(first, before)
    assert equal(first, now)
    with pytest.raises(ValueError, match="read-only"):
        first["global"][0, 0] = 1


def test_few_numbers_are_sent(ours: Client) -> None:
    assert ours.shares_memory
    envs = RemoteVectorEnv("CartPole-v1", 4, client=ours)
    envs.reset(seed=1)
    assert not shares(envs)


def test_environments_that_do_not_keep_step_are_not_shared(ours: Client) -> None:
    envs = make(ours, recv="any", batch=4)
    envs.reset(seed=1)
    assert not shares(envs)


def test_a_lost_connection_is_taken_up_with_the_same_memory(url: str, sending: Client) -> None:
    wire = Wire(url)
    with Client(wire.url, timeout=20) as client:
        a, b = make(client), make(sending)
        assert shares(a)
        assert equal(a.reset(seed=2), b.reset(seed=2))
        for t in range(30):
            if t % 10 == 5:
                wire.cut_after = 100 * (t // 10)  # in the middle of a reply, or before it
            actions = a.action_masks().argmax(axis=1)
            assert equal(a.step(actions), b.step(actions)), t
        assert client.stats.resumes >= 2
        a.close()
    wire.listener.close()


def test_a_copy_in_another_session_has_memory_of_its_own(ours: Client, url: str) -> None:
    envs = RemoteVectorEnv("JobSelect-v1", N, url, obs="dict", kwargs=SMALL)
    other = pickle.loads(pickle.dumps(envs))
    assert shares(envs)
    assert shares(other)
    a, b = envs.reset(seed=1)[0], other.reset(seed=2)[0]
    assert not equal(a, b)
    assert equal(envs.handle._region.views["queue"], a["queue"])
    envs.close()
    other.close()


def test_memory_is_let_go_of() -> None:
    def held() -> int:
        gc.collect()
        return Path("/proc/self/maps").read_text().count("memfd:clustergym")

    before = held()
    with clustergym.LocalServer(timeout=60) as server:
        envs = RemoteVectorEnv("JobSelect-v1", N, server.url, kwargs=SMALL)
        obs, _ = envs.reset(seed=1)
        assert held() == before + 1
        envs.close()
        del envs
        assert held() == before
    assert obs.shape[0] == N


def memory(data: bytes) -> tuple[int, str]:
    fd = os.memfd_create("test")
    os.write(fd, data)
    return fd, f"/proc/{os.getpid()}/fd/{fd}"


def test_only_the_same_bytes_are_the_same_memory(tmp_path: Path, rng: np.random.Generator) -> None:
    check = rng.bytes(32)
    fd, path = memory(check)
    assert sees({"path": path, "check": check})
    assert not sees({"path": path, "check": rng.bytes(32)})
    assert not sees({"path": path, "check": check[:20]})
    assert not sees({"path": path, "check": b""})
    assert not sees({"path": path})
    assert not sees(None)
    other = tmp_path / "file"
    other.write_bytes(check)
    assert not sees({"path": str(other), "check": check})
    assert not sees({"path": "/proc/1/fd/../../../" + path, "check": check})
    os.close(fd)
    assert not sees({"path": path, "check": check})
    # A pipe, which opens only when a writer does, must not block the client.
    r, w = os.pipe()
    assert not sees({"path": f"/proc/{os.getpid()}/fd/{r}", "check": check})
    with socket.socket() as s:
        assert not sees({"path": f"/proc/{os.getpid()}/fd/{s.fileno()}", "check": check})
    os.close(r)
    os.close(w)


SPACE = {"t": "dict", "k": [["x", {"t": "box", "shape": [2], "dtype": "float32", "low": 0.0, "high": 1.0}]]}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"size": 12}, "12 bytes of shared memory for 2 rows of 2 numbers"),
        ({"row": 3}, "16 bytes of shared memory for 2 rows of 3 numbers"),
        ({"row": None}, "16 bytes of shared memory for 2 rows of None numbers"),
        ({"at": {"x": 1}}, r"\(2,\) numbers at 1 of a row of 2"),
        ({"at": {"x": -1}}, r"\(2,\) numbers at -1 of a row of 2"),
        ({"at": {"y": 0}}, r"\['y'\] in shared memory, want parts of x"),
        ({"path": "/etc/hostname"}, "is no path of shared memory"),
        ({"path": "/proc/0/fd/3"}, "cannot be had"),
    ],
)
def test_what_does_not_fit_together_is_refused(told: dict[str, Any], says: str) -> None:
    fd, path = memory(bytes(16))
    try:
        with pytest.raises(ProtocolError, match=says):
            Region({"path": path, "size": 16, "row": 2, "at": {"x": 0}, **told}, 2, SPACE)
    finally:
        os.close(fd)


def test_a_server_that_is_elsewhere_is_not_asked_to_share(rng: np.random.Generator) -> None:
    asked: list[dict[str, Any]] = []

    def serve(peer: Peer) -> None:
        peer.recv()
        peer.send(welcome(shm={"path": "/proc/1/fd/0", "check": rng.bytes(32)}, feat=["shm"]))
        recv = peer.recv

        def note() -> dict[str, Any]:
            asked.append(recv())
            return asked[-1]

        peer.recv = note  # type: ignore[method-assign]
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=5, resume=False) as client:
        assert "shm" in client.features
        assert not client.shares_memory
        RemoteVectorEnv("Fake-v1", 2, client=client).close()
    assert asked[0]["op"] == "open"
    assert "shm" not in asked[0]
