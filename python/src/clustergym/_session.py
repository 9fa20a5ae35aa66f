"""A session with a server: it sends requests, receives replies, and resumes broken connections.

A thread that waits for its reply reads the socket itself and passes on the replies of other threads, so there is no
reader thread between socket and caller. An interrupt (KeyboardInterrupt, or what a signal handler raises) loses nothing: a
reply is kept before its bytes are given up, and a request that was cut short is sent again by a resume. After ten seconds
without a call, one thread for the whole process looks after the connection: it answers the server's pings and resumes the
session if the connection breaks.
"""

from __future__ import annotations

import math
import os
import random
import ssl
import threading
import time
import warnings
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from . import _memory
from . import server as _server
from ._keeper import keeper
from ._secrets import reveal
from ._version import __version__
from .codec import decode, encode
from .errors import (
    ClusterGymError,
    ConnectionLost,
    DrainWarning,
    ProtocolError,
    RemoteError,
    ReplyTimeout,
    ServerDied,
    TooLarge,
    error_from_close,
    error_from_reply,
)
from .transport import Closed, Connection, Late, Lost, Silent, Turn, as_error, dial, normalize_url

__all__ = ["Call", "Opened", "Session", "Stats", "fields_of", "request_head"]

PROTOCOL = (1, 1)
_FEATURES = ("async", "resume", "snapshot", "render", "shm", "schedule")
_OPENINGS = ("open", "simulate")  # operations that give what they make a number
_MAX_ID = (1 << 32) - 1
DEFAULT_MAX_FRAME = 64 << 20
# Codes of a close frame after which the server may still keep the session.
_RESUMABLE = (1005, 1006, 1011)
_TAKEN_OVER = 4409
_FIRST_BACKOFF, _LAST_BACKOFF = 0.05, 5.0
_FIND = 10.0  # seconds that one attempt to reach the server again may take


@dataclass
class Stats:
    """Counts of a client. Times are in seconds, from sending a request until its reply was read."""

    requests: int = 0
    replies: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    latency_last: float = 0.0
    latency_max: float = 0.0
    latency_sum: float = 0.0
    resumes: int = 0
    retries: int = 0

    @property
    def latency_mean(self) -> float:
        """Mean seconds until a reply, 0 before the first."""
        return self.latency_sum / self.replies if self.replies else 0.0


class Call:
    """A request on its way from being made until its reply was used, kept whole so that it can be sent again.

    Attributes:
        rid: its id, 0 until it is about to be sent.
        reply: the server's answer, None until it has come.
        listed: the reply is to be found by its id, since nobody holds this object.
        abandoned: nobody wants the reply.
    """

    __slots__ = (
        "abandoned", "generation", "handle", "head", "listed", "op", "posted", "reply", "rid", "sent", "spent", "tail",
    )  # fmt: skip

    def __init__(self, op: str, head: bytes, tail: bytes, handle: Opened | None) -> None:
        self.op = op
        self.head = head
        self.tail = tail
        self.handle = handle
        self.rid = 0
        self.generation = 0
        self.sent = self.spent = 0.0  # when it was posted, and how many seconds that took
        self.posted = self.listed = self.abandoned = False
        self.reply: dict[str, Any] | None = None


_heads: dict[tuple[str, int], bytes] = {}


def request_head(op: str, fields: int) -> bytes:
    """The beginning of a request up to its id; fields counts its other fields, without op and id."""
    head = _heads.get((op, fields))
    if head is None:
        n = fields + 2
        size = bytes((0x80 | n,)) if n < 16 else b"\xde" + n.to_bytes(2, "big")
        # The id is always four bytes wide, so that a frame is this head, the id, and the rest.
        head = _heads[op, fields] = size + encode("op") + encode(op) + encode("id") + b"\xce"
    return head


def fields_of(fields: Mapping[str, Any]) -> bytes:
    """The rest of a request: its fields, packed one after the other."""
    return b"".join(encode(part) for pair in fields.items() for part in pair)


class Opened(Protocol):
    """What a session asks of environments that are open in it.

    Attributes:
        last: id of the last reply about them.
    """

    last: int

    @property
    def outstanding(self) -> int:
        """How many requests are unanswered."""

    def ensure(self) -> int:
        """Their number in the session, in which they are opened first if they are not yet."""


class Session:
    """Requests by id, replies, and resuming: what a :class:`clustergym.Client` does, without how it is set up.

    Args:
        args: those of a client by their names.
    """

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._args = dict(args)
        self._begin()

    def _begin(self) -> None:
        a = self._args
        self.timeout = float(a["timeout"])
        self.stats = Stats()
        self.limits: dict[str, Any] = {}
        self.server: dict[str, Any] = {}
        self.features: frozenset[str] = frozenset()
        self.shares_memory = False
        self.draining = False
        self.notices: list[str] = []
        self.generation = 0  # counts sessions: a handle of an earlier one must be opened again
        self.url = ""
        self._conn: Connection | None = None
        self._context: ssl.SSLContext | None = a["context"]
        self._probe = float(a["probe"])
        self._rng = random.Random()
        self._closed = self._closing = False
        self._server: _server.LocalServer | None = None  # if it is this process's own
        self._unsaid: Exception | None = None  # how a session ended that the keep-alive thread looked after
        self._forget()

    def _forget(self) -> None:
        """Drops the session without telling the server. Also called in a child after a fork, hence the new locks."""
        if self._conn is not None:
            self._conn.close()
        self._conn = None
        self._session = ""
        self._resume_token = ""
        self._next_id = 2  # 1 is hello's
        self._pending: dict[int, Call] = {}
        self._replies: dict[int, Call] = {}  # read, and not yet asked for
        self._orphans: list[int] = []  # handles of interrupted opens, to be closed
        self._last_free = 0  # the last reply without a handle
        self._strays = 0  # hellos that resume, were given up, and may still reach the server
        self._moved_from: Connection | None = None  # the session may have left this one for another
        self._plock = threading.Lock()  # the order of ids on the wire, and the pending requests
        self._reading = Turn()  # of the thread that reads the socket
        self._cond = threading.Condition()
        self._followers = 0
        self._dial_lock = threading.RLock()
        self._handles: weakref.WeakValueDictionary[int, Opened] = weakref.WeakValueDictionary()
        self.last_used = time.monotonic()

    # Opening.

    def holds(self, generation: int) -> bool:
        """Whether what was opened in the session of that generation still is."""
        return generation == self.generation and self._conn is not None

    def enter(self, h: int, handle: Opened) -> None:
        """Notes the environments that have the number h, for resuming."""
        self._handles[h] = handle

    def pending(self, handle: Opened) -> int:
        """How many requests about these environments are unanswered."""
        return sum(call.handle is handle for call in list(self._pending.values()))

    @property
    def private(self) -> bool:
        """Whether the server is this process's own. It then reads any file that this user can read, by its absolute path."""
        self.connect()
        return self._server is not None

    def connect(self, deadline: float | None = None) -> Connection:
        """The connection, dialled and greeted first if there is none."""
        conn = self._conn
        if conn is not None:
            return conn
        if deadline is None:
            deadline = time.monotonic() + self.timeout
        with self._dial_lock:
            if self._closed:
                raise ClusterGymError("the client is closed")
            if self._conn is None:
                unsaid, self._unsaid = self._unsaid, None
                if unsaid is not None:
                    raise unsaid
                self._open_session(deadline)
            assert self._conn is not None
            return self._conn

    def _open_session(self, deadline: float) -> None:
        a = self._args
        url, token = a["url"] or os.environ.get("CLUSTERGYM_URL"), a["token"]
        self._server = None
        if not url:
            self._server = _server.shared(max(0.001, deadline - time.monotonic()))
            url, token = self._server.url, self._server._token
        else:
            token = reveal(token, "token") if token is not None else None
            if token is None:
                token = os.environ.get("CLUSTERGYM_TOKEN")
                if token is None and a["token"] is not None:
                    raise ValueError("token: only the process that hid it knows it; set CLUSTERGYM_TOKEN in this one")
        self.url = normalize_url(url)
        self._token = token
        self._headers = {name: reveal(value, f"header {name}") or "" for name, value in (a["headers"] or {}).items()}
        if self._context is None and (a["ca"] or a["cert"]):
            context = ssl.create_default_context(cafile=None if a["ca"] is None else os.fspath(a["ca"]))
            if a["cert"]:
                context.load_cert_chain(a["cert"], a["key"])
            self._context = context
        try:
            conn, welcome = self._hello(deadline, None)
        except (Lost, Closed) as e:
            self._own_server_ended("connect", 0.1)
            raise as_error(e, "connect") from e
        try:
            self.generation += 1
            self._next_id = 2
            self._handles.clear()
            self._pending.clear()
            self._replies.clear()
            self._orphans.clear()
            self._last_free = 0
            self._session = str(welcome.get("session", ""))
            self._resume_token = str(welcome.get("resume") or "") if a["resume"] and "resume" in self.features else ""
            self.draining = False
            self.last_used = time.monotonic()
            self._conn = conn
        finally:
            if self._conn is not conn:  # interrupted: the server need not keep the session
                conn.say_goodbye()
                conn.close()
        if a["keepalive"] > 0:
            keeper.add(self)

    def _hello(self, deadline: float, resume: dict[str, Any] | None) -> tuple[Connection, dict[str, Any]]:
        """Dials and shakes hands. Closes the connection again if that fails."""
        a = self._args
        left = max(0.001, deadline - time.monotonic())
        conn = dial(self.url, self._token, deadline, self._context, a["max_frame"], self._headers, self._reading)
        try:
            hello: dict[str, Any] = {
                "op": "hello",
                "id": 1,
                "proto": list(PROTOCOL),
                "client": {"name": "clustergym", "version": __version__, "lang": "python"},
                "enc": ["ext"],
                "feat": [f for f in _FEATURES if f != "shm" or (a["shared_memory"] and _memory.POSSIBLE)],
            }
            if resume is not None:
                hello["resume"] = resume
            self._strays += resume is not None  # the server may hear it at any time from now on
            conn.send(encode(hello), deadline)
            try:
                reply = decode(conn.recv(deadline, math.inf))
                conn.taken()
            except Late:
                raise ReplyTimeout(f"hello: {self.url} did not answer within {left:g} s", "hello", left) from None
            except Closed as e:
                self._strays -= resume is not None and e.code not in _RESUMABLE
                raise error_from_close(e.code, e.reason, "hello") from None
            self._strays -= resume is not None
            if reply.get("op") == "error":
                raise error_from_reply(reply, "hello")
            if reply.get("op") != "welcome" or reply.get("re") != 1:
                raise ProtocolError(f"hello: the server answered {reply.get('op')!r}, want 'welcome'")
            if not isinstance(reply.get("proto"), int) or not PROTOCOL[0] <= reply["proto"] <= PROTOCOL[1]:
                raise ProtocolError(
                    f"hello: protocol version {reply.get('proto')!r}, want {PROTOCOL[0]} to {PROTOCOL[1]}"
                )
            if reply.get("enc") != "ext":
                raise ProtocolError(f"hello: the server chose encoding {reply.get('enc')!r}, want 'ext'")
            limits = reply.get("limits")
            self.limits = limits if isinstance(limits, dict) else {}
            server = reply.get("server")
            self.server = server if isinstance(server, dict) else {}
            self.features = frozenset(f for f in reply.get("feat") or () if isinstance(f, str))
            self.shares_memory = "shm" in self.features and _memory.sees(reply.get("shm"))
            self._inflight = max(1, int(self.limits.get("inflight") or 4))
            self._frame_in = int(self.limits.get("frame_in") or (16 << 20))
        except BaseException:
            conn.close()
            raise
        return conn, reply

    # Requests.

    def request(
        self,
        op: str,
        fields: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        handle: Opened | None = None,
    ) -> dict[str, Any]:
        """Sends a request and waits for its reply.

        Args:
            op: the operation, as ``"ping"``.
            fields: its fields: None, bool, int, float, str, bytes, NumPy arrays, lists and maps of these.
            timeout: seconds to wait, None = the client's.
            handle: the environments that it is about; its number is sent as the field ``h``.

        Raises:
            RemoteError: the server refused; the subclass says why.
            ReplyTimeout: no reply in time.
            ConnectionLost: the connection broke and could not be resumed.
        """
        seconds = self.timeout if timeout is None else timeout
        self.connect(time.monotonic() + seconds)
        return self.ask(self.call(op, fields, handle), seconds)

    def ask(self, call: Call, timeout: float | None = None) -> dict[str, Any]:
        """Posts a request and waits for its reply, which is dropped if this is interrupted."""
        seconds = self.timeout if timeout is None else timeout
        try:
            self.post_call(call, seconds)
            return self.result(call, seconds)
        except BaseException:
            self.abandon(call)
            raise

    def call(self, op: str, fields: Mapping[str, Any] | None = None, handle: Opened | None = None) -> Call:
        """A request that is ready to be posted. Its handle must be open."""
        fields = dict(fields or {})
        if handle is not None:
            fields = {"h": handle.ensure(), **fields}
        return Call(op, request_head(op, len(fields)), fields_of(fields), handle)

    def post(self, op: str, fields: Mapping[str, Any] | None = None, handle: Opened | None = None) -> int:
        """Sends a request and returns its id, for :meth:`wait`. Requests of one handle are executed in order."""
        self.connect()
        call = self.call(op, fields, handle)
        call.listed = True
        self.post_call(call, self.timeout)
        return call.rid

    def post_call(self, call: Call, seconds: float) -> None:
        """Sends a request, for :meth:`result`.

        If this is interrupted, ``call.rid`` says whether the request may have been sent: it is then among the pending ones,
        and its reply can be waited for.
        """
        begun = self.last_used = time.monotonic()
        deadline = begun + seconds
        if self._conn is None:
            self.connect(deadline)
        handle = call.handle
        if handle is not None and len(self._pending) >= self._inflight and handle.outstanding >= self._inflight:
            self._make_way(handle, deadline, seconds)
        if self._orphans:
            self._close_orphans(deadline)
        size = len(call.head) + 4 + len(call.tail)
        if size > self._frame_in:
            raise TooLarge("too_large", f"a request of {size} bytes, the server takes {self._frame_in}", op=call.op)
        with self._plock:
            conn = self._conn
            if conn is None:
                raise ConnectionLost(f"{call.op}: the session was lost meanwhile")
            rid = self._next_id
            if rid > _MAX_ID:
                raise ClusterGymError("this session has used up its 2^32 request ids: open another client")
            call.posted = False
            try:
                self._next_id = rid + 1
                call.sent, call.generation = begun, self.generation
                self._pending[rid] = call
                call.rid = rid
                try:
                    conn.send(call.head + rid.to_bytes(4, "big") + call.tail, deadline)
                except (Lost, Closed, ProtocolError):
                    pass  # the thread that waits for the reply resumes the session and sends the request again
                call.posted = True
            finally:
                if not call.posted:  # it is unknown how much of it was sent, so a resume must tell
                    conn.broken = conn.broken or Lost("a request was cut short")
                    if rid in self._pending:
                        call.rid = rid
        self.stats.requests += 1
        call.spent = time.monotonic() - begun

    def wait(self, rid: int, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the reply to a posted request. Each reply can be had once; a wait that timed out or was interrupted can
        be repeated.

        Raises:
            As :meth:`request`.
        """
        # In this order, since the reading thread keeps a reply before it forgets the request.
        call = self._pending.get(rid) or self._replies.get(rid)
        if call is None:
            raise ClusterGymError(f"nothing is under way with id {rid}: replies can be waited for once")
        try:
            reply = self.result(call, self.timeout if timeout is None else timeout)
        except (RemoteError, ProtocolError):
            self._replies.pop(call.rid, None)
            raise
        try:
            # Last, and without a call after it: Python looks for signals after calls.
            del self._replies[call.rid]
        except KeyError:
            pass
        return reply

    def by_id(self, call: Call) -> None:
        """Lets :meth:`wait` find a posted request by its id."""
        call.listed = True
        if call.reply is not None:  # it may have come already, read by another thread
            self._replies[call.rid] = call

    def abandon(self, call: Call) -> None:
        """Drops the reply of a posted request, now or when it comes."""
        call.abandoned = True
        self._replies.pop(call.rid, None)
        if call.op in _OPENINGS and call.reply is not None:
            self._orphan(call.reply)

    def result(self, call: Call, seconds: float) -> dict[str, Any]:
        """Waits for the reply to a posted request. It stays in ``call``, so this can be repeated after an interrupt.

        The time that posting it took counts too.
        """
        deadline = time.monotonic() + max(0.0, seconds - call.spent)
        attempt = 0
        while True:
            reply = call.reply
            if reply is None:
                if call.rid == 0:  # a repetition was interrupted before it was sent
                    self.post_call(call, max(0.001, deadline - time.monotonic()))
                self._await(call, deadline, seconds)
                continue
            if reply.get("op") != "error":
                if reply.get("op") != call.op:
                    raise ProtocolError(f"{call.op}: the server answered {reply.get('op')!r}")
                return reply
            error = error_from_reply(reply, call.op)
            if error.code != "busy" or self._overtaken(call):
                raise error
            # The request had no effect, so it may be sent again with a new id.
            pause = self._backoff(attempt, 0.002, 0.25)
            if time.monotonic() + pause >= deadline:
                raise error
            time.sleep(pause)
            attempt += 1
            self.stats.retries += 1
            self._replies.pop(call.rid, None)
            call.rid, call.reply = 0, None
            self.post_call(call, max(0.001, deadline - time.monotonic()))

    def _overtaken(self, call: Call) -> bool:
        """Whether a later request of the same handle is under way, so that repeating this one would change their order."""
        return call.handle is not None and any(
            r > call.rid and other.handle is call.handle for r, other in list(self._pending.items())
        )

    def _await(self, call: Call, deadline: float, seconds: float) -> None:
        """Waits until the reply has come."""
        while call.reply is None:
            if self._pending.get(call.rid) is not call and call.reply is None:
                raise ConnectionLost(f"{call.op}: the session was lost meanwhile")
            # Twice, because an interrupt may come in the midst of giving up the turn.
            try:
                try:
                    if self._reading.take():
                        self._read_until(call, deadline, seconds)
                    else:
                        self._follow(call, deadline, seconds)
                finally:
                    self._stop_reading()
            except BaseException:
                self._stop_reading()
                raise

    def _stop_reading(self) -> None:
        self._reading.give()
        if self._followers:
            with self._cond:
                self._cond.notify_all()

    def _follow(self, call: Call, deadline: float, seconds: float) -> None:
        """Waits until another thread has read this reply, or has stopped reading."""
        with self._cond:
            self._followers += 1
            try:
                while call.reply is None and self._reading.taken:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise self._timed_out(call.op, seconds)
                    self._cond.wait(min(left, 1.0))  # not for ever, should an interrupt swallow the notice
            finally:
                self._followers -= 1

    def _timed_out(self, op: str, seconds: float) -> ReplyTimeout:
        return ReplyTimeout(f"{op}: {self.url} did not answer within {seconds:g} s", op, seconds)

    def _read_until(self, call: Call, deadline: float, seconds: float) -> None:
        """Reads until the request is answered. The caller has the turn to read."""
        while call.rid in self._pending:
            conn = self._conn
            if conn is None:
                raise ConnectionLost(f"{call.op}: the session was lost meanwhile")
            try:
                self._accept(conn, conn.recv(deadline, self._probe))
            except (Lost, Closed) as e:
                self._recover(e, deadline, call.op)
            except Silent:
                self._move(deadline)
            except Late:
                raise self._timed_out(call.op, seconds) from None
            except ProtocolError:
                self._forget_session()
                raise
            if call.rid in self._pending and time.monotonic() >= deadline:
                raise self._timed_out(call.op, seconds)

    def _accept(self, conn: Connection, frame: memoryview) -> None:
        """Keeps a reply for the thread that waits for it, and handles events."""
        reply = decode(frame)
        re = reply.get("re")
        if not isinstance(re, int):
            raise ProtocolError(f"a reply to {re!r}, want the id of a request")
        if re != 0:
            self._keep(re, reply)
        conn.taken()
        if re == 0:
            self._event(reply)

    def _keep(self, re: int, reply: dict[str, Any]) -> None:
        # If this is interrupted, the same reply is read once more, so every part may happen twice. The request is forgotten
        # last.
        call = self._pending.get(re)
        if call is None:
            return  # the second copy of a reply, after a resume
        if call.abandoned:
            if call.op in _OPENINGS:
                self._orphan(reply)
        else:
            call.reply = reply
            if call.listed:  # asked after the reply is there, as by_id does it the other way round
                self._replies[re] = call
        if call.handle is not None:
            call.handle.last = re
        else:
            self._last_free = re
        self._pending.pop(re, None)
        self.last_used = now = time.monotonic()
        took = now - call.sent
        stats = self.stats
        stats.replies += 1
        stats.latency_last = took
        stats.latency_sum += took
        if took > stats.latency_max:
            stats.latency_max = took
        if self._followers:
            with self._cond:
                self._cond.notify_all()

    def _orphan(self, reply: Mapping[str, Any]) -> None:
        h = reply.get("h")
        if isinstance(h, int) and h not in self._orphans:
            self._orphans.append(h)

    def _close_orphans(self, deadline: float) -> None:
        """Closes handles whose ``open`` was interrupted."""
        orphans, self._orphans = self._orphans, []
        for h in orphans:
            fields = {"h": h}
            call = Call("close", request_head("close", len(fields)), fields_of(fields), None)
            call.abandoned = True
            self.post_call(call, max(0.001, deadline - time.monotonic()))

    def _event(self, event: dict[str, Any]) -> None:
        op = event.get("op")
        text = str(event.get("msg") or "")
        if op == "drain":
            self.draining = True
            self.notices.append(text or "draining")
            if self._closing:
                return
            warnings.warn(DrainWarning(f"{self.url} is shutting down: {text or 'finish what is open'}"), stacklevel=6)
        elif op == "notice":
            self.notices.append(text)
        elif op == "error":
            # The server could not read which request this was, so one of them will never be answered.
            raise error_from_reply(event, "frame")

    def _make_way(self, handle: Opened, deadline: float, seconds: float) -> None:
        """Waits until one of the handle's replies has come, and keeps it."""
        while handle.outstanding >= self._inflight:
            oldest = next((call for call in list(self._pending.values()) if call.handle is handle), None)
            if oldest is None:
                return
            try:
                try:
                    if self._reading.take():
                        self._read_until(oldest, deadline, seconds)
                    else:
                        self._follow(oldest, deadline, seconds)
                finally:
                    self._stop_reading()
            except BaseException:
                self._stop_reading()
                raise

    # Breaks.

    def _backoff(self, attempt: int, first: float, last: float) -> float:
        return min(last, first * 2.0 ** min(attempt, 20)) * (0.5 + self._rng.random())

    def _recover(self, cause: Lost | Closed, deadline: float, op: str) -> None:
        """Resumes the session after a break, or raises the caller's error. The caller has the turn to read."""
        old = self._conn
        if old is not None:
            old.close()
        self._own_server_ended(op, 1.0 if isinstance(cause, Closed) else 0.0)
        if isinstance(cause, Closed) and cause.code not in _RESUMABLE:
            if not (cause.code == _TAKEN_OVER and ((old is not None and old is self._moved_from) or self._strayed())):
                self._forget_session()
                raise as_error(cause, op) from None
        if not self._resume_token or self._closed:
            self._forget_session()
            raise as_error(cause, op) from None
        until = min(deadline, time.monotonic() + float(self.limits.get("resume_s") or 0) + 1)
        why: Exception = cause
        attempt = 0
        while True:
            try:
                self._resume(min(until, time.monotonic() + _FIND), deadline)
                return
            except (Lost, Closed, ReplyTimeout) as e:
                why = e
            except ClusterGymError as e:
                if not (isinstance(e, RemoteError) and e.retry):
                    self._forget_session()
                    raise
                why = e
            self._own_server_ended(op, 0.1)
            pause = self._backoff(attempt, _FIRST_BACKOFF, _LAST_BACKOFF)
            attempt += 1
            if time.monotonic() + pause >= until:
                raise ConnectionLost(
                    f"{op}: the connection broke ({cause}) and could not be resumed in time; last: {why}",
                    reason=str(cause),
                ) from None
            time.sleep(pause)

    def _strayed(self) -> bool:
        """Whether a hello that was given up here may have taken the session over. Counts that hello out: each can do so once."""
        if self._strays <= 0:
            return False
        self._strays -= 1
        return True

    def _resume(self, until: float, deadline: float) -> None:
        """Continues the session over a new connection. The old one stays until that has succeeded."""
        last = {str(h): handle.last for h, handle in list(self._handles.items()) if handle.last}
        if self._last_free:
            last["0"] = self._last_free
        conn, _ = self._hello(until, {"session": self._session, "token": self._resume_token, "last": last})
        old = self._conn
        try:
            with self._plock:
                for rid, call in sorted(self._pending.items()):
                    if call.abandoned and call.op != "close":
                        self._pending.pop(rid, None)
                        continue
                    try:
                        conn.send(call.head + rid.to_bytes(4, "big") + call.tail, deadline)
                    except Lost:
                        break  # the next read fails too
                self.stats.resumes += 1
                self._conn = conn
        finally:
            if self._conn is not conn:
                conn.close()
            elif old is not None:
                old.close()

    def _move(self, deadline: float) -> None:
        """Tries another connection while this one is silent. If that fails, the server is busy or out of reach, and its
        answer may still come here: silence alone never ends a session."""
        if not self._resume_token or self._closed:
            return
        self._moved_from = self._conn  # which the server closes as soon as it accepts the other one
        try:
            self._resume(min(deadline, time.monotonic() + min(_FIND, max(1.0, self._probe))), deadline)
        except (Lost, Closed, ReplyTimeout):
            return
        except ClusterGymError as e:
            if not (isinstance(e, RemoteError) and e.retry):
                self._forget_session()
                raise

    def _own_server_ended(self, op: str, seconds: float) -> None:
        """Raises ServerDied if the server was started by this process and has ended, or does so within seconds."""
        if self._server is None:
            return
        how = self._server.ended(seconds)
        if how:
            self._forget_session()
            raise ServerDied(f"{op}: the server that this process started has ended: {how}", reason=how) from None

    def _forget_session(self) -> None:
        """Ends the session. The next call opens a new one."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()
        self._session = self._resume_token = ""
        self._strays = 0  # they named the old session
        self._pending.clear()
        self._replies.clear()

    def tend(self) -> None:
        """Called by the keep-alive thread: answers pings, keeps replies that come, resumes what broke."""
        conn = self._conn
        if conn is None or self._closed or time.monotonic() - self.last_used < self._args["keepalive"]:
            return
        try:
            until = time.monotonic() + 1
            if self._reading.take():
                while time.monotonic() < until and (frame := conn.poll()) is not None:
                    self._accept(conn, frame)
        except (Lost, Closed) as e:
            try:
                self._recover(e, time.monotonic() + min(3.0, self.timeout), "keep-alive")
            except Exception as e:
                if self._conn is None:
                    self._unsaid = e  # the next call raises it; if the session may still be resumed, that call tries
        except ProtocolError as e:
            self._forget_session()
            self._unsaid = e
        except Exception:
            pass  # also warnings turned into errors, which no caller could catch here
        finally:
            self._stop_reading()

    # Ending.

    def close(self) -> None:
        """Ends the session and closes the connection. Calling it twice is harmless."""
        if self._closed:
            return
        self._closing = True
        conn = self._conn
        if conn is not None and conn.broken is None:
            try:
                self.request("bye", timeout=min(2.0, self.timeout))
            except Exception:
                pass
        self._drop()

    def _drop(self) -> None:
        self._closed = True
        keeper.discard(self)
        conn = self._conn
        if conn is not None:
            conn.say_goodbye()
            conn.close()
        self._conn = None

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed
