"""Files of this machine among the arguments of an environment: traces, throughput tables, clusters and models.

The server that this process starts reads any file that this user can read; it is told absolute paths. A server elsewhere
reads only what its owner allows (``gymctl serve --trace-root``), by names relative to a folder of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from .errors import BadKwargs

__all__ = ["plain", "resolve"]

_TRACE_FILES = ("file", "profiles")
_CATALOG = "get:"  # a public trace, in the cache of the server's user
_MODEL = "gbdt:"  # of ``estimates``: a file of ``gymctl predict fit``
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]*$")


def resolve(kwargs: Mapping[str, Any], own: bool) -> dict[str, Any]:
    """The arguments as the server is to get them.

    Args:
        kwargs: arguments of an environment. ``trace`` is a path or a map of its keys, ``cluster`` a name, a path or a map,
            ``estimates`` may name a model behind ``gbdt:``.
        own: this process started the server: paths become absolute. Else names are the server's.

    Raises:
        BadKwargs: a path of this machine for a server elsewhere.
    """
    out: dict[str, Any] = {}
    for key, value in kwargs.items():
        if key == "kwargs" and isinstance(value, Mapping):  # of an environment's spec
            out[key] = resolve(value, own)
        elif key == "trace" and isinstance(value, Mapping):
            out[key] = {k: _trace(f"trace.{k}", v, own) if k in _TRACE_FILES else v for k, v in value.items()}
        elif key == "trace" and isinstance(value, (str, os.PathLike)):
            out[key] = {"file": _trace("trace", value, own)}
        elif key in ("trace.file", "trace.profiles"):
            out[key] = _trace(key, value, own)
        elif key == "cluster":
            out[key] = _cluster(value, own)
        elif key == "estimates" and isinstance(value, str) and value.startswith(_MODEL):
            out[key] = _MODEL + _trace(key, value.removeprefix(_MODEL), own)
        else:
            out[key] = value
    return out


def plain(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with paths as text, and otherwise as they are."""
    return {
        key: plain(value) if isinstance(value, Mapping) else _text(value) if isinstance(value, os.PathLike) else value
        for key, value in kwargs.items()
    }


def _text(path: str | os.PathLike[Any]) -> str:
    return os.fsdecode(path)


def _trace(key: str, value: Any, own: bool) -> Any:
    if not isinstance(value, (str, os.PathLike)):
        return value  # what it is to be, the server says
    name = _text(value)
    if name == "" or name.startswith(_CATALOG):
        return name
    if own:
        return _absolute(name)
    if _of_this_machine(name):
        raise BadKwargs(
            "bad_kwargs",
            f"argument {key}: {name!r} is a path of this machine, and the server is one that url= or $CLUSTERGYM_URL "
            "names: copy the file below its --trace-root, and name it relative to that folder",
            op="open",
        )
    return name.replace(os.sep, "/")


def _cluster(value: Any, own: bool) -> Any:
    if not isinstance(value, (str, os.PathLike)):
        return value
    name = _text(value)
    # As gymctl has it: a name that has a folder or an ending is a path; presets and short forms have neither.
    path = (
        isinstance(value, os.PathLike)
        or _of_this_machine(name)
        or "/" in name
        or os.sep in name
        or _ENDING.search(name)
    )
    if not path or name.startswith(_CATALOG):
        return name
    if own:
        return _absolute(name)
    raise BadKwargs(
        "bad_kwargs",
        f"argument cluster: {name!r} is a path, and the server is one that url= or $CLUSTERGYM_URL names: give it the "
        'file\'s keys, as cluster={"racks": […]}, or the name of a preset',
        op="open",
    )


def _of_this_machine(name: str) -> bool:
    return name.startswith("~") or os.path.isabs(name) or bool(_DRIVE.match(name))


def _absolute(name: str) -> str:
    path = os.path.abspath(os.path.expanduser(name))
    # The server lists the files of a folder, and does not follow a link to one.
    return os.path.realpath(path) if os.path.islink(path) and os.path.isdir(path) else path
