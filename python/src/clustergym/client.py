"""A session with a server, as a user opens it: see :class:`Client`."""

from __future__ import annotations

import atexit
import os
import ssl
import weakref
from collections.abc import Mapping
from typing import Any

from ._keeper import keeper
from ._session import DEFAULT_MAX_FRAME, Session, Stats

__all__ = ["Client", "Stats"]


class Client(Session):
    """A session with a server.

    Safe to use from several threads. After a fork, or in another process after pickling, it opens a session of its own.

    Args:
        url: ``ws://host:port``, ``wss://…``, ``http(s)://…`` or ``host:port``. None means ``$CLUSTERGYM_URL`` or, if that
            is not set, a ``gymctl serve`` of this process: started once, shared by all clients, ended with the process.
        token: bearer token, or what :func:`clustergym.secret` made of it; None means ``$CLUSTERGYM_TOKEN``. A server of this
            process has a token of its own.
        timeout: seconds that any wait may last: starting a server, dialling, sending, a reply, resuming.
        resume: resume the session if the connection breaks. If False, a break raises :class:`ConnectionLost` at once.
        ca: file of the authorities that are trusted to sign the server's certificate; None means the system's.
        cert: file of the client's certificate (with its key, unless ``key`` names another file).
        key: file of the client certificate's key.
        context: a TLS context of your own, instead of ca, cert and key.
        keepalive: seconds without a call after which the process's keep-alive thread looks after the connection; 0 = never.
        probe: seconds of silence after which a waiting call sends a ping; after twice as long it tries to resume the session
            over another connection. If that fails too, or is impossible, it goes on waiting.
        max_frame: bytes of the longest reply that is accepted.
        headers: more headers for the upgrade, which proxies may require.
        shared_memory: let a server on this machine that runs as the same user put large observations into shared memory.
            Linux only. If that is impossible, they are sent.

    Attributes:
        stats: counts, bytes and latencies so far.
        limits: the server's limits from its welcome: frame_in, envs, handles, inflight, resume_s, ….
        server: the server's name, version and commit.
        features: those of async, resume, snapshot, render and shm that the server granted.
        shares_memory: whether this process sees the server's memory.
        draining: the server is shutting down.
        notices: the texts of the server's notices.

    Raises:
        ClusterGymError: one of its subclasses, which name the cause.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        timeout: float = 60.0,
        *,
        resume: bool = True,
        ca: str | os.PathLike[str] | None = None,
        cert: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        context: ssl.SSLContext | None = None,
        keepalive: float = 10.0,
        probe: float = 10.0,
        max_frame: int = DEFAULT_MAX_FRAME,
        headers: Mapping[str, str] | None = None,
        shared_memory: bool = True,
    ) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout!r}, want seconds above 0")
        super().__init__(
            dict(
                url=url,
                token=token,
                timeout=timeout,
                resume=resume,
                ca=ca,
                cert=cert,
                key=key,
                context=context,
                keepalive=keepalive,
                probe=probe,
                max_frame=max_frame,
                headers=headers,
                shared_memory=shared_memory,
            )
        )
        try:
            self.connect()
        except BaseException:
            self._closed = True
            raise

    def _begin(self) -> None:
        super()._begin()
        _clients.add(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # This must not wait: the garbage collector may run anywhere, also at the interpreter's end.
        try:
            if not self._closed:
                self._drop()
        except BaseException:
            pass

    def __getstate__(self) -> dict[str, Any]:
        if self._args["context"] is not None:
            raise TypeError("a client with a TLS context of its own cannot be pickled: use ca, cert and key")
        return dict(self._args)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._args = state
        self._begin()

    def __repr__(self) -> str:
        return f"Client({self.url or 'not connected'!r}{', closed' if self._closed else ''})"


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    keeper.after_fork()
    for client in list(_clients):
        if not client._closed:
            client._forget()


def _close_all() -> None:
    # Runs before the process's own server is ended, which then has nothing to wait for.
    for client in list(_clients):
        client.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
