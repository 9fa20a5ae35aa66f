"""Measures the cost of round trips. ``gymctl speed bridge`` runs this and prints the table.

    python -m clustergym.bench --url ws://127.0.0.1:8765 --bare ws://127.0.0.1:8766

Every row is one JSON object on a line of its own. Rows whose name begins with "the same in Python" are Gymnasium's own
vector environments over a Python environment that does what Trivial-v1 does; ``--bare`` names a server that answers
any frame with one of as many bytes as the frame's first four say, which is what the transport alone costs.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from .envs import RemoteEnv
from .transport import dial
from .vector import RemoteVectorEnv

ROUNDS = 3
OBS, LENGTH = 64, 1000

Call = Callable[[], None]


class Trivial(gym.Env[Any, Any]):
    """Trivial-v1 of ``gymctl speed bridge``, in Python."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Dict({"obs": gym.spaces.Box(0, 1, (OBS,), np.float32)})
        self.action_space = gym.spaces.Discrete(2)
        self._obs = np.zeros(OBS, np.float32)
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode of 1000 steps."""
        super().reset(seed=seed)
        self._obs[:] = self.np_random.random(OBS, np.float32)
        self._step = 0
        return {"obs": self._obs}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Changes one number."""
        self._step += 1
        self._obs[self._step % OBS] = action
        return {"obs": self._obs}, 1.0, False, self._step == LENGTH, {}


class Bench:
    """Measures calls and prints rows.

    Args:
        url: of the server, for its processor time; "" if there is no server.
        least: seconds of a round.
    """

    def __init__(self, url: str, least: float) -> None:
        self.http = re.sub("^ws", "http", url).rstrip("/")
        self.least = least

    def server_cpu(self) -> float:
        """Seconds of processor time that the server has used."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=10) as reply:
            found = re.search(rb"^process_cpu_seconds_total (\S+)", reply.read(), re.M)
        return float(found[1]) if found else 0.0

    def row(self, what: str, envs: int, call: Call, sent: Callable[[], int] | None = None, frame: int = 0) -> None:
        """Measures call, which steps envs environments once, and prints the best round.

        Args:
            what: the row's name.
            envs: environments that a call steps.
            call: what is measured.
            sent: returns the bytes sent and received so far; None if there is no server.
            frame: bytes of one reply.
        """
        best: dict[str, Any] = {"rate": 0.0}
        begin = time.perf_counter()
        while time.perf_counter() - begin < self.least / 5:  # warms up
            call()
        for _ in range(ROUNDS):
            took = []
            cpu, server, crossed = time.process_time(), self.server_cpu() if sent else 0.0, sent() if sent else 0
            begin = last = time.perf_counter()
            while last - begin < self.least:
                call()
                now = time.perf_counter()
                took.append(now - last)
                last = now
            cpu, crossed = time.process_time() - cpu, (sent() if sent else 0) - crossed
            server = self.server_cpu() - server if sent else 0.0
            steps, wall = len(took) * envs, last - begin
            if steps / wall > best["rate"]:
                p50, p90, p99 = (1e6 * float(x) for x in np.percentile(took, (50, 90, 99)))
                best = {
                    "what": what, "envs": envs, "rate": steps / wall, "trips": len(took) / wall,
                    "p50_us": p50, "p90_us": p90, "p99_us": p99,
                    "client_us": 1e6 * cpu / steps, "server_us": 1e6 * server / steps,
                    "bytes": crossed / steps, "frame_bytes": frame, "runs": len(took),
                }  # fmt: skip
        print(json.dumps(best), flush=True)


def stepping(envs: Any, n: int) -> Call:
    """A call that steps envs with actions drawn beforehand."""
    actions = np.random.default_rng(1).integers(0, 2, size=(64, n))
    at = 0
    envs.reset(seed=1)

    def call() -> None:
        nonlocal at
        envs.step(actions[at])
        at = (at + 1) % 64

    return call


def overlapping(first: RemoteVectorEnv, second: RemoteVectorEnv) -> Call:
    """A call that steps one of two vector environments, with the first legal actions, while the other's step is under
    way."""
    pair = [first, second]
    for envs in pair:
        envs.reset(seed=1)
    pair[1].step_async(pair[1].action_masks().argmax(axis=1))

    def call() -> None:
        pair[0].step_async(pair[0].action_masks().argmax(axis=1))
        pair[1].step_wait()
        pair.reverse()

    return call


def asking(envs: RemoteVectorEnv, n: int) -> Call:
    """A call that asks for a step and reads the reply, without what Gymnasium's interface adds."""
    actions, handle = np.zeros(n, np.int64), envs.handle
    envs.reset(seed=1)
    return lambda: void(handle.wait(handle.post_step(actions)))


def void(_: object) -> None:
    """Ignores its argument."""


def single(env: RemoteEnv) -> Call:
    """A call that steps one environment through Gymnasium's interface."""
    env.reset(seed=1)

    def call() -> None:
        _, _, terminated, truncated, _ = env.step(1)
        if terminated or truncated:
            env.reset()

    return call


def legal(envs: RemoteVectorEnv) -> Call:
    """A call that steps envs with the first legal action of each."""
    envs.reset(seed=1)

    def call() -> None:
        envs.step(envs.action_masks().argmax(axis=1))

    return call


def bare(url: str, out: int, back: int) -> tuple[Call, Callable[[], int]]:
    """A call that sends and reads back that many bytes, and a function that returns the bytes so far."""
    conn = dial(url, None, time.monotonic() + 10, None, 1 << 30)
    frame = struct.pack("<I", back) + bytes(max(0, out - 4))

    def call() -> None:
        deadline = time.monotonic() + 60
        conn.send(frame, deadline)
        conn.recv(deadline, 60)
        conn.taken()  # else the next call gets this frame again, without a round trip

    return call, lambda: conn.bytes_in + conn.bytes_out


def main() -> None:
    """Measures everything."""
    p = argparse.ArgumentParser(description="measures the bridge; gymctl speed bridge runs this")
    p.add_argument("--url", required=True, help="server that has Trivial-v1")
    p.add_argument("--bare", required=True, help="server that answers any frame with one of as many bytes as asked")
    p.add_argument("--quick", action="store_true", help="short rounds: an impression")
    args = p.parse_args()
    b = Bench(args.url, 0.05 if args.quick else 2.0)

    def remote(env_id: str, n: int, **options: Any) -> RemoteVectorEnv:
        # Fields, as the environment in Python has them.
        return RemoteVectorEnv(env_id, n, args.url, autoreset_mode=AutoresetMode.SAME_STEP, obs="dict", **options)

    def crossed(envs: RemoteVectorEnv | RemoteEnv) -> Callable[[], int]:
        return lambda: envs.stats.bytes_in + envs.stats.bytes_out

    env = RemoteEnv("Trivial-v1", args.url, obs="dict")
    b.row("Trivial-v1 over the bridge, as a gymnasium.Env", 1, single(env), crossed(env))
    env.close()
    for n in (1, 8, 64, 256, 1024):
        envs = remote("Trivial-v1", n)
        b.row("Trivial-v1 over the bridge", n, stepping(envs, n), crossed(envs))
        envs.close()
    for n in (1, 64):
        envs = remote("Trivial-v1", n)
        b.row("Trivial-v1 over the bridge, request and reply alone", n, asking(envs, n), crossed(envs))
        envs.close()

    def in_turn(what: str, env_id: str, n: int, **options: Any) -> None:
        first, second = remote(env_id, n, **options), remote(env_id, n, **options)
        call = overlapping(first, second)
        b.row(f"{env_id} over the bridge, {what}", n, call, lambda: crossed(first)() + crossed(second)())
        second.step_wait() if second.handle.kept is not None else first.step_wait()
        first.close()
        second.close()

    in_turn("two in turn", "Trivial-v1", 8)
    in_turn("two in turn", "Trivial-v1", 64)
    for n in (1, 8, 64):
        for what, kind in (("SyncVectorEnv", SyncVectorEnv), ("AsyncVectorEnv", AsyncVectorEnv)):
            local: Any = kind([Trivial] * n, autoreset_mode=AutoresetMode.SAME_STEP)
            b.row(f"the same in Python, {what}", n, stepping(local, n))
            local.close()
    envs = remote("JobSelect-v1", 64)
    b.row("JobSelect-v1 over the bridge", 64, legal(envs), crossed(envs))
    envs.close()
    in_turn("two in turn", "JobSelect-v1", 32)
    in_turn("two in turn", "JobSelect-v1", 64)
    in_turn("two in turn, without copies", "JobSelect-v1", 64, copy=False)
    envs = remote("JobSelect-v1", 64, client_options={"shared_memory": False})
    call, count = legal(envs), crossed(envs)
    before, asked = envs.stats.bytes_in, envs.stats.bytes_out
    call()
    back, out = envs.stats.bytes_in - before, envs.stats.bytes_out - asked
    b.row("JobSelect-v1 over the bridge, all of it sent", 64, call, count, back)
    envs.close()
    call, count = bare(args.bare, out, back)
    b.row("frames of JobSelect-v1's size, nothing else", 64, call, count, back)


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # one line for the program that reads the rows
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}), flush=True)
        sys.exit(1)
