"""A real server behind a wire that is cut: no step is lost, none is taken twice."""

from __future__ import annotations

import socket
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import Client, RemoteEnv, RemoteVectorEnv
from test_envs import equal


class Wire:
    """A TCP proxy whose connections a test can cut or hold up."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("ws://").split(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.threads: list[threading.Thread] = []
        self.cut_after: int | None = None  # bytes towards the client until the next cut
        self.refuse = False
        self.silent = False
        self.lock = threading.Lock()
        self._start(self._accept)

    def _start(self, fn: Any, *args: Any) -> None:
        t = threading.Thread(target=fn, args=args, daemon=True)
        self.threads.append(t)
        t.start()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            if self.refuse:
                here.close()
                continue
            there = socket.create_connection(self.target)
            for s in (here, there):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pairs.append((here, there))
            self._start(self._pump, here, there, False)
            self._start(self._pump, there, here, True)

    def _pump(self, source: socket.socket, sink: socket.socket, to_client: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if (self.silent and (source, sink) in self.held) or (sink, source) in self.held:
                    continue
                if to_client:
                    with self.lock:
                        left = self.cut_after
                        if left is not None:
                            if len(data) >= left:
                                self.cut_after = None
                                sink.sendall(data[:left])
                                break
                            self.cut_after = left - len(data)
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    held: list[tuple[socket.socket, socket.socket]] = []

    def cut(self) -> None:
        """Cuts all connections at once."""
        for pair in self.pairs:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def swallow(self) -> None:
        """Silently drops everything on the current connections, as a dead path does."""
        self.held, self.silent = list(self.pairs), True

    def close(self) -> None:
        self.listener.close()
        self.cut()
        for t in self.threads[1:]:
            t.join(5)
        for pair in self.pairs:
            for s in pair:
                s.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def play(env: Any, steps: int, before: Any = None) -> list[Any]:
    run: list[Any] = [env.reset(seed=3)]
    for i in range(steps):
        if before is not None:
            before(i)
        run.append(env.step(i % 2))
        if run[-1][2] or run[-1][3]:
            run.append(env.reset())
    return run


def test_an_episode_goes_on_across_cuts_as_if_there_were_none(url: str) -> None:
    with Wire(url) as wire, Client(url) as straight, Client(wire.url, timeout=20) as cut:
        want = play(RemoteEnv("CartPole-v1", client=straight), 120)
        env = RemoteEnv("CartPole-v1", client=cut)
        rng = np.random.default_rng(0)

        def disturb(i: int) -> None:
            if i % 10 == 0:
                wire.cut()
            elif i % 10 == 5:
                wire.cut_after = int(rng.integers(1, 400))  # in the middle of the reply, or after it

        assert equal(play(env, 120, disturb), want)
        assert cut.stats.resumes >= 12
        assert straight.stats.resumes == 0


def test_pipelined_steps_of_many_environments_survive_cuts(url: str) -> None:
    actions = np.random.default_rng(1).integers(0, 2, (40, 16))
    with Wire(url) as wire, Client(url) as straight, Client(wire.url, timeout=20) as cut:
        a, b = (RemoteVectorEnv("CartPole-v1", 16, client=c) for c in (straight, cut))
        assert equal(a.reset(seed=1), b.reset(seed=1))
        handle = b.handle
        waiting: list[int] = []
        got: list[Any] = []
        for i, row in enumerate(actions):
            waiting.append(handle.post_step(row))
            if i % 7 == 3:
                wire.cut()
            if len(waiting) == 4:
                got.append(handle.wait(waiting.pop(0)))
        got += [handle.wait(rid) for rid in waiting]
        for row, reply in zip(actions, got):
            obs, r, te, tr, _ = a.step(row)
            assert equal(obs, reply["obs"])
            assert equal((r, te, tr), (reply["r"], reply["te"], reply["tr"]))
        assert cut.stats.resumes > 0


def test_a_path_that_dies_without_a_word_is_noticed_and_left(url: str) -> None:
    with Wire(url) as wire, Client(wire.url, timeout=30, probe=0.5) as c:
        env = RemoteEnv("CartPole-v1", client=c)
        env.reset(seed=1)
        wire.swallow()
        begin = time.monotonic()
        env.step(0)
        assert time.monotonic() - begin < 15
        assert c.stats.resumes == 1


def test_a_server_out_of_reach_for_a_while_is_waited_for(url: str) -> None:
    with Wire(url) as wire, Client(wire.url, timeout=20) as c:
        env = RemoteEnv("CartPole-v1", client=c)
        env.reset(seed=1)
        wire.refuse = True
        wire.cut()
        timer = threading.Timer(0.8, lambda: setattr(wire, "refuse", False))
        timer.start()
        env.step(0)
        timer.join(5)
        assert c.stats.resumes == 1


def test_an_idle_session_is_resumed_before_it_expires() -> None:
    with clustergym.LocalServer(["--resume-window", "4s"], timeout=60) as server, Wire(server.url) as wire:
        with Client(wire.url, timeout=20, keepalive=0.2) as c:
            env = RemoteEnv("CartPole-v1", client=c)
            env.reset(seed=1)
            wire.cut()
            time.sleep(6)  # a trainer that computes for longer than the window
            env.step(0)
            assert c.stats.resumes == 1


def test_a_session_that_was_away_for_too_long_has_expired_and_a_reset_begins_anew() -> None:
    with clustergym.LocalServer(["--resume-window", "300ms"], timeout=60) as server, Wire(server.url) as wire:
        with Client(wire.url, timeout=20, keepalive=0) as c:
            env = RemoteEnv("CartPole-v1", client=c)
            first = env.reset(seed=1)
            wire.cut()
            time.sleep(1.5)
            with pytest.raises(clustergym.SessionExpired):
                env.step(0)
            with pytest.raises(clustergym.NeedsReset):
                env.step(0)
            assert equal(env.reset(seed=1), first)
            env.step(0)


def test_a_restarted_server_is_a_lost_session_not_a_hang() -> None:
    with clustergym.LocalServer(timeout=60) as server:
        c = Client(server.url, timeout=2)
        env = RemoteEnv("CartPole-v1", client=c)
        env.reset(seed=1)
        server.close()
        begin = time.monotonic()
        with pytest.raises(clustergym.ClusterGymError), warnings.catch_warnings():
            warnings.simplefilter("ignore", clustergym.DrainWarning)
            env.step(0)
        assert time.monotonic() - begin < 10
        c.close()
