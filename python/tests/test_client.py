"""The session against a server that misbehaves: every wait ends, with an error that names the cause."""

from __future__ import annotations

import builtins
import copy
import pickle
import socket
import ssl
import struct
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import Client, errors
from clustergym.errors import error_from_close, error_from_reply
from clustergym.transport import normalize_url
from fake import FakeServer, Gone, Peer, answer, bomb, opened, result, serve_well, welcome


def test_addresses_are_understood_in_all_their_forms() -> None:
    for url, want in {
        "host:80": "ws://host:80/v1/ws",
        "ws://host:80": "ws://host:80/v1/ws",
        "ws://host:80/": "ws://host:80/v1/ws",
        "http://host": "ws://host/v1/ws",
        "https://host:1": "wss://host:1/v1/ws",
        "wss://host/other": "wss://host/other",
        "ws://[::1]:8": "ws://[::1]:8/v1/ws",
    }.items():
        assert normalize_url(url) == want
    for url in ("ftp://host", "ws://", "ws://user:secret@host", "ws://host/?token=x", ""):
        with pytest.raises(ValueError, match="url"):
            normalize_url(url)


def test_requests_are_numbered_and_answered_out_of_order_of_waiting() -> None:
    with FakeServer() as server, Client(server.url) as c:
        ids = [c.post("ping", {"t": i}) for i in range(3)]
        assert ids == [2, 3, 4]
        for rid in reversed(ids):
            assert c.wait(rid)["re"] == rid
        assert c.stats.requests == c.stats.replies == 3
        assert c.stats.latency_max >= c.stats.latency_mean > 0
        with pytest.raises(clustergym.ClusterGymError, match="once"):
            c.wait(ids[0])


def test_the_upgrade_carries_the_token_and_no_origin() -> None:
    with FakeServer() as server, Client(server.url, token="s3cret", headers={"X-Proxy": "yes"}):
        headers = server.peers[0].headers
        assert headers["authorization"] == "Bearer s3cret"
        assert headers["x-proxy"] == "yes"
        assert "origin" not in headers
        assert "sec-websocket-extensions" not in headers
        assert server.peers[0].path == "/v1/ws"
        assert "s3cret" not in server.url


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as server:
        monkeypatch.setenv("CLUSTERGYM_URL", server.url)
        monkeypatch.setenv("CLUSTERGYM_TOKEN", "abc")
        with Client():
            assert server.peers[0].headers["authorization"] == "Bearer abc"


def test_threads_share_a_session() -> None:
    def serve(peer: Peer) -> None:
        held = []
        while True:
            request = peer.recv()
            if request["op"] != "ping":
                answer(peer, request)
                continue
            held.append(request)
            if len(held) == 4:
                for r in reversed(held):  # the reader of the moment must hand the others theirs
                    peer.send({"re": r["id"], "op": "ping", "t": r["t"]})
                held.clear()

    with FakeServer(serve) as server, Client(server.url, timeout=10) as c:
        wrong: list[Any] = []

        def work(k: int) -> None:
            for i in range(50):
                got = c.request("ping", {"t": [k, i]})["t"]
                if got != [k, i]:
                    wrong.append((k, i, got))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(20)
        assert not any(t.is_alive() for t in threads)
        assert wrong == []


def test_a_pipeline_never_exceeds_the_window() -> None:
    def serve(peer: Peer) -> None:
        waiting: list[dict[str, Any]] = []
        while True:
            try:
                request = peer.recv()
            except Gone:
                return
            if request["op"] in ("hello", "open"):
                answer(peer, request)
                continue
            if request["op"] == "bye":
                answer(peer, request)
                return
            waiting.append(request)
            assert len(waiting) <= 4
            if len(waiting) == 4:
                for r in waiting:
                    peer.send(result(r))
                waiting.clear()

    with FakeServer(serve) as server, Client(server.url, timeout=10) as c:
        h = clustergym.Handle(c, "X-v1")
        ids = [h.post_step(np.array([1])) for _ in range(12)]
        for rid in ids:
            assert h.wait(rid)["re"] == rid


# Waits end.


def silent(peer: Peer) -> None:
    """Says hello, then nothing."""
    answer(peer, peer.recv())
    while True:
        peer.recv()


def test_a_reply_that_never_comes_is_a_timeout_that_names_the_operation() -> None:
    with FakeServer(silent) as server:
        c = Client(server.url, timeout=0.3)
        begin = time.monotonic()
        with pytest.raises(clustergym.ReplyTimeout, match=r"ping: .* within 0\.3 s") as e:
            c.request("ping")
        assert time.monotonic() - begin < 5
        assert isinstance(e.value, builtins.TimeoutError)
        assert e.value.waited_for == "ping"
        with pytest.raises(clustergym.ReplyTimeout, match=r"within 0\.1 s"):
            c.request("masks", timeout=0.1)
        c.close()


def test_a_late_reply_is_not_taken_for_another() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        first = peer.recv()
        second = peer.recv()
        peer.send({"re": first["id"], "op": "ping", "t": "late"})
        peer.send({"re": second["id"], "op": "ping", "t": "right"})
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c:
        with pytest.raises(clustergym.ReplyTimeout):
            c.request("ping", timeout=0.1)
        assert c.request("ping")["t"] == "right"


def test_a_server_that_does_not_answer_the_upgrade_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(clustergym.ReplyTimeout, match=r"connect: .* within"):
            Client(url, timeout=0.3)


def test_a_server_that_does_not_answer_hello_is_a_timeout() -> None:
    with FakeServer(lambda peer: (peer.recv(), peer.recv())[0] and None) as server:
        with pytest.raises(clustergym.ReplyTimeout, match="hello"):
            Client(server.url, timeout=0.3)


def test_nobody_listening_is_a_lost_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(clustergym.ConnectionLost, match="connect") as e:
        Client(url, timeout=2)
    assert isinstance(e.value, builtins.ConnectionError)


def test_something_else_listening_is_said_so() -> None:
    for other in (None, "chat"):
        with FakeServer(subprotocol=other) as server, pytest.raises(clustergym.ProtocolError, match=r"gbp\.v1"):
            Client(server.url, timeout=5)


@pytest.mark.parametrize(
    ("status", "kind"), [(401, errors.Unauthorized), (403, errors.RemoteError), (503, errors.Capacity)]
)
def test_a_refused_upgrade_says_why(status: int, kind: type[Exception]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(4096)
                sock.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises((kind, errors.RemoteError), match=str(status)):
            Client(f"ws://127.0.0.1:{listener.getsockname()[1]}", token="x", timeout=5)
        thread.join(5)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (lambda p: p.close(4406, "this server speaks 2 to 3, the client 1 to 1"), errors.ProtoMismatch, "2 to 3"),
        (lambda p: p.close(4401, "a token is needed"), errors.Unauthorized, "token"),
        (lambda p: p.close(4429, "full"), errors.Capacity, "full"),
        (lambda p: p.close(4503, "draining"), errors.Draining, "draining"),
        (lambda p: p.close(1011, "oops"), errors.ConnectionLost, "1011"),
        (lambda p: p.cut(), errors.ConnectionLost, "hello|connect|receive"),
        (lambda p: p.send(welcome(proto=2)), errors.ProtocolError, "version 2"),
        (lambda p: p.send(welcome(enc="mpnp")), errors.ProtocolError, "mpnp"),
        (lambda p: p.send(welcome(re=7)), errors.ProtocolError, "welcome"),
        (lambda p: p.send({"re": 1, "op": "error", "code": "bad_request", "msg": "no"}), errors.BadRequest, "no"),
    ],
)
def test_a_failed_handshake_says_why(reply: Callable[[Peer], None], kind: type[Exception], words: str) -> None:
    def serve(peer: Peer) -> None:
        peer.recv()
        reply(peer)

    with FakeServer(serve) as server, pytest.raises(kind, match=words):
        Client(server.url, timeout=5)


# Rubbish.


GARBAGE: dict[str, Callable[[Peer], None]] = {
    "no map": lambda p: p.frame(b"\x93\x01\x02\x03"),
    "cut msgpack": lambda p: p.frame(b"\x83\xa2re"),
    "random": lambda p: p.frame(bytes(range(200, 256))),
    "a list of 2^32": lambda p: p.frame(bomb(0xDD, 0xFFFFFFFF)),
    "a map of 2^32": lambda p: p.frame(bomb(0xDF, 0xFFFFFFFF)),
    "a blob of 2^32": lambda p: p.frame(bomb(0xC6, 0xFFFFFFFF)),
    "an array of 2^32": lambda p: p.frame(bomb(0xC9, 0xFFFFFFFF)),
    "text": lambda p: p.frame(b'{"re":2}', 0x81),
    "reserved bits": lambda p: p.frame(b"", 0xC2),
    "unknown kind": lambda p: p.frame(b"", 0x83),
    "masked": lambda p: p.raw(b"\x82\x81abcdx"),
    "a frame of 2^62": lambda p: p.raw(b"\x82\x7f" + struct.pack(">Q", 1 << 62)),
    "continuation of nothing": lambda p: p.frame(b"x", 0x80),
    "long ping": lambda p: p.frame(bytes(200), 0x89),
    "ping in parts": lambda p: p.frame(b"", 0x09),
    "message in a message": lambda p: (p.frame(b"a", 0x02), p.frame(b"b", 0x82))[0],
    "id of no kind": lambda p: p.send({"re": "two", "op": "ping"}),
    "another op": lambda p: p.send({"re": 2, "op": "step"}),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_rubbish_is_an_error_at_once(name: str) -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.recv()
        GARBAGE[name](peer)
        peer.recv()

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=10)
        begin = time.monotonic()
        with pytest.raises(clustergym.ProtocolError):
            c.request("ping")
        assert time.monotonic() - begin < 5
        c.close()


def test_messages_in_parts_with_pings_between_are_put_together() -> None:
    pongs: list[bytes] = []

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        request = peer.recv()
        frame = clustergym.codec.encode({"re": request["id"], "op": "ping", "t": "x" * 300})
        peer.frame(frame[:100], 0x02)
        peer.frame(b"there?", 0x89)
        peer.frame(frame[100:200], 0x00)
        for byte in bytes((0x80, len(frame) - 200)) + frame[200:]:
            peer.raw(bytes((byte,)))  # one byte at a time
        request = peer.recv()
        pongs.extend(peer.pongs)
        answer(peer, request)
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c:
        assert c.request("ping")["t"] == "x" * 300
        c.request("ping")
        assert pongs == [b"there?"]


def test_large_messages_pass_both_ways() -> None:
    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "echo":
                peer.send({"re": request["id"], "op": "echo", "x": request["x"]})
            else:
                answer(peer, request)

    with FakeServer(serve) as server, Client(server.url, timeout=20) as c:
        for n in (0, 1, 100, 125, 126, 511, 512, 513, 65535, 65536, 70001):
            x = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8)
            assert (c.request("echo", {"x": x})["x"] == x).all()


def test_a_server_that_reads_only_when_it_is_read_from_is_no_deadlock() -> None:
    big = np.zeros(6 << 20, np.uint8)

    def serve_raw(peer: Peer) -> None:
        answer(peer, peer.recv())
        request = peer.recv()
        peer.send({"re": request["id"], "op": "ping", "x": big})  # blocks until the client takes it
        got = 0
        while got < big.nbytes:  # far faster than unmasking in Python
            more = len(peer.sock.recv(1 << 20))
            if not more:
                return
            got += more
        peer.send({"re": request["id"] + 1, "op": "ping"})
        time.sleep(0.2)

    with FakeServer(serve_raw) as server:
        c = Client(server.url, timeout=20)
        first = c.post("ping")
        second = c.post("ping", {"x": big})
        assert c.wait(first)["x"].nbytes == big.nbytes
        c.wait(second)
        c.close()


def test_a_request_above_the_servers_limit_is_refused_here() -> None:
    def serve(peer: Peer) -> None:
        peer.recv()
        peer.send(welcome(limits={"frame_in": 1000}))
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c:
        with pytest.raises(clustergym.TooLarge, match="1000"):
            c.request("ping", {"x": bytes(2000)})
        assert c.request("ping")["op"] == "ping"


# Refusals.


def test_busy_is_tried_again_under_a_new_id() -> None:
    seen: list[int] = []

    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "ping":
                seen.append(request["id"])
                if len(seen) < 4:
                    peer.send({"re": request["id"], "op": "error", "code": "busy", "msg": "full", "retry": True})
                    continue
            answer(peer, request)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c:
        c.request("ping")
        assert seen == [2, 3, 4, 5]
        assert c.stats.retries == 3


def test_busy_for_ever_ends_with_the_timeout() -> None:
    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "ping":
                peer.send({"re": request["id"], "op": "error", "code": "busy", "msg": "full", "retry": True})
            else:
                answer(peer, request)

    # The time may also be over between a request and its refusal.
    with FakeServer(serve) as server, Client(server.url, timeout=60) as c:
        with pytest.raises((clustergym.Busy, clustergym.ReplyTimeout), match=r"full|within"):
            c.request("ping", timeout=0.3)


@pytest.mark.parametrize("code", sorted(errors._BY_CODE))
def test_every_code_has_a_class_that_survives_pickling(code: str) -> None:
    reply = {"code": code, "msg": "text", "retry": True, "env": [1, 2], "want": "less", "got": "more"}
    e = error_from_reply(reply, "step")
    assert type(e) is not clustergym.RemoteError
    for again in (e, pickle.loads(pickle.dumps(e)), copy.copy(e)):
        assert (again.code, again.env, again.want, again.got, again.op) == (code, (1, 2), "less", "more", "step")
        assert str(again) == f"step: {code}: text; got more; want less (environments 1, 2)"


def test_all_errors_have_one_base_and_survive_pickling() -> None:
    for name in clustergym.__all__:
        kind = getattr(clustergym, name)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            assert issubclass(kind, clustergym.ClusterGymError)
    for code in (1000, 1001, 1011, 4400, 4401, 4406, 4408, 4409, 4410, 4429, 4503):
        e = error_from_close(code, "do this", "step")
        assert "do this" in str(e)
        assert str(pickle.loads(pickle.dumps(e))) == str(e)
    t = clustergym.ReplyTimeout("x", "step", 2.0)
    assert pickle.loads(pickle.dumps(t)).waited_for == "step"


def test_a_refusal_of_an_unknown_kind_is_still_an_error() -> None:
    assert type(error_from_reply({"code": "new_code", "msg": "m"})) is clustergym.RemoteError
    assert error_from_reply({}).code == "internal"
    assert error_from_reply({"code": "busy", "env": "no list"}).env == ()


def test_an_unreadable_frame_reported_by_the_server_is_an_error() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.recv()
        peer.send({"re": 0, "op": "error", "code": "bad_frame", "msg": "not msgpack", "retry": False})
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c, pytest.raises(clustergym.BadFrame):
        c.request("ping")


def test_a_drain_notice_is_a_warning_and_an_attribute() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        request = peer.recv()
        peer.send({"re": 0, "op": "notice", "msg": "maintenance at noon"})
        peer.send({"re": 0, "op": "drain", "timeout_s": 30.0, "msg": "ends soon"})
        answer(peer, request)
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c:
        with pytest.warns(clustergym.DrainWarning, match="ends soon"):
            c.request("ping")
        assert c.draining
        assert c.notices == ["maintenance at noon", "ends soon"]


# Breaks.


def test_a_cut_connection_is_resumed_and_unanswered_requests_are_sent_again() -> None:
    hellos: list[Any] = []
    steps: list[int] = []

    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "hello":
                hellos.append(request.get("resume"))
                peer.send(welcome())
            elif request["op"] == "step":
                steps.append(request["id"])
                if len(steps) == 2:
                    peer.cut()
                    return
                peer.send(result(request, value=len(steps)))
            else:
                answer(peer, request)

    with FakeServer(serve) as server, Client(server.url, timeout=10) as c:
        h = clustergym.Handle(c, "X-v1")
        first = h.post_step(np.array([0]))
        assert h.wait(first)["r"] == 1
        second = h.post_step(np.array([0]))
        assert h.wait(second)["r"] == 3
        assert steps == [first, second, second]
        assert hellos == [None, {"session": "s1", "token": "token", "last": {"1": first, "0": 2}}]
        assert c.stats.resumes == 1


def test_replies_that_come_twice_after_a_resume_are_dropped() -> None:
    connections: list[Peer] = []

    def serve(peer: Peer) -> None:
        connections.append(peer)
        hello = peer.recv()
        peer.send(welcome())
        if hello.get("resume"):
            kept = {"re": 2, "op": "ping", "t": "kept"}
            peer.send(kept)
            request = peer.recv()
            assert request["id"] == 2
            peer.send(kept)
            serve_well(peer)
        peer.recv()
        peer.cut()

    with FakeServer(serve) as server, Client(server.url, timeout=10) as c:
        assert c.request("ping")["t"] == "kept"
        assert c.request("ping")["re"] == 3


def test_resuming_is_tried_until_the_time_is_up() -> None:
    tries: list[float] = []

    def serve(peer: Peer) -> None:
        hello = peer.recv()
        tries.append(time.monotonic())
        if hello.get("resume"):
            peer.cut()
            return
        peer.send(welcome())
        peer.recv()
        peer.cut()

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=1.5)
        with pytest.raises(clustergym.ConnectionLost, match=r"ping: the connection broke .* could not be resumed"):
            c.request("ping")
        assert len(tries) > 3
        c.close()


def test_a_session_the_server_no_longer_knows_is_expired_and_the_next_call_begins_another() -> None:
    count = [0]

    def serve(peer: Peer) -> None:
        hello = peer.recv()
        if hello.get("resume"):
            peer.close(4410, "no such session, or it has ended: say hello without resume to begin a new one")
            return
        count[0] += 1
        peer.send(welcome())
        if count[0] == 1:
            answer(peer, peer.recv())
            peer.recv()
            peer.cut()
        else:
            serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=10) as c:
        env = clustergym.RemoteEnv("X-v1", client=c)
        with pytest.raises(clustergym.SessionExpired, match="no such session"):
            env.reset()
        obs, _ = env.reset()
        assert obs["x"].shape == (2,)
        assert count[0] == 2
        env.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [(4409, clustergym.TakenOver), (4410, clustergym.SessionExpired), (1001, clustergym.ConnectionLost)],
)
def test_a_close_that_ends_the_session_is_not_resumed(code: int, kind: type[Exception]) -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.recv()
        peer.close(code, "what to do")
        try:
            peer.recv()
        except Gone:
            pass

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=5)
        with pytest.raises(kind, match="what to do"):
            c.request("ping")
        assert len(server.peers) == 1
        c.close()


def test_without_resume_a_break_is_an_error_at_once() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        peer.recv()
        peer.cut()

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=5, resume=False)
        with pytest.raises(clustergym.ConnectionLost):
            c.request("ping")
        c.close()


def test_a_connection_that_falls_silent_is_probed_given_up_and_resumed() -> None:
    def serve(peer: Peer) -> None:
        hello = peer.recv()
        peer.send(welcome())
        if hello.get("resume"):
            serve_well(peer)
        while True:  # takes everything, answers nothing: a dead path
            peer.recv_frame()

    with FakeServer(serve) as server, Client(server.url, timeout=20, probe=0.5) as c:
        begin = time.monotonic()
        assert c.request("ping")["op"] == "ping"
        assert time.monotonic() - begin < 10
        assert c.stats.resumes == 1


def test_a_slow_server_that_answers_pings_is_waited_for() -> None:
    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        request = peer.recv()
        end = time.monotonic() + 3.5
        peer.sock.settimeout(0.2)
        while time.monotonic() < end:
            try:
                head, data = peer.recv_frame()
                if head == 0x89:
                    peer.frame(data, 0x8A)
            except Gone:
                pass
        peer.sock.settimeout(20)
        answer(peer, request)
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=20, probe=0.5) as c:
        c.request("ping")
        assert c.stats.resumes == 0


def test_an_idle_connection_answers_pings_and_is_resumed() -> None:
    log: list[str] = []

    def serve(peer: Peer) -> None:
        hello = peer.recv()
        peer.send(welcome())
        if hello.get("resume"):
            log.append("resumed")
            serve_well(peer)
        peer.frame(b"there?", 0x89)
        assert peer.recv_frame() == (0x8A, b"there?")
        log.append("pong")
        peer.cut()

    with FakeServer(serve) as server, Client(server.url, timeout=10, keepalive=0.1) as c:
        end = time.monotonic() + 10
        while log != ["pong", "resumed"] and time.monotonic() < end:
            time.sleep(0.05)
        assert log == ["pong", "resumed"]
        assert c.request("ping")["op"] == "ping"


def test_a_reply_that_comes_while_nobody_waits_is_kept() -> None:
    sent = threading.Event()

    def serve(peer: Peer) -> None:
        answer(peer, peer.recv())
        answer(peer, peer.recv())
        sent.set()
        serve_well(peer)

    with FakeServer(serve) as server, Client(server.url, timeout=10, keepalive=0.1) as c:
        rid = c.post("ping")
        sent.wait(5)
        end = time.monotonic() + 5
        while rid not in c._replies and time.monotonic() < end:
            time.sleep(0.05)
        assert rid in c._replies
        assert c.wait(rid)["re"] == rid


def test_an_interrupt_in_the_midst_of_a_wait_leaves_the_session_usable() -> None:
    with FakeServer() as server, Client(server.url, timeout=10) as c:
        rid = c.post("ping")
        real = c._conn._recv_into  # type: ignore[union-attr]

        def interrupted(view: memoryview) -> int:
            c._conn._recv_into = real  # type: ignore[union-attr]
            raise KeyboardInterrupt

        c._conn._recv_into = interrupted  # type: ignore[union-attr]
        with pytest.raises(KeyboardInterrupt):
            c.wait(rid)
        assert c.request("ping")["re"] == rid + 1


# Ends.


def test_close_says_bye_and_is_harmless_twice() -> None:
    ops: list[str] = []

    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            ops.append(request["op"])
            answer(peer, request)

    with FakeServer(serve) as server:
        c = Client(server.url, timeout=5)
        c.close()
        c.close()
        assert c.closed
        with pytest.raises(clustergym.ClusterGymError, match="closed"):
            c.request("ping")
    assert ops == ["hello", "bye"]
    assert server.peers[0].closed_with == 1000


def test_a_forgotten_client_closes_without_waiting() -> None:
    with FakeServer() as server:
        c = Client(server.url, timeout=5)
        begin = time.monotonic()
        del c
        end = time.monotonic() + 5
        while server.peers[0].closed_with is None and time.monotonic() < end:
            time.sleep(0.01)
        assert server.peers[0].closed_with == 1000
        assert time.monotonic() - begin < 3


def test_closing_with_a_dead_server_does_not_hang() -> None:
    with FakeServer(silent) as server:
        c = Client(server.url, timeout=30)
        begin = time.monotonic()
        c.close()
        assert time.monotonic() - begin < 5


def test_a_pickled_client_dials_on_its_own() -> None:
    with FakeServer() as server, Client(server.url, timeout=5) as c:
        with pickle.loads(pickle.dumps(c)) as other:
            assert other.request("ping")["re"] == 2
            assert c.request("ping")["re"] == 2
        assert len(server.peers) == 2


def test_tls_contexts_of_ones_own_cannot_be_pickled() -> None:
    with FakeServer() as server, Client(server.url, context=ssl.create_default_context()) as c:
        with pytest.raises(TypeError, match="ca, cert and key"):
            pickle.dumps(c)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="timeout"):
        Client("ws://127.0.0.1:1", timeout=0)


def test_nothing_of_this_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with FakeServer() as server, Client(server.url) as c:
            c.request("ping")


def test_wrong_replies_to_open_and_step_are_refused() -> None:
    def serve(peer: Peer) -> None:
        while True:
            request = peer.recv()
            if request["op"] == "open":
                reply = opened(request)
                if request["env"] == "NoSpace-v1":
                    del reply["obs_space"]
                if request["env"] == "NoHandle-v1":
                    del reply["h"]
                peer.send(reply)
            elif request["op"] == "step":
                reply = result(request)
                kind = request["a"][0]
                if kind == 0:
                    reply["obs"] = {"x": np.zeros((1, 3), np.float32)}
                elif kind == 1:
                    del reply["r"]
                else:
                    reply["te"] = np.zeros(2, bool)
                peer.send(reply)
            else:
                answer(peer, request)

    with FakeServer(serve) as server, Client(server.url, timeout=5) as c:
        for name in ("NoSpace-v1", "NoHandle-v1"):
            with pytest.raises(clustergym.ProtocolError):
                clustergym.RemoteEnv(name, client=c)
        env = clustergym.RemoteEnv("X-v1", client=c)
        env.reset()
        for action in range(3):
            with pytest.raises(clustergym.ProtocolError):
                env.step(action)
        vec = clustergym.RemoteVectorEnv("X-v1", 1, client=c)
        vec.reset()
        for action in range(3):
            with pytest.raises(clustergym.ProtocolError):
                vec.step([action])


def test_evaluate_plays_every_window_and_masks_reach_the_policy() -> None:
    opened_with: list[Any] = []

    def serve(peer: Peer) -> None:
        step = 0
        while True:
            request = peer.recv()
            if request["op"] == "open":
                opened_with.append((request["env"], request["kwargs"]))
                peer.send(opened(request) | {"meta": {"windows": 3}})
            elif request["op"] == "step":
                step += 1
                reply = result(request, value=1.0)
                reply["te"] = np.array([step % 4 == 0])
                peer.send(reply)
            else:
                answer(peer, request)

    seen: list[Any] = []

    def act(obs: Any, mask: Any) -> int:
        seen.append((obs["x"].shape, mask.shape))
        return int(mask.argmax())

    with FakeServer(serve) as server:
        scores = clustergym.evaluate(act, server.url, "mine", timeout=10)
    assert scores == [{"r": 4.0, "l": 4.0}] * 3
    assert opened_with == [("eval", {"policy": "mine"})]
    assert seen == [((2,), (3,))] * 12
