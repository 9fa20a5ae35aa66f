"""A server that does exactly what a test tells it to, right or wrong. One thread accepts, one serves each connection."""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

from clustergym.codec import decode, encode

LIMITS = {
    "frame_in": 1 << 24, "frame_out": 1 << 26, "envs": 4096, "handles": 64, "inflight": 4, "sessions": 256,
    "idle_s": 900.0, "resume_s": 10.0, "step_s": 60.0, "ping_s": 30.0,
}  # fmt: skip
OBS_SPACE = {"t": "dict", "k": [["x", {"t": "box", "shape": [2], "dtype": "float32", "low": -1.0, "high": 1.0}]]}
ACT_SPACE = {"t": "discrete", "n": 3, "start": 0, "dtype": "int64"}


class Gone(Exception):
    """The client has left."""


class Peer:
    """One client's connection, from the server's side."""

    def __init__(self, sock: socket.socket, path: str, headers: dict[str, str]) -> None:
        self.sock, self.path, self.headers = sock, path, headers
        self.pongs: list[bytes] = []
        self.closed_with: int | None = None

    def _exactly(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            try:
                more = self.sock.recv(n - len(data))
            except OSError as e:
                raise Gone from e
            if not more:
                raise Gone
            data += more
        return data

    def recv_frame(self) -> tuple[int, bytes]:
        """The next frame's first byte and payload."""
        head, n = self._exactly(2)
        assert n & 0x80, "clients must mask"
        n &= 0x7F
        if n == 126:
            (n,) = struct.unpack(">H", self._exactly(2))
        elif n == 127:
            (n,) = struct.unpack(">Q", self._exactly(8))
        key = self._exactly(4)
        data = self._exactly(n)
        return head, bytes(b ^ key[i % 4] for i, b in enumerate(data))

    def recv(self) -> dict[str, Any]:
        """The next request; pings are answered and pongs kept on the way."""
        while True:
            head, data = self.recv_frame()
            if head == 0x82:
                return decode(data)
            if head == 0x89:
                self.frame(data, 0x8A)
            elif head == 0x8A:
                self.pongs.append(data)
            elif head == 0x88:
                self.closed_with = int.from_bytes(data[:2], "big") if data else 1005
                raise Gone

    def frame(self, data: bytes, head: int = 0x82) -> None:
        """Sends one frame as it is."""
        n = len(data)
        if n < 126:
            start = bytes((head, n))
        elif n < 1 << 16:
            start = struct.pack(">BBH", head, 126, n)
        else:
            start = struct.pack(">BBQ", head, 127, n)
        self.raw(start + data)

    def raw(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise Gone from e

    def send(self, reply: dict[str, Any]) -> None:
        self.frame(encode(reply))

    def close(self, code: int, reason: str = "") -> None:
        self.frame(struct.pack(">H", code) + reason.encode(), 0x88)

    def cut(self) -> None:
        """Ends the connection without a close frame."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def welcome(re: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "re": re, "op": "welcome", "proto": 1, "server": {"name": "fake", "version": "0", "commit": ""}, "enc": "ext",
        "feat": ["async", "resume", "snapshot", "render"], "session": "s1", "resume": "token", "limits": LIMITS, **more,
    }  # fmt: skip


def opened(request: dict[str, Any], h: int = 1) -> dict[str, Any]:
    return {
        "re": request["id"], "op": "open", "h": h, "obs_space": OBS_SPACE, "act_space": ACT_SPACE,
        "spec": {"id": request["env"], "version": 1}, "meta": {},
    }  # fmt: skip


def result(request: dict[str, Any], n: int = 1, value: float = 0.0) -> dict[str, Any]:
    """The reply to a reset or a step."""
    reply: dict[str, Any] = {"re": request["id"], "op": request["op"], "obs": {"x": np.full((n, 2), value, np.float32)}}
    if request["op"] == "step":
        reply |= {"r": np.full(n, value), "te": np.zeros(n, bool), "tr": np.zeros(n, bool)}
    reply["info"] = {"action_mask": np.ones((n, 3), np.int8), "_action_mask": np.ones(n, bool)}
    return reply


def answer(peer: Peer, request: dict[str, Any]) -> None:
    """Answers one request properly."""
    op = request["op"]
    if op == "hello":
        peer.send(welcome())
    elif op == "open":
        peer.send(opened(request))
    elif op in ("reset", "step"):
        peer.send(result(request))
    else:
        peer.send({"re": request["id"], "op": op})


def serve_well(peer: Peer) -> None:
    """Answers everything properly until the client leaves."""
    while True:
        answer(peer, peer.recv())


class FakeServer:
    """Listens on a free port and runs behave for each connection. What behave raises is kept for the test's end."""

    def __init__(
        self,
        behave: Callable[[Peer], None] = serve_well,
        subprotocol: str | None = "gbp.v1.msgpack",
        host: str = "127.0.0.1",
    ) -> None:
        self.behave, self.subprotocol = behave, subprotocol
        self.errors: list[BaseException] = []
        self.peers: list[Peer] = []
        self.listener = socket.create_server((host, 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            thread.start()
            self.threads.append(thread)  # the end joins what is in here: not before it runs

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                sock.settimeout(20)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                head = b""
                while b"\r\n\r\n" not in head:
                    more = sock.recv(4096)
                    if not more:
                        return
                    head += more
                lines = head.decode().split("\r\n")
                headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:] if ": " in line)}
                key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
                accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
                offer = f"Sec-WebSocket-Protocol: {self.subprotocol}\r\n" if self.subprotocol else ""
                sock.sendall(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    f"Sec-WebSocket-Accept: {accept}\r\n{offer}\r\n".encode()
                )
                peer = Peer(sock, lines[0].split()[1], headers)
                self.peers.append(peer)
                self.behave(peer)
        except Gone:
            pass
        except OSError:
            pass
        except BaseException as e:
            self.errors.append(e)

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        for peer in self.peers:
            try:
                peer.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads[1:]:
            thread.join(5)
        if self.errors:
            raise self.errors[0]


def bomb(kind: int, claim: int) -> bytes:
    """A reply whose field claims claim elements of a kind (msgpack's first byte of the 32-bit form) and has none."""
    return (
        b"\x83"
        + msgpack.packb("re")
        + b"\x02"
        + msgpack.packb("op")
        + msgpack.packb("ping")
        + msgpack.packb("x")
        + bytes((kind,))
        + struct.pack(">I", claim)
    )
