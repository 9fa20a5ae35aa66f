"""The thread that looks after unused connections, one for the whole process."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

__all__ = ["keeper"]

_PERIOD = 1.0


class Tended(Protocol):
    """What has connections."""

    def tend(self) -> None:
        """Looks after them for a moment."""


class Keeper:
    """Calls :meth:`Tended.tend` of every client once a second, for as long as there are any."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Starts again from nothing: threads do not survive a fork, and a lock may have been held during it."""
        self._lock = threading.RLock()  # also taken by finalizers, which may run while it is held
        self._clients: weakref.WeakSet[Tended] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def add(self, client: Tended) -> None:
        """Looks after client until it is discarded or garbage-collected."""
        with self._lock:
            self._clients.add(client)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="clustergym-keepalive", daemon=True)
                self._thread.start()

    def discard(self, client: Tended) -> None:
        """Stops looking after client."""
        with self._lock:
            self._clients.discard(client)

    def _run(self) -> None:
        while not self._wake.wait(_PERIOD):
            with self._lock:
                clients = list(self._clients)
                if not clients:
                    self._thread = None
                    return
            for client in clients:
                client.tend()
            del clients


keeper = Keeper()
