"""A release as people get it (make packages): what other tools say of it, and the wheel for this machine installed without Go.

$CLUSTERGYM_DIST is the folder of the release, $CLUSTERGYM_SBOM the one with the library of CycloneDX.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif("CLUSTERGYM_DIST" not in os.environ, reason="make packages builds what is tested")
DIST = Path(os.environ.get("CLUSTERGYM_DIST", "."))

VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for path in sys.argv[1:]:
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path, encoding="utf-8").read())
    assert fault is None, f"{path}: {fault}"
"""

PLAY = """
import shutil
import clustergym

assert shutil.which("go") is None
env = clustergym.RemoteEnv("CartPole-v1")
env.reset(seed=1)
for _ in range(5):
    env.step(1)
env.close()
print(clustergym.find_gymctl())
"""


def here() -> Path:
    """The wheel that pip takes on this machine."""
    tags = subprocess.run(
        [sys.executable, "-m", "pip", "debug", "--verbose"], capture_output=True, text=True, check=True
    ).stdout.split()
    fits = []
    for wheel in sorted(DIST.glob("*.whl")):
        python, abi, platforms = wheel.stem.split("-")[2:]
        if any(f"{python}-{abi}-{p}" in tags for p in platforms.split(".")):
            fits.append(wheel)
    assert len(fits) == 1, f"pip takes {fits} here, want one"
    return fits[0]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel in it. Its requirements are those of this one: no network."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], capture_output=True)
    if made.returncode != 0:
        subprocess.run([sys.executable, "-m", "virtualenv", "--no-pip", str(venv)], check=True)
    programs = venv / ("Scripts" if os.name == "nt" else "bin")
    python = programs / Path(sys.executable).name
    if not python.exists():
        python = programs / "python"
    install = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install"]
    subprocess.run([*install, "-q", "--no-index", "--no-deps", str(here())], check=True, env=without_go())
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    (Path(site) / "requirements.pth").write_text(sysconfig.get_path("purelib"))
    return programs


def without_go(programs: Path | None = None) -> dict[str, str]:
    """This environment, with no Go on the PATH and nothing that names another gymctl."""
    folders = [f for f in os.get_exec_path() if shutil.which("go", path=f) is None]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERGYM_") and k != "PYTHONPATH"}
    return {**kept, "PATH": os.pathsep.join([*([str(programs)] if programs else []), *folders])}


def run(programs: Path, folder: Path, command: Sequence[str]) -> str:
    """What a command of the new environment prints."""
    found = shutil.which(command[0], path=str(programs))
    assert found is not None, command
    done = subprocess.run([found, *command[1:]], cwd=folder, env=without_go(programs), capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def version() -> str:
    return here().name.split("-")[1]


def test_bills_of_materials_follow_the_published_schema() -> None:
    bills = sorted(DIST.glob("*.cdx.json"))
    assert len(bills) == len(list(DIST.glob("*.whl")))
    path = {**os.environ, "PYTHONPATH": os.environ["CLUSTERGYM_SBOM"]}
    done = subprocess.run([sys.executable, "-c", VALIDATE, *map(str, bills)], env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_metadata_of_all_wheels_is_the_same() -> None:
    texts = []
    for wheel in sorted(DIST.glob("*.whl")):
        with zipfile.ZipFile(wheel) as z:
            assert z.testzip() is None
            texts.append(z.read(f"clustergym-{version()}.dist-info/METADATA").decode())
    assert len(texts) > 1
    assert len(set(texts)) == 1
    metadata = Parser().parsestr(texts[0])
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata.get_all("License-File") == ["LICENSE", "THIRD-PARTY-LICENSES.txt"]


def test_the_command_is_of_this_version(installed: Path, tmp_path: Path) -> None:
    said = json.loads(run(installed, tmp_path, ["gymctl", "version", "--json"]))
    assert said["version"] == version()


def test_python_plays_with_the_gymctl_inside(installed: Path, tmp_path: Path) -> None:
    found = Path(run(installed, tmp_path, ["python", "-c", PLAY]).strip())
    assert installed.parent in found.parents


def test_it_trains_and_evaluates(installed: Path, tmp_path: Path) -> None:
    train = ["gymctl", "train", "--set", "train.steps=2048", "--no-eval", "--run-dir", "trained"]
    run(installed, tmp_path, train)
    assert (tmp_path / "trained" / "progress.jsonl").read_text().count("\n") > 1
    table = run(installed, tmp_path, ["gymctl", "sim", "--policy", "fifo,sjf", "--jobs", "200"])
    assert "sjf" in table


def test_uninstalling_leaves_nothing(installed: Path, tmp_path: Path) -> None:
    python = shutil.which("python", path=str(installed))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "uninstall", "-q", "-y", "clustergym"], check=True, env=without_go())
    left = [p for p in installed.parent.rglob("*") if "clustergym" in str(p).lower() and p.is_file()]
    assert left == []


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an archive of Linux."""
    to = tmp_path_factory.mktemp("archive")
    with tarfile.open(DIST / f"gymctl-{version()}-linux-amd64.tar.gz") as t:
        t.extractall(to, filter="data")
    return to / f"gymctl-{version()}-linux-amd64"


@pytest.mark.parametrize(
    ("shell", "file", "parse"),
    [
        ("bash", "gymctl.bash", ["-n", "{}"]),
        ("zsh", "_gymctl", ["-n", "{}"]),
        ("fish", "gymctl.fish", ["-n", "{}"]),
        ("pwsh", "gymctl.ps1", ["-NoProfile", "-Command", "[void][ScriptBlock]::Create((Get-Content -Raw '{}'))"]),
    ],
)
def test_completions_are_programs_of_their_shells(archive: Path, shell: str, file: str, parse: list[str]) -> None:
    script = archive / "completions" / file
    assert "gymctl" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, *(word.format(script) for word in parse)], check=True)


def test_manual_pages_are_well_formed(archive: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("no mandoc here (Debian: apt-get install mandoc)")
    pages = sorted(archive.glob("man/man1/*.1"))
    assert len(pages) > 30
    said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)], capture_output=True, text=True)
    faults = [line for line in said.stdout.splitlines() if "missing date" not in line]  # equal for equal programs
    assert faults == []


def test_the_image_has_gymctl_and_no_more(tmp_path: Path) -> None:
    if shutil.which("buildah") is None or os.getuid() != 0 or platform.machine() != "x86_64":
        pytest.skip("needs buildah, as root (Debian: apt-get install buildah)")
    store = ["buildah", "--root", f"{tmp_path}/root", "--runroot", f"{tmp_path}/run", "--storage-driver", "vfs"]

    def buildah(*args: str) -> str:
        done = subprocess.run([*store, *args], capture_output=True, text=True)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout

    buildah("bud", "--isolation", "chroot", "-t", "gymctl", str(DIST))
    container = buildah("from", "gymctl").strip()
    try:
        config = json.loads(buildah("inspect", "--type", "image", "gymctl"))["OCIv1"]["config"]
        assert config["User"] == "65532:65532"
        assert config["Entrypoint"] == ["/usr/bin/gymctl"]
        inside = ["run", "--isolation", "chroot", container, "--", "/usr/bin/gymctl"]
        assert version() in buildah(*inside, "version")
        train = ["train", "-c", "cartpole-ppo", "--set", "train.steps=2048", "--no-eval", "--run-dir", "/data/run"]
        buildah(*inside, *train)  # /data belongs to who is no root
    finally:
        buildah("rm", container)
