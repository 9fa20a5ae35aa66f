"""Puts gymctl into the package: built from the Go source next door, or taken from $GYMCTL_BINARY.

The binary is static, so the wheel fits every system of its operating system and processor, whatever its Python.
GYMCTL_BINARY=none makes a wheel without one, for clients of servers that run elsewhere.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: The operating system that Go builds for, as Go calls it; Python's own word where Go has no release for it here.
SYSTEM = os.environ.get("GOOS") or {"win32": "windows"}.get(sys.platform, sys.platform)
NAME = "gymctl.exe" if SYSTEM == "windows" else "gymctl"

_GOARCH = {
    "amd64": "x86_64",
    "arm64": "aarch64",
    "386": "i686",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
    "riscv64": "riscv64",
}


def wanted() -> bool:
    """Whether the package gets a binary."""
    return os.environ.get("GYMCTL_BINARY") != "none"


def make_binary(target: Path, version: str) -> None:
    """Writes the binary to target, with the package's version in it, or ends with a sentence that says what is missing."""
    target = target.resolve()  # go build runs in another folder
    target.parent.mkdir(parents=True, exist_ok=True)
    ready = os.environ.get("GYMCTL_BINARY")
    if ready:
        if not Path(ready).is_file():
            sys.exit(f"GYMCTL_BINARY names {ready!r}, which is no file")
        shutil.copyfile(ready, target)
    else:
        if not (ROOT / "go.mod").is_file():
            sys.exit(
                f"{ROOT} has no go.mod: gymctl is built from the repository that this folder belongs to. "
                "Install from there, or set GYMCTL_BINARY to a gymctl (or to none, for a client without a server)"
            )
        go = shutil.which("go")
        if go is None:
            sys.exit(
                "Go is not installed, and gymctl is written in it. Install Go 1.26 or newer, leave out --no-build-isolation, "
                "or set GYMCTL_BINARY to a gymctl (or to none, for a client without a server)"
            )
        stamp = f"-s -w -X clustergym/cmd/gymctl/internal/cli.ReleaseVersion={version}"
        command = [go, "build", "-trimpath", "-ldflags", stamp, "-o", str(target), "./cmd/gymctl"]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "CGO_ENABLED": "0"})
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed in {ROOT} (exit code {done.returncode})")
    target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def platform_tag() -> str:
    """The wheel's platform: of the target that Go builds for."""
    machine = os.environ.get("GOARCH")
    if not machine:
        here = platform.machine().lower()
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(here, here)
    cpu = _GOARCH.get(machine, machine)
    if SYSTEM == "linux":
        # Static: it needs no C library, neither glibc nor musl. cmd/release has the same tags, with their reasons.
        return f"manylinux_2_17_{cpu}.manylinux2014_{cpu}.musllinux_1_1_{cpu}"
    if SYSTEM == "darwin":
        return "macosx_12_0_" + ("arm64" if cpu == "aarch64" else cpu)
    if SYSTEM == "windows":
        return {"x86_64": "win_amd64", "aarch64": "win_arm64", "i686": "win32"}.get(cpu, "win_" + machine)
    # pip takes such a wheel only on the very system that it was built on.
    return re.sub(r"[^a-z0-9]", "_", sysconfig.get_platform().lower())


class BuildPy(build_py):
    """Adds the binary to the package's files."""

    def run(self) -> None:
        super().run()
        if not wanted():
            return
        base = HERE / "src" if self.editable_mode else Path(self.build_lib)
        target = base / "clustergym" / "bin" / NAME
        make_binary(target, self.distribution.get_version())

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        more = [os.path.join(self.build_lib, "clustergym", "bin", NAME)] if wanted() else []
        return super().get_outputs(include_bytecode) + more


class BdistWheel(bdist_wheel):
    """Names the platform but no Python: nothing in here is compiled for one."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = not wanted()

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", platform_tag() if wanted() else "any"


class BinaryDistribution(Distribution):
    """Goes to the folder for platform-dependent packages."""

    def has_ext_modules(self) -> bool:
        return wanted()


setup(cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel}, distclass=BinaryDistribution)
