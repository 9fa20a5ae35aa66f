"""The command ``gymctl`` of an installed package: the program inside it, in the place of this one.

It is apart from the package, whose import takes half a second that a command line need not wait for.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["locate", "main"]

NAME = "gymctl.exe" if os.name == "nt" else "gymctl"
_SMALL = 1 << 20  # a launcher of Python's has fewer bytes, and gymctl itself has more


def locate(inside: Path) -> str:
    """The ``gymctl`` to start: ``$CLUSTERGYM_GYMCTL``, else the one in the folder inside, else the one on the PATH.

    Raises:
        FileNotFoundError: there is none; the message lists the places searched.
    """
    named = os.environ.get("CLUSTERGYM_GYMCTL")
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(f"CLUSTERGYM_GYMCTL names {named!r}, which is no file")
        return named
    own = inside / NAME
    if own.is_file():
        return str(own)
    for folder in os.get_exec_path():
        found = shutil.which(NAME, path=folder)
        if found is not None and not _launches_this(found):
            return found
    raise FileNotFoundError(
        f"no {NAME} to start: $CLUSTERGYM_GYMCTL is not set, {own} is not there, and none is on the PATH. "
        "Install the package with its binary, or name a running server with url= or $CLUSTERGYM_URL"
    )


def _launches_this(path: str) -> bool:
    """Whether path is the command that pip makes of :func:`main`, which would start itself for ever."""
    try:
        if os.path.getsize(path) > _SMALL:
            return False
        return b"clustergym_cli" in Path(path).read_bytes()
    except OSError:
        return False


def main(args: Sequence[str] | None = None) -> int:
    """Runs ``gymctl`` with the arguments of this program; on POSIX it takes this process over.

    Returns:
        Its exit code, or 1 if there is none to run.
    """
    args = sys.argv[1:] if args is None else args
    try:
        program = locate(Path(__file__).resolve().parent / "clustergym" / "bin")
        if os.name != "nt":
            os.execv(program, [program, *args])
        return _wait([program, *args])
    except OSError as e:
        said = e if isinstance(e, FileNotFoundError) and e.errno is None else f"cannot be started: {e}"
        print(f"gymctl: {said}", file=sys.stderr)
        return 1


def _wait(command: Sequence[str]) -> int:
    """Runs a command where a process cannot be replaced, and returns its exit code."""
    process = subprocess.Popen(command)
    # Ctrl-C reaches every process of a console: gymctl decides what it means. What ends only this process is passed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
