"""The exceptions: one class per cause, all below :class:`ClusterGymError`.

The server refuses a request with a code. Each code has a class here, so that a caller can catch exactly what it can
handle. Every exception survives pickling, which worker processes need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = [
    "BadAction",
    "BadFrame",
    "BadHandle",
    "BadKwargs",
    "BadRequest",
    "BadSeed",
    "Busy",
    "Capacity",
    "ClusterGymError",
    "ConnectionLost",
    "Draining",
    "DrainWarning",
    "EnvFault",
    "Forbidden",
    "InternalError",
    "NeedsReset",
    "NotPending",
    "ProtocolError",
    "ProtoMismatch",
    "RemoteError",
    "ReplyTimeout",
    "SchedulerError",
    "ServerDied",
    "ServerNotFound",
    "ServerStartError",
    "SessionExpired",
    "SnapshotMismatch",
    "StepTimeout",
    "TakenOver",
    "TooLarge",
    "Unauthorized",
    "Unfinished",
    "UnknownEnv",
    "UnknownKwargs",
    "UnknownOp",
    "Unsupported",
    "error_from_close",
    "error_from_faults",
    "error_from_reply",
    "unknown_kwargs",
]


class ClusterGymError(Exception):
    """The base of all exceptions of this package."""


class ProtocolError(ClusterGymError):
    """The other end does not speak the protocol: an unreadable frame, a wrong array, a reply without its fields."""


class ConnectionLost(ClusterGymError, ConnectionError):
    """The connection is gone and could not be resumed.

    Attributes:
        code: the server's WebSocket close code, ``None`` if the connection broke without one.
        reason: the server's reason, or the operating system's error.
    """

    def __init__(self, message: str, code: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.code, self.reason)


class SessionExpired(ConnectionLost):
    """The server no longer knows this session: the client was away for too long, or the server was restarted."""


class TakenOver(ConnectionLost):
    """Another connection resumed this session."""


class ServerDied(ConnectionLost):
    """The server that this process had started has ended. The next reset starts another one."""


class ReplyTimeout(ClusterGymError, TimeoutError):
    """No answer came in time. Calling a step, reset or restore again with the same arguments waits on for its answer.

    Attributes:
        waited_for: the operation whose reply did not come, as ``"step"``.
        seconds: how long the client waited.
    """

    def __init__(self, message: str, waited_for: str = "", seconds: float = 0.0) -> None:
        super().__init__(message)
        self.waited_for = waited_for
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.waited_for, self.seconds)


class ServerNotFound(ClusterGymError, FileNotFoundError):
    """There is no ``gymctl`` to start: neither named, nor in this package, nor on the PATH."""


class ServerStartError(ClusterGymError):
    """``gymctl serve`` was started and did not come up."""


class GymctlError(ClusterGymError):
    """``gymctl`` refused what it was asked for, or failed. The message is its own."""


class SchedulerError(ClusterGymError):
    """A scheduler has raised, taken too long, or decided what is impossible. The message says when.

    Attributes:
        policy: its name.
        now_s: the simulated time of the decision, in seconds.
    """

    def __init__(self, message: str, policy: str = "", now_s: float = 0.0) -> None:
        super().__init__(message)
        self.policy = policy
        self.now_s = now_s

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.policy, self.now_s)


class DrainWarning(UserWarning):
    """The server is shutting down: finish what is open; new environments are refused."""


class RemoteError(ClusterGymError):
    """The server refused a request. Nothing was changed by it.

    Attributes:
        code: the protocol's code of the cause, as ``"bad_action"``.
        retry: the same request may succeed later.
        env: indices of the environments concerned, empty if the error is not about some of them.
        want: what would have been right, ``None`` if not given.
        got: what was sent, ``None`` if not given.
        op: the operation that failed, as ``"step"``.
        result: if only some environments of a batch failed, what the call would have returned, with zeros for these.
    """

    result: Any = None

    def __init__(
        self,
        code: str,
        message: str,
        retry: bool = False,
        env: tuple[int, ...] = (),
        want: Any = None,
        got: Any = None,
        op: str = "",
    ) -> None:
        super().__init__(code, message, retry, env, want, got, op)
        self.code = code
        self.message = message
        self.retry = retry
        self.env = env
        self.want = want
        self.got = got
        self.op = op

    def __str__(self) -> str:
        text = f"{self.op or 'request'}: {self.code}: {self.message}"
        if self.got is not None:
            text += f"; got {self.got}"
        if self.want is not None:
            text += f"; want {self.want}"
        if self.env:
            text += f" (environment{'s' if len(self.env) > 1 else ''} {', '.join(map(str, self.env))})"
        return text


class BadFrame(RemoteError):
    """The server could not read a frame."""


class BadRequest(RemoteError, ValueError):
    """A field of the request is missing, unknown or of the wrong kind."""


class UnknownOp(RemoteError):
    """The server does not know the operation."""


class Unauthorized(RemoteError, PermissionError):
    """No token, or a wrong one."""


class Forbidden(RemoteError, PermissionError):
    """The token's role does not allow this."""


class ProtoMismatch(RemoteError):
    """Client and server have no common protocol version."""


class UnknownEnv(RemoteError, LookupError):
    """The server has no environment of that id."""


class BadKwargs(RemoteError, ValueError):
    """An argument of the environment is unknown or out of range."""


class UnknownKwargs(BadKwargs, TypeError):
    """An argument that the environment does not have: the TypeError of Python, in its words.

    TorchRL, among others, tries arguments and leaves out those that raise it.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        retry: bool = False,
        env: tuple[int, ...] = (),
        want: Any = None,
        got: Any = None,
        op: str = "open",
    ) -> None:
        if message is None:
            # gymnasium.make makes another one out of one text, to which it has added all arguments, a token among them.
            text = code.partition(" was raised from the environment creator")[0]
            code, message = "bad_kwargs", text.removeprefix("open: bad_kwargs: ")
        super().__init__(code, message, retry, env, want, got, op)


_UNKNOWN = re.compile(r"(?:^|; )(\w+): unknown key")


def unknown_kwargs(error: BadKwargs, given: Mapping[str, Any], cls: str) -> UnknownKwargs | None:
    """error as an UnknownKwargs of the class of that name, None if it is not about a name among given."""
    names = _UNKNOWN.findall(error.message)
    if error.message.endswith("has no arguments"):
        names = [str(error.got or "").strip('"')] if given else []
    name = next((name for name in names if name in given), None)
    if name is None:
        return None
    text = f"{cls}.__init__() got an unexpected keyword argument {name!r}: {error.message}"
    return UnknownKwargs(error.code, text, error.retry, error.env, error.want, None, error.op)


class BadHandle(RemoteError):
    """The environments were closed, or never opened in this session."""


class BadSeed(RemoteError, ValueError):
    """A seed is negative, too large or of the wrong kind."""


class BadAction(RemoteError, ValueError):
    """An action is outside the action space. ``env`` lists all environments whose action is wrong."""


class NeedsReset(RemoteError):
    """An episode is over, or has not begun: reset the environments in ``env`` first."""


class Unfinished(NeedsReset):
    """An earlier call was interrupted, or timed out, after its request was sent: whether it happened is not known here.

    Calling it again with the same arguments returns its result, without doing it twice; a reset of all environments drops
    it. Nothing was sent.
    """


class NotPending(RemoteError):
    """Nothing was sent, so there is nothing to receive."""


class Busy(RemoteError):
    """Too many unanswered requests."""


class Capacity(RemoteError):
    """The server has no room for more sessions, handles or environments."""


class TooLarge(RemoteError):
    """A request, or the reply it would need, exceeds the server's limits."""


class StepTimeout(RemoteError, TimeoutError):
    """The server gave up on a step. Reset the environments."""


class EnvFault(RemoteError):
    """An environment failed on the server. Reset the environments in ``env``."""


class Unsupported(RemoteError, NotImplementedError):
    """The environment lacks this ability."""


class SnapshotMismatch(RemoteError, ValueError):
    """A snapshot is damaged, of other environments, or of another server."""


class Draining(RemoteError):
    """The server is shutting down and opens nothing new."""


class InternalError(RemoteError):
    """A bug in the server; its log has details."""


_BY_CODE: dict[str, type[RemoteError]] = {
    "bad_frame": BadFrame,
    "bad_request": BadRequest,
    "unknown_op": UnknownOp,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "proto_mismatch": ProtoMismatch,
    "unknown_env": UnknownEnv,
    "bad_kwargs": BadKwargs,
    "bad_handle": BadHandle,
    "bad_seed": BadSeed,
    "bad_action": BadAction,
    "needs_reset": NeedsReset,
    "not_pending": NotPending,
    "busy": Busy,
    "capacity": Capacity,
    "too_large": TooLarge,
    "timeout": StepTimeout,
    "env_fault": EnvFault,
    "unsupported": Unsupported,
    "snapshot_mismatch": SnapshotMismatch,
    "draining": Draining,
    "internal": InternalError,
}


def error_from_faults(faults: Any, op: str, result: Any) -> RemoteError:
    """The exception for a reply in which some environments failed; result is what came for the others."""
    listed = [f for f in faults if isinstance(f, Mapping)] if isinstance(faults, (list, tuple)) else []
    error = error_from_reply(listed[0] if listed else {}, op)
    error.env = tuple(sorted({int(i) for f in listed for i in f.get("env") or ()}))
    error.result = result
    return error


def error_from_reply(reply: Mapping[str, Any], op: str = "") -> RemoteError:
    """The exception for an ``error`` reply; op is the operation that was asked for."""
    code = reply.get("code")
    code = code if isinstance(code, str) else "internal"
    msg = reply.get("msg")
    env = reply.get("env")
    return _BY_CODE.get(code, RemoteError)(
        code,
        msg if isinstance(msg, str) else "no reason given",
        bool(reply.get("retry")),
        tuple(int(i) for i in env) if env is not None and not isinstance(env, (str, bytes, Mapping)) else (),
        reply.get("want"),
        reply.get("got"),
        op,
    )


_CLOSE_CODES: dict[int, type[RemoteError]] = {
    4400: BadRequest,
    4401: Unauthorized,
    4406: ProtoMismatch,
    4429: Capacity,
    4503: Draining,
}
_CLOSE_NAMES = {
    4400: "bad_request",
    4401: "unauthorized",
    4406: "proto_mismatch",
    4429: "capacity",
    4503: "draining",
}


def error_from_close(code: int, reason: str, doing: str) -> ClusterGymError:
    """The exception for a connection that the server closed with code while the client was doing something."""
    said = reason or "no reason given"
    if code in _CLOSE_CODES:
        return _CLOSE_CODES[code](_CLOSE_NAMES[code], said, code in (4429, 4503), op=doing)
    text = f"{doing}: the server closed the connection ({code}): {said}"
    if code == 4410:
        return SessionExpired(text, code, reason)
    if code == 4409:
        return TakenOver(text, code, reason)
    return ConnectionLost(text, code, reason)
