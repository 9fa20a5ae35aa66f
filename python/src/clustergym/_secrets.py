"""Secrets by reference: what a spec, a log or a pickle may show in place of a token."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["hide", "reveal", "secret", "token_file"]

_PREFIX = "clustergym-secret-"
_REFERENCE = re.compile(re.escape(_PREFIX) + r"[0-9a-f]{16}")
_lock = threading.Lock()
_secrets: dict[str, str] = {}  # by reference
_references: dict[str, str] = {}  # by secret


def secret(text: str) -> str:
    """A reference to a token, which says nothing about it and may be given wherever the token may be.

    Only this process, and processes forked from it, know what it refers to. Others use ``$CLUSTERGYM_TOKEN`` for it.
    """
    if _REFERENCE.fullmatch(text):
        return text
    with _lock:
        found = _references.get(text)
        if found is None:
            found = _PREFIX + secrets.token_hex(8)
            _secrets[found] = text
            _references[text] = found
        return found


def reveal(text: str, name: str) -> str | None:
    """The secret that text refers to, or text itself if it is no reference. None for a token that another process knows.

    Raises:
        ValueError: another process knows the secret, and it is not the token.
    """
    if not _REFERENCE.fullmatch(text):
        return text
    found = _secrets.get(text)
    if found is None and name != "token":
        raise ValueError(f"{name}: its value is known only to the process that called clustergym.secret")
    return found


def hide(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """An environment's arguments with references in place of the token and of the headers' values."""
    hidden = dict(kwargs)
    if isinstance(hidden.get("token"), str):
        hidden["token"] = secret(hidden["token"])
    options = hidden.get("client_options")
    if isinstance(options, Mapping) and isinstance(options.get("headers"), Mapping):
        headers = {name: secret(value) for name, value in options["headers"].items()}
        hidden["client_options"] = {**options, "headers": headers}
    return hidden


@contextlib.contextmanager
def token_file(token: str) -> Iterator[str]:
    """A file with a token of role env that only this user can read, because everybody can read arguments. It is gone
    afterwards."""
    fd, path = tempfile.mkstemp(prefix="clustergym-token-")
    try:
        with open(fd, "w") as file:
            file.write(f"env {token}\n")
        yield path
    finally:
        os.unlink(path)
