"""Every wait ends at its deadline, whatever else the server sends meanwhile."""

from __future__ import annotations

import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import Client, RemoteEnv, _dial
from clustergym._dial import loopback
from fake import FakeServer, Gone, Peer, answer, serve_well, welcome

WAIT = 0.5  # seconds that a client waits here
NOISE = 15.0  # seconds for which a server keeps it busy; without deadlines a wait takes as long
LONG = 10.0  # seconds within which a wait must have ended, on however slow a machine


def often(peer: Peer, act: Callable[[], Any]) -> None:
    """Does something again and again, until the client has left or time is up."""
    end = time.monotonic() + NOISE
    while time.monotonic() < end:
        act()
        time.sleep(0.02)


def dribble(peer: Peer) -> None:
    peer.raw(b"\x82\x7e\x40\x00")
    often(peer, lambda: peer.raw(b"x"))


def fragments(peer: Peer) -> None:
    peer.frame(b"\x80", 0x02)
    often(peer, lambda: peer.frame(b"\x80", 0x00))


NOISES: dict[str, Callable[[Peer], None]] = {
    "pings": lambda p: often(p, lambda: p.frame(b"there?", 0x89)),
    "many pings": lambda p: often(p, lambda: [p.frame(b"there?", 0x89) for _ in range(200)]),
    "pongs": lambda p: often(p, lambda: p.frame(b"", 0x8A)),
    "a byte now and then": dribble,
    "a message in endless parts": fragments,
}
MESSAGES: dict[str, Callable[[Peer], None]] = {
    "replies to others": lambda p: often(p, lambda: p.send({"re": 4711, "op": "ping"})),
    "events": lambda p: often(p, lambda: p.send({"re": 0, "op": "notice", "msg": "still here"})),
}


def must_time_out(call: Callable[[], Any]) -> None:
    begin = time.monotonic()
    with pytest.raises(clustergym.ReplyTimeout):
        call()
    assert time.monotonic() - begin < LONG


@pytest.mark.parametrize("name", [*NOISES, *MESSAGES])
def test_a_wait_for_a_reply_ends_whatever_else_comes(name: str) -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.recv()
        (NOISES | MESSAGES)[name](peer)

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=60)
        must_time_out(lambda: c.request("ping", timeout=WAIT))
        begin = time.monotonic()
        c.close()
        assert time.monotonic() - begin < LONG, "neither may the farewell wait for ever"


@pytest.mark.parametrize("name", NOISES)
def test_a_wait_for_the_welcome_ends_whatever_else_comes(name: str) -> None:
    def serve(peer: Peer) -> None:
        peer.recv()
        NOISES[name](peer)

    with FakeServer(serve) as server:
        must_time_out(lambda: Client(server.url, timeout=WAIT))


@pytest.mark.parametrize("name", NOISES)
def test_a_resume_ends_whatever_comes_instead_of_a_welcome(name: str) -> None:
    def serve(peer: Peer) -> None:
        if peer.recv().get("resume"):
            NOISES[name](peer)
        peer.send(welcome())
        peer.recv()
        peer.cut()

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=60)
        begin = time.monotonic()
        with pytest.raises((clustergym.ReplyTimeout, clustergym.ConnectionLost)):
            c.request("ping", timeout=WAIT)
        assert time.monotonic() - begin < LONG
        c.close()


def test_a_reply_in_many_pieces_among_pings_still_arrives() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        request = peer.recv()
        frame = clustergym.codec.encode({"re": request["id"], "op": "ping", "t": "x" * 3000})
        for i in range(0, len(frame), 500):
            peer.frame(b"there?", 0x89)
            part = frame[i : i + 500]
            peer.frame(part, (0x02 if i == 0 else 0) | (0x80 if i + 500 >= len(frame) else 0))
            time.sleep(0.01)
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=20) as c:
        assert c.request("ping")["t"] == "x" * 3000


def test_a_server_that_sends_pings_and_never_reads_keeps_nobody() -> None:
    """Pongs that nobody takes must not block the wait."""

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.recv()
        flood = b"".join(bytes((0x89, 125)) + bytes(125) for _ in range(1000))
        end = time.monotonic() + NOISE
        while time.monotonic() < end:
            peer.raw(flood)

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=60)
        must_time_out(lambda: c.request("ping", timeout=WAIT))
        begin = time.monotonic()
        c.last_used = 0.0
        c.tend()  # what the keep-alive thread does
        assert time.monotonic() - begin < LONG
        c.close()


def test_a_request_that_the_server_does_not_read_ends() -> None:
    gate = threading.Event()

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        gate.wait(NOISE)

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=60)
        c.timeout = WAIT
        begin = time.monotonic()
        with pytest.raises((clustergym.ReplyTimeout, clustergym.ConnectionLost)):
            c.request("ping", {"x": np.zeros(15 << 20, np.uint8)})
        assert time.monotonic() - begin < LONG
        c.close()
        gate.set()


def test_a_request_given_less_time_than_the_client_ends_when_it_cannot_be_sent() -> None:
    gate = threading.Event()

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        gate.wait(NOISE)

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=60)
        begin = time.monotonic()
        with pytest.raises((clustergym.ReplyTimeout, clustergym.ConnectionLost)):
            c.request("ping", {"x": np.zeros(15 << 20, np.uint8)}, timeout=WAIT)
        assert time.monotonic() - begin < LONG
        c.close()
        gate.set()


def listener(behave: Callable[[socket.socket], None]) -> tuple[socket.socket, str]:
    """A bare TCP server for one connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        try:
            sock, _ = listening.accept()
            with sock:
                behave(sock)
        except OSError:
            pass

    threading.Thread(target=run, daemon=True).start()
    return listening, f"127.0.0.1:{listening.getsockname()[1]}"


def drip(start: bytes) -> Callable[[socket.socket], None]:
    """Reads a request and answers it byte by byte, without end."""

    def behave(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(start)
        end = time.monotonic() + NOISE
        while time.monotonic() < end:
            sock.sendall(b"x")
            time.sleep(0.02)

    return behave


@pytest.mark.parametrize(
    "start",
    [b"", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: ", b"HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n"],
)
def test_an_upgrade_that_trickles_in_ends(start: bytes) -> None:
    server, address = listener(drip(start))
    begin = time.monotonic()
    # Older versions of websocket-client do not read what follows an error.
    with server, pytest.raises((clustergym.ReplyTimeout, clustergym.RemoteError)):
        Client(address, timeout=WAIT)
    assert time.monotonic() - begin < LONG


def test_a_tls_handshake_that_trickles_in_ends() -> None:
    server, address = listener(drip(b"\x16\x03\x03\x40\x00"))
    with server:
        must_time_out(lambda: Client("wss://" + address, timeout=WAIT))


def test_a_proxy_that_answers_byte_by_byte_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    server, address = listener(drip(b"HTTP/1.1 200 "))
    monkeypatch.setenv("http_proxy", "http://" + address)
    with server:
        must_time_out(lambda: Client("ws://cluster.test:80", timeout=WAIT))


def test_a_name_that_is_never_resolved_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    real = socket.getaddrinfo

    def look(host: str, *args: Any) -> Any:
        if host == "cluster.test":
            over.wait(NOISE)
        return real("127.0.0.1", *args)

    monkeypatch.setattr(socket, "getaddrinfo", look)
    must_time_out(lambda: Client("ws://cluster.test:9", timeout=WAIT))
    over.set()


def test_what_is_no_http_is_said_so() -> None:
    server, address = listener(lambda sock: (sock.recv(4096), sock.sendall(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"))[0] and None)
    with server, pytest.raises(clustergym.ProtocolError, match=r"gbp\.v1"):
        Client(address, timeout=10)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers by signal here")
def test_signals_do_not_prolong_a_wait() -> None:
    """A system call that a signal interrupts begins anew, and so would its time limit."""

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.sock.settimeout(NOISE)
        peer.recv()
        peer.recv()

    before = signal.signal(signal.SIGALRM, lambda *_: None)
    with FakeServer(serve) as server:
        c = Client(server.url, timeout=60)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        try:
            must_time_out(lambda: c.request("ping", timeout=WAIT))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        c.close()


# Silence.


@pytest.mark.parametrize("feat", [[], ["resume"]])
def test_a_pong_that_is_late_ends_no_session(feat: list[str]) -> None:
    """A busy server answers neither pings nor new connections, and still has the session."""

    def serve(peer: Peer) -> None:
        hello = peer.recv()
        if hello.get("resume"):
            time.sleep(NOISE)  # busy
            return
        peer.send(welcome(feat=feat))
        request = peer.recv()
        time.sleep(3)
        answer(peer, request)
        serve_well(peer)

    server = FakeServer(serve)
    with Client(server.url, timeout=60, probe=0.3) as c:
        assert c.request("ping")["re"] == 2
        assert c.request("ping")["re"] == 3
        assert c.stats.resumes == 0
    server.listener.close()


def test_without_resume_silence_ends_with_the_deadline_and_not_the_session() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        request = peer.recv()
        time.sleep(2.5)
        answer(peer, request)
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=60, probe=0.2, resume=False) as c:
        with pytest.raises(clustergym.ReplyTimeout):
            c.request("ping", timeout=1)
        assert c.request("ping")["re"] == 3


def test_a_server_that_took_the_other_connection_too_late_is_followed() -> None:
    """The server closes the old connection (4409) when it accepts the new one, which has been given up by then."""
    first: list[Peer] = []
    resumes: list[Any] = []

    def serve(peer: Peer) -> None:
        hello = peer.recv()
        if not hello.get("resume"):
            first.append(peer)
            peer.send(welcome())
            peer.recv()
            time.sleep(NOISE)
            return
        resumes.append(hello)
        if len(resumes) == 1:
            time.sleep(2)  # longer than the client tries
            first[0].close(4409, "another connection resumed this session")
            raise Gone
        peer.send(welcome())
        serve_well(peer)

    server = FakeServer(serve)
    with Client(server.url, timeout=60, probe=0.3) as c:
        assert c.request("ping")["re"] == 2
        assert len(resumes) == 2
    server.listener.close()


def test_a_stray_hello_takes_a_session_over_only_for_a_moment() -> None:
    """A connection breaks after its hello was sent, another one resumes, and then the server hears the first hello."""
    resumes: list[Any] = []

    def serve(peer: Peer) -> None:
        hello = peer.recv()
        if not hello.get("resume"):
            peer.send(welcome())
            peer.recv()
            raise Gone
        resumes.append(hello)
        if len(resumes) == 1:
            raise Gone  # its hello is on its way
        peer.send(welcome())
        if len(resumes) == 2:
            peer.recv()
            peer.close(4409, "another connection resumed this session")
            raise Gone
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=60) as c:
        assert c.request("ping")["re"] == 2
        assert len(resumes) == 3


def test_a_session_that_another_client_has_taken_over_stays_there() -> None:
    resumes: list[Any] = []

    def serve(peer: Peer) -> None:
        resumes.append(peer.recv().get("resume"))
        peer.send(welcome())
        peer.recv()
        if len(resumes) == 1:
            raise Gone
        peer.close(4409, "another connection resumed this session")
        raise Gone

    with FakeServer(serve) as server, Client(server.url, timeout=60) as c:
        with pytest.raises(clustergym.TakenOver):
            c.request("ping")
        assert len(resumes) == 2


# Proxies.

PROXY_NAMES = [name for base in ("http_proxy", "https_proxy", "all_proxy") for name in (base, base.upper())]


def test_which_hosts_are_this_machine() -> None:
    for host in (
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "::ffff:127.0.0.1",
    ):
        assert loopback(host), host
    for host in ("128.0.0.1", "localhost.example.com", "10.0.0.1", "fe80::1", "example.com", ""):
        assert not loopback(host), host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_loopback_never_goes_through_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []
    proxy, address = listener(lambda sock: heard.append(sock.recv(4096)))
    for name in PROXY_NAMES:
        monkeypatch.setenv(name, "http://" + address)
    monkeypatch.setenv("no_proxy", "example.com")
    monkeypatch.setenv("NO_PROXY", "example.com")

    with proxy, FakeServer(host="0.0.0.0") as server:
        url = f"ws://{host}:{server.listener.getsockname()[1]}"
        with Client(url, token="0123456789abcdef-secret", timeout=20) as c:
            c.request("ping")
    assert heard == []


def test_the_own_server_needs_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []
    proxy, address = listener(lambda sock: heard.append(sock.recv(4096)))
    for name in PROXY_NAMES:
        monkeypatch.setenv(name, "http://" + address)
    monkeypatch.setenv("no_proxy", "example.com")
    with proxy:
        env = RemoteEnv("CartPole-v1", timeout=60)
        env.reset(seed=1)
        env.close()
    assert heard == []


def test_other_hosts_are_reached_through_the_proxy_unless_they_are_excepted(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []
    with FakeServer() as server:
        there = server.listener.getsockname()

        def behave(sock: socket.socket) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                head += sock.recv(4096)
            heads.append(head)
            with socket.create_connection(there) as onward:
                sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

                def back() -> None:
                    try:
                        while data := onward.recv(1 << 16):
                            sock.sendall(data)
                    except OSError:
                        pass

                thread = threading.Thread(target=back, daemon=True)
                thread.start()
                while data := sock.recv(1 << 16):
                    onward.sendall(data)

        proxy, address = listener(behave)
        monkeypatch.setenv("http_proxy", f"http://user:pass%21@{address}")
        with proxy, Client("ws://cluster.test:8765", token="0123456789abcdef", timeout=20) as c:
            c.request("ping")
        assert heads[0].startswith(b"CONNECT cluster.test:8765 HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic dXNlcjpwYXNzIQ==" in heads[0]
        assert b"0123456789abcdef" not in heads[0]
    for no, host, want in [
        ("cluster.test", "cluster.test", False),
        (".test", "cluster.test", False),
        ("10.0.0.0/8", "10.1.2.3", False),
        ("10.0.0.0/8", "11.1.2.3", True),
        ("*", "cluster.test", False),
        ("other.test", "cluster.test", True),
    ]:
        monkeypatch.setenv("no_proxy", no)
        assert (_dial._proxy(host, 80, False) is not None) == want, (no, host)
        assert _dial._proxy(host, 80, True) is None


def test_a_proxy_that_refuses_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    proxy, address = listener(refuse)
    monkeypatch.setenv("http_proxy", address)
    with proxy, pytest.raises(clustergym.ConnectionLost, match="407"):
        Client("ws://cluster.test:8765", timeout=10)


# Two threads.


def test_a_thread_that_sends_and_one_that_reads_do_not_disturb_each_other() -> None:
    """While one thread waits for a reply, another one's large request blocks until replies are read."""
    big = np.arange(3 << 20, dtype=np.uint8)

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        first = peer.recv()
        time.sleep(0.3)  # the second request fills the buffers meanwhile
        for i in range(40):
            peer.send({"re": 0, "op": "notice", "msg": f"{i:02}" * 30000})
        peer.send({"re": first["id"], "op": "ping", "x": big})
        head, _ = struct.unpack("BB", peer.sock.recv(2, socket.MSG_WAITALL))
        assert head == 0x82
        (n,) = struct.unpack(">Q", peer.sock.recv(8, socket.MSG_WAITALL))
        left = n + 4
        while left:
            left -= len(peer.sock.recv(min(left, 1 << 20)))
        peer.send({"re": first["id"] + 1, "op": "ping"})
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=60) as c:
        first = c.post("ping")
        replies: list[Any] = []
        reader = threading.Thread(target=lambda: replies.append(c.wait(first)))
        reader.start()
        second = c.post("ping", {"x": np.zeros(15 << 20, np.uint8)})
        assert c.wait(second)["re"] == second
        reader.join(60)
        assert (replies[0]["x"] == big).all()
        assert c.notices == [f"{i:02}" * 30000 for i in range(40)]


# A real signal.


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers by signal here")
def test_a_step_interrupted_while_it_waits_is_not_sent_twice() -> None:
    steps: list[int] = []
    go = threading.Event()

    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "step":
                steps.append(request["id"])
                go.wait(NOISE)
            answer(peer, request)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with FakeServer(serve) as server, Client(server.url, timeout=30, resume=False) as c:
            env = RemoteEnv("X-v1", client=c)
            env.reset()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                env.step(1)
            with pytest.raises(clustergym.Unfinished, match="earlier step"):
                env.step(2)
            with pytest.raises(clustergym.NeedsReset):
                env.action_masks() if env._mask is None else env.snapshot()
            go.set()
            assert env.step(1)[1] == 0.0
            assert len(steps) == 1
            env.step(2)
            assert len(steps) == 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_step_that_timed_out_is_waited_for_again_or_dropped_by_a_reset() -> None:
    steps: list[Any] = []
    gate = threading.Semaphore(0)

    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "step":
                steps.append(request["a"][0])
                gate.acquire(timeout=NOISE)
            answer(peer, request)

    with FakeServer(serve) as server, Client(server.url, timeout=30) as c:
        envs = clustergym.RemoteVectorEnv("X-v1", 1, client=c)
        envs.reset()
        envs.step_async(np.array([1]))
        with pytest.raises(clustergym.ReplyTimeout):
            envs.step_wait(timeout=0.2)
        with pytest.raises(clustergym.Unfinished):
            envs.step(np.array([2]))
        gate.release()
        envs.step_wait()
        with pytest.raises(clustergym.ClusterGymError, match="no step to wait for"):
            envs.step_wait()
        envs.step_async(np.array([2]))
        with pytest.raises(clustergym.ClusterGymError, match="was not waited for"):
            envs.step_async(np.array([2]))
        with pytest.raises(clustergym.ReplyTimeout):
            envs.step_wait(timeout=0.2)
        gate.release()
        envs.reset()
        gate.release()
        envs.step(np.array([0]))
        assert steps == [1, 2, 0]
