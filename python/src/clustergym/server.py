"""A local server: ``gymctl serve`` as a child process, on a free port of the loopback interface."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from clustergym_cli import locate

from ._secrets import token_file
from .errors import ServerNotFound, ServerStartError

__all__ = ["LocalServer", "find_gymctl", "shared"]


def find_gymctl() -> str:
    """The ``gymctl`` to start: ``$CLUSTERGYM_GYMCTL``, else the one inside this package, else the one on the PATH.

    Raises:
        ServerNotFound: there is none; the message lists the places searched.
    """
    try:
        return locate(Path(__file__).with_name("bin"))
    except FileNotFoundError as e:
        raise ServerNotFound(str(e)) from None


class LocalServer:
    """A running ``gymctl serve``.

    It ends with :meth:`close`, when this object is garbage-collected, and with this process however that ends: its standard
    input then ends too, for which ``--until-eof`` watches.

    Args:
        args: more arguments, as ``("--max-envs", "8192")``.
        timeout: seconds until it must have printed its address.
        gymctl: the binary, None = that of :func:`find_gymctl`.
        token: what clients must show, 16 characters or more. None lets every user of this machine connect, unless args
            say otherwise.

    Attributes:
        url: its address, as ``"ws://127.0.0.1:40123"``.
        pid: its process id.

    Raises:
        ServerNotFound: there is no binary.
        ServerStartError: it ended at once or printed no address in time; the message has what it wrote.
    """

    def __init__(
        self, args: Sequence[str] = (), timeout: float = 30.0, gymctl: str | None = None, *, token: str | None = None
    ) -> None:
        self._owner = os.getpid()
        self._token = token
        command = [gymctl or find_gymctl(), "serve", "--addr", "127.0.0.1:0", "--json", "--until-eof"]
        # It ends with its owner, whose sessions end too, so draining has no purpose.
        command += ["--drain-timeout", "100ms", *args]
        if token is None:
            self._start(command, timeout)
            return
        # By the time the server says its address, it has read the file.
        with token_file(token) as path:
            self._start([*command, "--token-file", path], timeout)

    def _start(self, command: list[str], timeout: float) -> None:
        # It logs to a file: no thread reads a pipe all the time, and a full pipe would block the server.
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="clustergym-serve-")
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                # Ctrl-C in a terminal goes to the whole process group; the server must survive it until its owner has ended.
                start_new_session=os.name != "nt",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as e:
            self._log.close()
            raise ServerStartError(f"cannot start {command[0]}: {e}") from e
        self.pid = self._process.pid
        try:
            self.url = "ws://" + self._address(timeout)
        except BaseException:
            self.close()
            raise

    def _address(self, timeout: float) -> str:
        """The first line of its standard output, read by a thread because not every system can wait for a pipe."""
        assert self._process.stdout is not None
        out, lines = self._process.stdout, []
        reader = threading.Thread(target=lambda: lines.append(out.readline()), daemon=True)
        reader.start()
        reader.join(timeout)
        if reader.is_alive():
            self._process.kill()
            reader.join(5)
            raise ServerStartError(f"gymctl serve did not say its address within {timeout:g} s: {self.log()}")
        try:
            address = json.loads(lines[0])["addr"]
        except (ValueError, KeyError, TypeError, IndexError):
            how = self.ended(1.0)  # its last output may not be in the log before that
            raise ServerStartError(f"gymctl serve did not start: {how or self.log() or lines!r}") from None
        return str(address)

    def log(self, last: int = 2000) -> str:
        """The end of what it has logged, at most so many bytes."""
        try:
            size = self._log.seek(0, os.SEEK_END)
            self._log.seek(max(0, size - last))
            return self._log.read().decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return ""

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return not self.ended()

    def ended(self, seconds: float = 0.0) -> str:
        """How it ended, with the last lines that it logged; empty while it runs.

        Args:
            seconds: how long to wait for an end that is under way.
        """
        if self._owner != os.getpid():
            # Only the parent can ask for the process, whose number may belong to another one by now.
            return "" if self._listens() else "it no longer listens"
        try:
            code = self._process.wait(seconds) if seconds > 0 else self._process.poll()
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            return ""
        if code < 0:
            try:
                how = f"killed by {signal.Signals(-code).name}"
            except ValueError:
                how = f"killed by signal {-code}"
        else:
            how = f"exit code {code}"
        lines = self.log().splitlines()[-5:]
        return "\n".join([f"{how}; its last lines:", *lines]) if lines else f"{how}; it logged nothing"

    def _listens(self) -> bool:
        host, port = self.url.removeprefix("ws://").rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        except ConnectionRefusedError:
            return False
        except OSError:
            pass  # busy, perhaps
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Ends it, first by a signal to drain. In a child of the process that started it, only releases it."""
        process: subprocess.Popen[bytes] | None = getattr(self, "_process", None)
        if process is None:
            return
        if self._owner != os.getpid():
            self.let_go()
            return
        if process.stdin is not None:
            try:
                process.stdin.close()
            except OSError:
                pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        if process.stdout is not None:
            process.stdout.close()
        self._log.close()

    def let_go(self) -> None:
        """In a forked child: closes its copies of the pipes, so that the server still notices its owner's end."""
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                try:
                    stream.close()
                except (OSError, ValueError, RuntimeError):
                    pass
        self._process.returncode = 0  # not a child of this process: nothing to reap, nothing to warn about

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close(1.0)
        except BaseException:
            pass


_shared: LocalServer | None = None
_lock = threading.Lock()


def shared(timeout: float = 30.0) -> LocalServer:
    """The server that all clients of this process share; started at the first call, and again if it has died.

    Its token is known to this process and those forked from it, so that other users of the machine cannot connect. So it
    reads every file that they name and this user can read.
    """
    global _shared
    with _lock:
        if _shared is None or not _shared.running:
            _shared = LocalServer(("--own-files",), timeout, token=secrets.token_hex(32))
        return _shared


def _close_shared() -> None:
    if _shared is not None:
        _shared.close()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    if _shared is not None and _shared._owner != os.getpid():
        _shared.let_go()


atexit.register(_close_shared)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
