"""One WebSocket connection, dialled and upgraded by ``_dial`` and framed here.

Frames are read and written here because that happens ten thousand times a second. Every wait has one deadline for all of
it, however many bytes, frames or pings come meanwhile. The socket never blocks: waiting and reading are separate, so that
an interrupt of a wait finds no byte half read. An interrupt in the short moment of reading or writing itself breaks the
connection on purpose, because the position in the stream is unknown; the session is then resumed.
"""

from __future__ import annotations

import math
import os
import select
import socket
import ssl
import struct
import threading
import time
from typing import Any

import numpy as np

from ._dial import Lost, dial_socket, normalize_url
from ._patience import Patience
from .errors import ConnectionLost, ProtocolError, error_from_close

__all__ = ["Closed", "Connection", "Late", "Lost", "Silent", "Turn", "as_error", "dial", "normalize_url"]

_TICK = 1.0  # a waiting reader looks at the clock, and at whether the connection was closed, this often
_CONT, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_FIRST_BUFFER = 1 << 16
_ident = threading.get_ident


class Closed(Exception):
    """The other end closed the connection and said why."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class Late(Exception):
    """The deadline of a wait has passed. What has come so far is kept."""


class Silent(Exception):
    """Nothing was heard for a while, not even a pong. The path may be dead, or the server busy."""


class Turn:
    """A lock that knows its owner.

    An interrupt between taking an ordinary lock and the ``try`` that releases it leaves it locked for good. Here ``take``
    stands inside the ``try`` and ``give`` releases only what this thread has.
    """

    __slots__ = ("_owner",)

    def __init__(self) -> None:
        self._owner: dict[str, int] = {}

    def take(self) -> bool:
        """Takes the turn if nobody has it. Returns whether this thread has it now."""
        me = _ident()
        return self._owner.setdefault("", me) == me  # one atomic operation

    @property
    def mine(self) -> bool:
        """Whether this thread has the turn."""
        return self._owner.get("") == _ident()

    @property
    def taken(self) -> bool:
        """Whether any thread has the turn."""
        return "" in self._owner

    def give(self) -> None:
        """Ends this thread's turn, if it has it."""
        if self._owner.get("") == _ident():
            self._owner.pop("", None)


def _mask(payload: bytes, key: bytes) -> bytes:
    n = len(payload)
    if n <= 512:
        keys = (key * ((n + 3) >> 2))[:n]
        return (int.from_bytes(payload, "little") ^ int.from_bytes(keys, "little")).to_bytes(n, "little")
    words = np.frombuffer(payload + b"\0" * (-n % 4), np.uint32) ^ np.frombuffer(key, np.uint32)
    return words.tobytes()[:n]


def _ready(fd: int, read: bool, write: bool, seconds: float) -> bool:
    """Waits until a descriptor can be read or written, as asked, and returns whether it can."""
    if fd < 0:
        return True  # closed meanwhile: the next call says so
    if hasattr(select, "poll"):  # select itself ends at descriptor 1023
        poller = select.poll()
        poller.register(fd, (select.POLLIN if read else 0) | (select.POLLOUT if write else 0))
        return bool(poller.poll(math.ceil(seconds * 1000)))
    one = [fd]
    return any(select.select(one if read else [], one if write else [], [], seconds)[:2])


class _TCP:
    """A plain socket that never blocks."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.send, self.recv_into = sock.send, sock.recv_into
        self.fileno, self.close = sock.fileno, sock.close
        self._poller: Any = None
        if hasattr(select, "poll"):
            self._poller = select.poll()
            self._poller.register(sock.fileno(), select.POLLIN)

    def readable(self, seconds: float) -> bool:
        """Waits until there is something to read. One thread at a time."""
        if self._poller is None:
            return _ready(self.fileno(), True, False, seconds)
        return bool(self._poller.poll(math.ceil(seconds * 1000)))

    def writable(self, seconds: float, or_readable: bool) -> bool:
        """Waits until something can be written (or read)."""
        return _ready(self.fileno(), or_readable, True, seconds)


class _TLS:
    """A TLS socket that never blocks, and that one thread may write to while another waits to read.

    OpenSSL allows one call on a connection at a time, so both sides take a lock and neither holds it while it waits.
    """

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self.sock = sock
        self.lock = threading.Lock()
        self.fileno, self.close = sock.fileno, sock.close
        self._read_writes = self._write_reads = False  # what the last call in each direction waits for
        sock.setblocking(False)

    def recv_into(self, view: memoryview) -> int:
        with self.lock:
            try:
                return self.sock.recv_into(view)
            except ssl.SSLWantReadError:
                self._read_writes = False
            except ssl.SSLWantWriteError:
                self._read_writes = True
        raise BlockingIOError

    def send(self, data: bytes | memoryview) -> int:
        with self.lock:
            try:
                return self.sock.send(data)
            except ssl.SSLWantWriteError:
                self._write_reads = False
            except ssl.SSLWantReadError:
                self._write_reads = True
        raise BlockingIOError

    def readable(self, seconds: float) -> bool:
        """Waits until reading may succeed."""
        with self.lock:
            if self.sock.fileno() < 0 or self.sock.pending():
                return True
        return _ready(self.fileno(), not self._read_writes, self._read_writes, seconds)

    def writable(self, seconds: float, or_readable: bool) -> bool:
        """Waits until writing (or reading) may succeed."""
        return _ready(self.fileno(), or_readable or self._write_reads, not self._write_reads, seconds)


def dial(
    url: str,
    token: str | None,
    deadline: float,
    context: ssl.SSLContext | None,
    max_frame: int,
    headers: dict[str, str] | None = None,
    reading: Turn | None = None,
) -> Connection:
    """Opens a connection and upgrades it.

    Args:
        url: as :func:`normalize_url` returns it.
        token: sent as a bearer token, None for none.
        deadline: when to give up, in time.monotonic's seconds.
        context: for ``wss``; None checks the server against the system's authorities.
        max_frame: bytes of the longest message that is accepted.
        headers: more headers for the upgrade, which proxies may require.
        reading: the turn that a thread must have to read the connection; None makes one.

    Raises:
        Unauthorized: the server refused the token.
        ReplyTimeout: no answer in time.
        ProtocolError: the other end is not a server of this protocol.
        Lost: refused or unreachable.
    """
    return Connection(dial_socket(url, token, deadline, context, headers), max_frame, reading)


class Connection:
    """Frames over a connected socket. One thread at a time may read; any may write.

    A message stays the next one until :meth:`taken` is called, so that an interrupt before its contents are kept loses
    nothing.
    """

    def __init__(self, sock: socket.socket, max_frame: int, reading: Turn | None = None) -> None:
        self._sock: _TCP | _TLS = _TLS(sock) if isinstance(sock, ssl.SSLSocket) else _TCP(sock)
        self._send = self._sock.send
        self._recv_into = self._sock.recv_into
        self._readable = self._sock.readable
        self.patience = Patience(isinstance(self._sock, _TCP))
        self.reading = reading if reading is not None else Turn()  # of the thread that reads
        self._writing = Turn()
        self._rest = b""  # of a control frame that could not be written at once
        self._keys, self._key_at = b"", 0
        self._max_frame = max_frame
        self._buf = bytearray(_FIRST_BUFFER)
        self._view = memoryview(self._buf)
        self._start = self._end = 0  # unread bytes are buf[start:end]
        self._upto = 0  # where the message that was returned last ends
        self._whole: bytes | None = None  # or that message, if it came in several frames
        self._parts: list[bytes] | None = None  # of a message in several frames
        self._parts_len = 0
        self.broken: Exception | None = None
        self.bytes_in = 0
        self.bytes_out = 0

    def fileno(self) -> int:
        """The socket's descriptor, -1 once closed."""
        return int(self._sock.fileno())

    # Writing.

    def _frame(self, payload: bytes, opcode: int) -> bytes:
        # Keys are random, drawn from the system a page at a time.
        at = self._key_at
        if at >= len(self._keys):
            self._keys, at = os.urandom(4096), 0
        self._key_at = at + 4
        key = self._keys[at : at + 4]
        n = len(payload)
        if n < 126:
            return bytes((0x80 | opcode, 0x80 | n)) + key + _mask(payload, key)
        if n < 1 << 16:
            return struct.pack(">BBH", 0x80 | opcode, 0xFE, n) + key + _mask(payload, key)
        return struct.pack(">BBQ", 0x80 | opcode, 0xFF, n) + key + _mask(payload, key)

    def send(self, payload: bytes, deadline: float) -> None:
        """Writes one message.

        Raises:
            Lost: the connection is gone, or deadline (of time.monotonic) passed in the middle of the frame, which makes
                the connection useless.
        """
        done = False
        try:
            while not self._writing.take():  # another thread writes a control frame, which takes no time
                if time.monotonic() >= deadline:
                    raise Lost("send: another thread is writing")
                time.sleep(0.0002)
            if self.broken is not None:
                raise Lost(str(self.broken))
            frame = self._rest + self._frame(payload, _BINARY)
            sent = 0
            try:
                sent = self._send(frame)
            except BlockingIOError:
                pass
            except OSError as e:
                raise Lost(f"send: {e}") from e
            if sent != len(frame):
                self._send_rest(memoryview(frame)[sent:], deadline)
            self._rest = b""
            self.bytes_out += len(frame)
            done = True
        finally:
            # Also after an interrupt: half a frame may have been sent, so nothing may follow it.
            if not done and self._writing.mine:
                self.broken = self.broken or Lost("a frame was cut short")
            self._writing.give()

    def _send_rest(self, rest: memoryview, deadline: float) -> None:
        nested = self.reading.mine
        try:
            while True:
                # A server that cannot send its replies stops reading, so read them here if no other thread does.
                may_read = self.reading.take() and self._end - self._start <= self._max_frame
                while may_read and self._readable(0):
                    self._read()
                    may_read = self._end - self._start <= self._max_frame
                try:
                    rest = rest[self._send(rest) :]
                except BlockingIOError:
                    pass
                except OSError as e:
                    raise Lost(f"send: {e}") from e
                if not rest:
                    return
                left = deadline - time.monotonic()
                if self.broken is not None:
                    raise Lost(str(self.broken))
                if left <= 0:
                    raise Lost("send: the server takes no more bytes")
                self._sock.writable(min(0.1, left), may_read)
        finally:
            if not nested:
                self.reading.give()

    def _control(self, payload: bytes, opcode: int) -> None:
        """Sends a control frame without waiting. It is dropped if another frame is being sent or there is no room."""
        if self._writing.mine:
            return
        done = True
        try:
            if self._writing.take() and self.broken is None:
                done = False
                frame = self._rest or self._frame(payload, opcode)
                sent = 0
                try:
                    sent = self._send(frame)
                except BlockingIOError:
                    pass
                self._rest = frame[sent:]
                self.bytes_out += sent
                done = True
        except OSError as e:
            self.broken = self.broken or Lost(f"send: {e}")
        finally:
            if not done:
                self.broken = self.broken or Lost("a frame was cut short")
            self._writing.give()

    # Reading.

    def recv(self, deadline: float, probe: float) -> memoryview:
        """The next message. It is valid, and stays the next, until :meth:`taken`.

        Args:
            deadline: when to give up, in time.monotonic's seconds, whatever else has come meanwhile.
            probe: seconds of silence after which a ping is sent.

        Raises:
            Late: no message came until deadline. What had come so far is kept.
            Silent: nothing was heard for twice as long as probe. The connection may still be good: call again to wait on.
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
                self._wait(deadline, probe)
                self._read()
            message = self._next()
            if message is not None:
                self.patience.note(time.perf_counter() - begin)
                return message
            if time.monotonic() >= deadline:
                raise Late

    def taken(self) -> None:
        """Says that the message returned last is kept elsewhere: the next one may follow."""
        if self._whole is not None:
            self._whole = None
        else:
            self._start = self._upto

    def poll(self, seconds: float = 0.5) -> memoryview | None:
        """The next message if it is already here, None if not. Pings are answered, for so many seconds at most."""
        until = time.monotonic() + seconds
        while True:
            message = self._next()
            if message is not None:
                return message
            if self.broken is not None:
                raise self.broken
            if time.monotonic() >= until or not self._readable(0):
                return None
            self._read()

    def _wait(self, deadline: float, probe: float) -> None:
        """Waits until there is something to read. An interrupt here finds everything in order."""
        if self.broken is not None:
            raise self.broken
        now = heard = time.monotonic()  # time without a reader does not count as silence
        probed = False
        tick = min(_TICK, probe)
        while True:
            left = deadline - now
            if self._readable(tick if left > tick else max(left, 0.0)):
                return
            now = time.monotonic()
            if self.broken is not None:
                raise self.broken
            if now >= deadline:
                raise Late
            silent = now - heard
            if silent >= 2 * probe:
                raise Silent
            if silent >= probe and not probed:
                probed = True
                self._control(b"", _PING)  # the server answers it even while it steps

    def _asked(self, until: float) -> bool:
        """Polls for bytes until the time until, of time.perf_counter, and returns whether some came."""
        while self.broken is None:
            if self._read():
                return True
            if time.perf_counter() > until:
                return False
        return False  # the next wait raises it

    def _read(self) -> bool:
        """Reads what is there, and returns whether that was anything. Ends the connection if it is interrupted."""
        if self.broken is not None:
            raise self.broken
        if self._start == self._end or self._end == len(self._buf):
            self._make_room()
        view = self._view[self._end :] if self._end else self._view
        done = False
        try:
            n = self._recv_into(view)
            if n == 0:
                self.broken = Lost("receive: the server closed the connection without a word")
                raise self.broken
            self._end += n
            done = True
        except BlockingIOError:
            done = True
            return False
        except OSError as e:
            self.broken = Lost(f"receive: {e}")
            raise self.broken from e
        finally:
            if not done and self.broken is None:
                self.broken = Lost("receive: reading was interrupted")
        self.bytes_in += n
        return True

    def _make_room(self) -> None:
        have = self._end - self._start
        done = False
        try:
            if have == 0:
                pass
            elif self._start >= len(self._buf) // 2:
                self._buf[:have] = self._buf[self._start : self._end]
            else:
                # It grows as bytes arrive, never to the size that a header claims.
                bigger = bytearray(2 * len(self._buf))
                bigger[:have] = self._view[self._start : self._end]
                self._buf, self._view = bigger, memoryview(bigger)
            self._start, self._end = 0, have
            done = True
        finally:
            if not done:
                self.broken = Lost("receive: reading was interrupted")

    def _next(self) -> memoryview | None:
        """The next whole message in the buffer. Control frames before it are handled."""
        if self._whole is not None:
            return memoryview(self._whole)
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
            if head == 0x82 and self._parts is None:
                self._upto = end
                return self._view[at:end]
            done = False
            try:
                self._whole = self._slow(head, bytes(self._view[at:end]))
                self._start = end
                done = True
            finally:
                if not done:
                    self.broken = self.broken or Lost("receive: reading was interrupted")
            if self._whole is not None:
                return memoryview(self._whole)

    def _slow(self, head: int, payload: bytes) -> bytes | None:
        """Handles control frames and parts of messages. Returns a message if this was its last part."""
        opcode = head & 0x0F
        if head & 0x70:
            raise self._fault(f"reserved bits in a frame (first byte {head:#04x})")
        if opcode >= 8:
            if len(payload) > 125 or not head & 0x80:
                raise self._fault("a control frame that is too long or in parts")
            if opcode == _PING:
                self._control(payload, _PONG)
            elif opcode == _CLOSE:
                code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 1005
                closed = Closed(code, payload[2:].decode("utf-8", "replace"))
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
        self._parts.append(payload)
        self._parts_len += len(payload)
        if not head & 0x80:
            return None
        whole = b"".join(self._parts)
        self._parts, self._parts_len = None, 0
        return whole

    def _fault(self, what: str) -> ProtocolError:
        fault = ProtocolError(f"the server sent {what}")
        self.broken = fault
        return fault

    # Ending.

    def say_goodbye(self) -> None:
        """Sends a close frame, if there is room for it at once."""
        if self.broken is None:
            self._control(struct.pack(">H", 1000), _CLOSE)

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
