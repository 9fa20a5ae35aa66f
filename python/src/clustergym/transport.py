"""One WebSocket connection, dialled by websocket-client and framed here.

websocket-client does what happens once per connection and is easy to get wrong: proxies, TLS, the upgrade. Frames are read
and written here, because that happens ten thousand times a second: a message costs one system call each way. Bytes that
have been read survive a timeout or an interrupt, so that a wait can be continued later.
"""

from __future__ import annotations

import math
import os
import select
import socket
import ssl
import struct
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import websocket

from ._patience import Patience
from .errors import ConnectionLost, ProtocolError, RemoteError, ReplyTimeout, Unauthorized, error_from_close

__all__ = ["Closed", "Connection", "Lost", "as_error", "dial", "normalize_url"]

SUBPROTOCOL = "gbp.v1.msgpack"

_TICK = 1.0  # a blocked read looks at the clock this often
_CONT, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_FIRST_BUFFER = 1 << 16


class Lost(Exception):
    """The connection broke without a close frame: the session may be resumed."""


class Closed(Exception):
    """The other end closed the connection and said why."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


def normalize_url(url: str) -> str:
    """The WebSocket address of url, which may be ``host:port``, ``http(s)://…`` or ``ws(s)://…``.

    Raises:
        ValueError: it has another scheme, no host, or carries a user, password or query.
    """
    full = url if "://" in url else "ws://" + url
    parts = urlsplit(full)
    scheme = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}.get(parts.scheme)
    if scheme is None:
        raise ValueError(f"url {url!r}: scheme {parts.scheme!r}, want ws, wss, http or https")
    if not parts.hostname:
        raise ValueError(f"url {url!r}: no host")
    if parts.username or parts.password or parts.query:
        raise ValueError(f"url {url!r}: a token belongs into token=, not into the address")
    path = parts.path if parts.path not in ("", "/") else "/v1/ws"
    return f"{scheme}://{parts.netloc}{path}"


def _mask(payload: bytes, key: bytes) -> bytes:
    n = len(payload)
    if n <= 512:
        keys = (key * ((n + 3) >> 2))[:n]
        return (int.from_bytes(payload, "little") ^ int.from_bytes(keys, "little")).to_bytes(n, "little")
    words = np.frombuffer(payload + b"\0" * (-n % 4), np.uint32) ^ np.frombuffer(key, np.uint32)
    return words.tobytes()[:n]


def _ready(fd: int, write: bool, seconds: float | None) -> bool:
    """Waits until a descriptor can be read (or written), and returns whether it can."""
    if hasattr(select, "poll"):  # select itself ends at descriptor 1023
        poller = select.poll()
        poller.register(fd, select.POLLOUT if write else select.POLLIN)
        return bool(poller.poll(None if seconds is None else math.ceil(seconds * 1000)))
    one = [fd]
    return any(select.select([] if write else one, one if write else [], [], seconds)[:2])


# Where a kernel's own time limits on sockets are known to work, they save a system call before each read and write.
_KERNEL_TIMEOUTS = sys.platform in ("linux", "darwin") and sys.maxsize > 1 << 32


class _TCP:
    """A plain socket with the kernel's time limits, which end a call with BlockingIOError."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.send, self.recv_into = sock.send, sock.recv_into
        self.fileno, self.close = sock.fileno, sock.close
        sock.settimeout(None)

    def settimeout(self, seconds: float) -> None:
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


class _TLS:
    """A TLS socket that one thread may write to while another waits for it to become readable.

    OpenSSL allows one call on a connection at a time, so both sides take a lock and neither holds it while it waits.
    """

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self.sock = sock
        self.lock = threading.Lock()
        self.timeout: float | None = None
        sock.settimeout(0)

    def settimeout(self, seconds: float | None) -> None:
        self.timeout = seconds

    def fileno(self) -> int:
        return self.sock.fileno()

    def pending(self) -> int:
        with self.lock:
            return self.sock.pending()

    def _retry(self, call: Any, arg: Any) -> int:
        end = None if self.timeout is None else time.monotonic() + self.timeout
        while True:
            with self.lock:
                try:
                    return int(call(arg))
                except ssl.SSLWantReadError:
                    write = False
                except ssl.SSLWantWriteError:
                    write = True
            left = None if end is None else max(0.0, end - time.monotonic())
            if not _ready(self.sock.fileno(), write, left):
                raise TimeoutError("timed out")

    def recv_into(self, view: memoryview) -> int:
        return self._retry(self.sock.recv_into, view)

    def send(self, data: bytes | memoryview) -> int:
        return self._retry(self.sock.send, data)

    def close(self) -> None:
        self.sock.close()


def dial(
    url: str,
    token: str | None,
    timeout: float,
    context: ssl.SSLContext | None,
    max_frame: int,
    headers: dict[str, str] | None = None,
) -> Connection:
    """Opens a connection and upgrades it.

    Args:
        url: as :func:`normalize_url` returns it.
        token: sent as a bearer token, None for none.
        timeout: seconds for all of it.
        context: for ``wss``; None checks the server against the system's authorities.
        max_frame: bytes of the longest message that is accepted.
        headers: more headers for the upgrade, which proxies may require.

    Raises:
        Unauthorized: the server refused the token.
        ReplyTimeout: no answer in time.
        ProtocolError: the other end is not a server of this protocol.
        Lost: refused or unreachable.
    """
    more = [f"{name}: {value}" for name, value in (headers or {}).items()]
    if token:
        more.append(f"Authorization: Bearer {token}")
    if url.startswith("wss:"):
        # The context alone decides about names and authorities.
        tls = context or ssl.create_default_context()
        sslopt: dict[str, Any] = {"context": tls, "check_hostname": tls.check_hostname, "cert_reqs": tls.verify_mode}
    else:
        sslopt = {}
    try:
        ws = websocket.create_connection(
            url,
            timeout=timeout,
            header=more,
            sslopt=sslopt,
            subprotocols=[SUBPROTOCOL],
            suppress_origin=True,
            redirect_limit=0,
            enable_multithread=False,
            sockopt=((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)),
        )
    except websocket.WebSocketBadStatusException as e:
        if e.status_code == 401:
            raise Unauthorized("unauthorized", f"{url} refused the token (HTTP 401)", op="connect") from None
        raise RemoteError(
            "capacity" if e.status_code == 503 else "bad_request",
            f"{url} answered HTTP {e.status_code} to the upgrade",
            retry=e.status_code in (502, 503, 504),
            op="connect",
        ) from None
    except (websocket.WebSocketTimeoutException, TimeoutError) as e:
        raise ReplyTimeout(f"connect: {url} did not answer within {timeout:g} s", "connect", timeout) from e
    except ssl.SSLError as e:
        raise ConnectionLost(f"connect: {url}: TLS: {e}", reason=str(e)) from e
    except (OSError, websocket.WebSocketException) as e:
        if type(e) is websocket.WebSocketException:
            raise ProtocolError(f"{url} is no server that speaks {SUBPROTOCOL}: {e}") from e
        raise Lost(f"{url}: {e}") from e
    sock = ws.sock
    assert sock is not None
    return Connection(sock, max_frame)


class Connection:
    """Frames over a connected socket. One thread at a time may read; any may write."""

    def __init__(self, sock: socket.socket, max_frame: int) -> None:
        self._sock: Any = sock
        if isinstance(sock, ssl.SSLSocket):
            self._sock = _TLS(sock)
        elif _KERNEL_TIMEOUTS:
            self._sock = _TCP(sock)
        self._timeout = _TICK
        self._sock.settimeout(_TICK)
        self._send = self._sock.send
        self._recv_into = self._sock.recv_into
        # Polling needs a socket with the kernel's time limits, because Python's own would wait first.
        self.patience = Patience(isinstance(self._sock, _TCP))
        self._ask = sock.recv_into
        self._wlock = threading.Lock()
        self.rlock = threading.Lock()  # held by the thread that reads
        self._keys, self._key_at = b"", 0
        self._max_frame = max_frame
        self._buf = bytearray(_FIRST_BUFFER)
        self._view = memoryview(self._buf)
        self._start = self._end = 0  # unread bytes are buf[start:end]
        self._parts: list[bytes] | None = None  # of a message in several frames
        self._parts_len = 0
        self.broken: Exception | None = None
        self.bytes_in = 0
        self.bytes_out = 0
        self.heard = 0.0  # when bytes came last, as far as the current wait knows
        self._probed = False  # whether the current wait has sent a ping

    def fileno(self) -> int:
        """The socket's descriptor, -1 once closed."""
        return int(self._sock.fileno())

    # Writing.

    def send(self, payload: bytes, deadline: float, opcode: int = _BINARY) -> None:
        """Writes one message.

        Raises:
            Lost: the connection is gone, or deadline (of time.monotonic) passed in the middle of the frame, which makes
                the connection useless.
        """
        n = len(payload)
        with self._wlock:
            if self.broken is not None:
                raise Lost(str(self.broken))
            # Keys are random, drawn from the system a page at a time.
            at = self._key_at
            if at >= len(self._keys):
                self._keys, at = os.urandom(4096), 0
            self._key_at = at + 4
            key = self._keys[at : at + 4]
            if n < 126:
                frame = bytes((0x80 | opcode, 0x80 | n)) + key + _mask(payload, key)
            elif n < 1 << 16:
                frame = struct.pack(">BBH", 0x80 | opcode, 0xFE, n) + key + _mask(payload, key)
            else:
                frame = struct.pack(">BBQ", 0x80 | opcode, 0xFF, n) + key + _mask(payload, key)
            done = False
            try:
                sent = self._send(frame)
                if sent != len(frame):
                    self._send_rest(memoryview(frame)[sent:], deadline)
                done = True
            except (TimeoutError, BlockingIOError):
                self._send_rest(memoryview(frame), deadline)
                done = True
            except OSError as e:
                raise Lost(f"send: {e}") from e
            finally:
                # Also after an interrupt: half a frame may have been sent, so nothing may follow it.
                if not done:
                    self.broken = self.broken or Lost("a frame was cut short")
            self.bytes_out += len(frame)

    def _send_rest(self, rest: memoryview, deadline: float) -> None:
        while rest:
            if time.monotonic() >= deadline:
                raise Lost("send: the server takes no more bytes")
            try:
                rest = rest[self._send(rest) :]
            except (TimeoutError, BlockingIOError):
                # A server that cannot send its replies stops reading, so read them here if no other thread does.
                if self.rlock.acquire(False):
                    try:
                        while self._has_bytes():
                            self._fill(time.monotonic() + 0.001, 60.0)
                    except TimeoutError:
                        pass
                    finally:
                        self.rlock.release()
            except OSError as e:
                raise Lost(f"send: {e}") from e

    # Reading.

    def recv(self, deadline: float, probe: float) -> memoryview:
        """The next message. It is valid until the next call.

        Args:
            deadline: when to give up, in time.monotonic's seconds.
            probe: seconds of silence after which a ping is sent; after as many again the connection is lost.

        Raises:
            TimeoutError: nothing came until deadline. What had come so far is kept.
            Closed: the server closed the connection.
            Lost: the connection broke.
            ProtocolError: the server sent something other than a WebSocket frame, or more than is allowed.
        """
        message = self._next()
        if message is not None:
            return message
        begin = time.perf_counter()
        spin = self.patience.spin
        while True:
            if not (spin and self._asked(begin + spin)):
                self._fill(deadline, probe)
            message = self._next()
            if message is not None:
                self.patience.note(time.perf_counter() - begin)
                return message

    def _asked(self, until: float) -> bool:
        """Polls for bytes until the time until, of time.perf_counter, and returns whether some came."""
        if self.broken is not None or self._end == len(self._buf):
            return False
        view = self._view[self._end :] if self._end else self._view
        while True:
            try:
                n = self._ask(view, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if time.perf_counter() > until:
                    return False
                continue
            except OSError:
                return False  # the next read raises it
            if n == 0:
                return False
            self._end += n
            self.bytes_in += n
            return True

    def poll(self) -> memoryview | None:
        """The next message if it is already here, None if not. Pings are answered."""
        while True:
            message = self._next()
            if message is not None:
                return message
            if not self._has_bytes():
                return None
            try:
                self._fill(time.monotonic() + 0.001, 60.0)
            except TimeoutError:
                return None

    def _has_bytes(self) -> bool:
        pending = self._sock.pending() if isinstance(self._sock, _TLS) else 0
        return bool(pending) or _ready(self._sock.fileno(), False, 0)

    def _fill(self, deadline: float, probe: float) -> None:
        """Reads what is there, and waits for it if nothing is."""
        if self.broken is not None:
            raise self.broken
        if self._end == len(self._buf):
            self._make_room()
        view = self._view[self._end :] if self._end else self._view
        first = True
        while True:
            try:
                n = self._recv_into(view)
            except (TimeoutError, BlockingIOError):
                now = time.monotonic()
                if now >= deadline:
                    raise TimeoutError("timed out") from None
                if first:
                    self.heard = now - self._timeout  # time without a reader does not count as silence
                    self._probed = first = False
                self._probe(now, probe)
                self._set_timeout(min(_TICK, deadline - now))
                continue
            except OSError as e:
                self.broken = Lost(f"receive: {e}")
                raise self.broken from e
            if n == 0:
                self.broken = Lost("receive: the server closed the connection without a word")
                raise self.broken
            self._end += n
            self.bytes_in += n
            if self._timeout != _TICK:
                self._set_timeout(_TICK)
            return

    def wait_briefly(self, seconds: float) -> None:
        """Lets the next read time out after so many seconds instead of one second."""
        if seconds < _TICK:
            self._set_timeout(max(seconds, 0.001))

    def _set_timeout(self, seconds: float) -> None:
        seconds = max(seconds, 0.001)
        if seconds != self._timeout:
            self._timeout = seconds
            self._sock.settimeout(seconds)

    def _probe(self, now: float, probe: float) -> None:
        """Asks a silent connection whether it still lives: the server answers pings even while it steps."""
        silent = now - self.heard
        if silent < probe:
            return
        if not self._probed:
            self._probed = True
            try:
                self.send(b"", now + probe, _PING)
            except Lost as e:
                self.broken = e
                raise
        elif silent >= 2 * probe:
            self.broken = Lost(f"receive: silence for {silent:.0f} s, and no answer to a ping")
            raise self.broken

    def _make_room(self) -> None:
        have = self._end - self._start
        if self._start >= len(self._buf) // 2:
            self._buf[:have] = self._buf[self._start : self._end]
        else:
            # It grows as bytes arrive, never to the size that a header claims.
            bigger = bytearray(2 * len(self._buf))
            bigger[:have] = self._view[self._start : self._end]
            self._buf, self._view = bigger, memoryview(bigger)
        self._start, self._end = 0, have

    def _next(self) -> memoryview | None:
        """Takes the next whole message from the buffer, and handles control frames before it."""
        while True:
            start, have = self._start, self._end - self._start
            if have < 2:
                return None
            buf = self._buf
            head, n = buf[start], buf[start + 1]
            at = start + 2
            if n < 126:
                pass
            elif n == 126:
                if have < 4:
                    return None
                n = buf[at] << 8 | buf[at + 1]
                at += 2
            elif n == 127:
                if have < 10:
                    return None
                n = int.from_bytes(buf[at : at + 8], "big")
                at += 8
            else:
                raise self._fault("the server masks its frames")
            if n + self._parts_len > self._max_frame:
                raise self._fault(f"a message of {n + self._parts_len} bytes, want at most {self._max_frame}")
            end = at + n
            if end > self._end:
                return None
            if end == self._end:
                self._start = self._end = 0
            else:
                self._start = end
            if head == 0x82 and self._parts is None:
                return self._view[at:end]
            whole = self._slow(head, self._view[at:end])
            if whole is not None:
                return whole

    def _slow(self, head: int, payload: memoryview) -> memoryview | None:
        """Handles control frames and parts of messages. Returns a message if this was its last part."""
        opcode = head & 0x0F
        if head & 0x70:
            raise self._fault(f"reserved bits in a frame (first byte {head:#04x})")
        if opcode >= 8:
            if len(payload) > 125 or not head & 0x80:
                raise self._fault("a control frame that is too long or in parts")
            if opcode == _PING:
                try:
                    self.send(bytes(payload), time.monotonic() + 5, _PONG)
                except Lost:
                    pass  # the next read fails too
            elif opcode == _CLOSE:
                code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 1005
                closed = Closed(code, bytes(payload[2:]).decode("utf-8", "replace"))
                self.broken = closed
                raise closed
            elif opcode != _PONG:
                raise self._fault(f"frame of kind {opcode}")
            return None
        if opcode == _CONT:
            if self._parts is None:
                raise self._fault("a continuation of nothing")
        elif opcode == _BINARY:
            if self._parts is not None:
                raise self._fault("a message inside another")
            self._parts = []
        else:
            raise self._fault("a text message" if opcode == _TEXT else f"frame of kind {opcode}")
        self._parts.append(bytes(payload))
        self._parts_len += len(payload)
        if not head & 0x80:
            return None
        whole = b"".join(self._parts)
        self._parts, self._parts_len = None, 0
        return memoryview(whole)

    def _fault(self, what: str) -> ProtocolError:
        fault = ProtocolError(f"the server sent {what}")
        self.broken = fault
        return fault

    # Ending.

    def say_goodbye(self) -> None:
        """Sends a close frame, if it still can."""
        try:
            self.send(struct.pack(">H", 1000), time.monotonic() + 1, _CLOSE)
        except (Lost, OSError):
            pass

    def close(self) -> None:
        """Closes the socket. Does not wait for anything."""
        self.broken = self.broken or Lost("closed")
        try:
            self._sock.close()
        except OSError:
            pass


def as_error(e: Exception, doing: str) -> Exception:
    """The exception that a caller sees for the end of a connection."""
    if isinstance(e, Closed):
        return error_from_close(e.code, e.reason, doing)
    if isinstance(e, Lost):
        return ConnectionLost(f"{doing}: {e}", reason=str(e))
    return e
