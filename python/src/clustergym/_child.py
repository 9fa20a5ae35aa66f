"""Runs of ``gymctl`` as children of this process, which end with it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import IO, Any

from .errors import GymctlError
from .server import find_gymctl

__all__ = ["Child"]


class Child:
    """A running ``gymctl``, which must end when its standard input does.

    Args:
        args: its arguments.
        gymctl: the binary, None = that of :func:`clustergym.find_gymctl`.
        keep: its output goes to a file, for :meth:`output`; else to the pipe ``process.stdout``.
    """

    def __init__(self, args: Sequence[str], gymctl: str | None = None, *, keep: bool = False) -> None:
        command = [gymctl or find_gymctl(), *args]
        self._owner = os.getpid()
        self._said: IO[bytes] = tempfile.TemporaryFile(prefix="clustergym-gymctl-")
        self._out: IO[bytes] | None = tempfile.TemporaryFile(prefix="clustergym-gymctl-") if keep else None
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._out if self._out is not None else subprocess.PIPE,
                stderr=self._said,
                # Ctrl-C in a terminal goes to the whole process group; this process decides when its children end.
                start_new_session=os.name != "nt",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as e:
            self._close()
            raise GymctlError(f"cannot start {command[0]}: {e}") from e

    def said(self) -> str:
        """What it has written to standard error so far."""
        return _text(self._said)

    def output(self) -> str:
        """What it has written to standard output so far, if that is kept."""
        return "" if self._out is None else _text(self._out)

    def sentence(self) -> str:
        """Why it failed, in its own words."""
        lines = [line.removeprefix("gymctl: ") for line in self.said().splitlines() if line.startswith("gymctl: ")]
        return "; ".join(lines[-3:]) or self.said()[-500:].strip() or f"exit code {self.process.poll()}"

    def end(self, seconds: float = 5.0) -> None:
        """Ends it: tells it that nothing more will come, then asks it, then kills it. In a fork only lets go of it."""
        if self._owner != os.getpid():
            self.process.returncode = 0  # not a child of this process: nothing to reap, nothing to warn about
            self._close()
            return
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self) -> None:
        """:meth:`end`, and forgets what it said."""
        try:
            self.end()
        finally:
            self._close()

    def _close(self) -> None:
        process: Any = getattr(self, "process", None)
        streams = [self._said, self._out] + ([process.stdin, process.stdout] if process is not None else [])
        for stream in streams:
            if stream is not None:
                with contextlib.suppress(OSError, ValueError, RuntimeError):
                    stream.close()


def _text(file: IO[bytes]) -> str:
    # The child writes to the same file, whose position they share: only pread leaves it alone where there is one.
    if hasattr(os, "pread"):
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")
    at = file.tell()
    file.seek(0)
    try:
        return file.read().decode("utf-8", "replace")
    finally:
        file.seek(at)
