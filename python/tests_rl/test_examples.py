"""The examples as a user starts them, and an agent of another library in gymctl eval's comparison."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import benchmark_sb3
import evaluate_sb3
import pytest
import sb3_maskable_ppo
import torchrl_check
import yaml

from clustergym import find_gymctl
from conftest import SMALL

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNNABLE = sorted(p.name for p in EXAMPLES.glob("*.py") if p.name not in ("paired.py", "sb3_run.py"))


def run(*command: str, **env: str) -> str:
    done = subprocess.run(
        command, cwd=EXAMPLES, env={**os.environ, **env}, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", RUNNABLE)
def test_an_example_says_how_it_is_started_and_with_flags_that_it_has(name: str) -> None:
    doc = ast.get_docstring(ast.parse((EXAMPLES / name).read_text())) or ""
    lines = [line.split() for line in doc.splitlines() if line.strip().startswith("python ")]
    assert lines, f"{name} does not say how to run it"
    source = (
        (EXAMPLES / name).read_text() + (EXAMPLES / "paired.py").read_text() + (EXAMPLES / "rllib_ppo.py").read_text()
    )
    for line in lines:
        assert line[1] == name
        for flag in re.findall(r"--[a-z-]+", " ".join(line)):
            assert f'"{flag}"' in source, f"{name}: {flag} is no flag"


def test_an_example_runs_alone_with_a_server_of_its_own() -> None:
    out = run(sys.executable, "cleanrl_ppo.py", "--steps", "512", "--envs", "4", "--rollout", "32", "--episodes", "2",
              "--kwargs", '{"window": 8, "warm": 0}')  # fmt: skip
    result = json.loads(out.splitlines()[-1])
    assert result["env"] == "JobSelect-v1"
    assert len(result["interval"]) == 2


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("cleanrl_ppo.py", ".pt"), ("sb3_ppo.py", ".zip"), ("sb3_dqn.py", ".zip"), ("sb3_maskable_ppo.py", ".zip"),
        ("rllib_ppo.py", ""),
    ],
)  # fmt: skip
def test_ctrl_c_saves_the_model_and_a_run_goes_on_with_it(url: str, tmp_path: Path, name: str, saved: str) -> None:
    more = ["--rollout", "16"] if name in ("cleanrl_ppo.py", "sb3_maskable_ppo.py") else []
    if name == "rllib_ppo.py":
        more = ["--runners", "1", "--batch", "256"]
    few = ["--url", url, "--env", "InvalidAction-v1", "--envs", "4", "--episodes", "2", *more]
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / name), *few]
    training = subprocess.Popen(
        [*command, "--steps", "50000"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert training.stdout is not None
        assert training.stdout.readline().startswith("step "), "it ended before it began to learn"
        training.send_signal(signal.SIGINT)
        out, err = training.communicate(timeout=120)
    finally:
        if training.poll() is None:
            training.kill()
            training.wait(10)
    assert training.returncode == 130, err[-3000:]
    file = f"{name.removesuffix('.py')}-InvalidAction-v1{saved}"
    assert (
        f"interrupted: the model so far is in {file}; go on with: python {name} --env InvalidAction-v1 --resume {file}"
        in out
    )
    assert (tmp_path / file).exists()
    again = subprocess.run(
        [*command, "--steps", "512", "--resume", file],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert again.returncode == 0, again.stderr[-3000:]
    result = json.loads(again.stdout.splitlines()[-1])
    assert len(result["interval"]) == 2


def test_torchrl_checks_and_rolls_out(url: str) -> None:
    result = torchrl_check.main(["--url", url, "--env", "JobSelect-v1", "--kwargs", '{"window": 16, "warm": 0}'])
    assert result["legal"]
    assert result["steps"] == 1000


def test_agents_of_sb3_play_tasks_of_the_benchmark_as_models(url: str, tmp_path: Path) -> None:
    out = tmp_path / "sb3"
    short = ["workerplace-pairs", "--version", "v1", "--out", str(out), "--steps", "2048", "--url", url]
    first = benchmark_sb3.main([*short, "--seeds", "1"])
    assert [(m["task"], m["seed"], m["steps"]) for m in first] == [("workerplace-pairs", 1, 2048)]
    kept = (out / "workerplace-pairs" / "seed-1.onnx").read_bytes()
    more = benchmark_sb3.main([*short, "--seeds", "2"])  # goes on with what is missing
    assert [m["seed"] for m in more] == [2]
    assert (out / "workerplace-pairs" / "seed-1.onnx").read_bytes() == kept
    with pytest.raises(SystemExit, match="did you mean workerplace-pairs"):
        benchmark_sb3.main(["workerplace-pair", "--version", "v1", "--out", str(out)])
    played = json.loads(run(find_gymctl(), "benchmark", "run", "--version", "v1", "--policy-onnx", str(out),
                            "--name", "sb3", "--json", "-o", str(tmp_path / "played")))  # fmt: skip
    (task,) = played["tasks"]
    assert task["task"] == "workerplace-pairs"
    assert [len(row) for row in task["values"]] == [200, 200]
    assert len(set(task["hashes"])) == 2


def test_an_agent_of_sb3_joins_the_comparison_on_the_same_windows(url: str, tmp_path: Path) -> None:
    gymctl = find_gymctl()
    own = {key: value for key, value in SMALL.items() if key != "cluster" and not key.startswith("trace.")}
    synth = {key.removeprefix("trace.synth."): value for key, value in SMALL.items() if key.startswith("trace.synth.")}
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump({
        "name": "small", "cluster": SMALL["cluster"], "trace": {"synth": synth}, "env": {"id": "JobSelect-v1", **own},
        "train": {"steps": 2048, "envs": 8}, "eval": {"windows": 8, "whole": False, "policies": ["sjf+skip"]},
    }))  # fmt: skip
    native = run(gymctl, "train", "-c", str(config), "--json", "--run-dir", str(tmp_path / "run"))
    assert json.loads(native)["step"] >= 2048
    model = tmp_path / "sb3.zip"
    sb3_maskable_ppo.main(["--url", url, "--kwargs", json.dumps(SMALL), "--steps", "2048", "--episodes", "4",
                           "--save", str(model)])  # fmt: skip

    evaluation = subprocess.Popen(
        [gymctl, "eval", "--checkpoint", str(tmp_path / "run"), "--policies", "sjf+skip,sjf@slots", "--json",
         "--serve", "127.0.0.1:0", "--external", "sb3", "--external-timeout", "2m"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert evaluation.stderr is not None
        address = wait_for_address(evaluation)
        played = evaluate_sb3.main(["--model", str(model), "--url", address, "--name", "sb3"])
        out, err = evaluation.communicate(timeout=120)
        assert evaluation.returncode == 0, err
    finally:
        if evaluation.poll() is None:
            evaluation.kill()
            evaluation.wait(10)
    document = json.loads(out)
    policies: dict[str, Any] = {p["name"]: p for p in document["policies"]}
    assert played["windows"] == len(document["windows"])
    assert "sb3" in policies, list(policies)
    per_window = {name: p["metrics"]["jct_s"]["per_window"] for name, p in policies.items()}
    assert {len(v) for v in per_window.values()} == {played["windows"]}
    assert any(p["kind"] == "checkpoint" for p in policies.values())
    assert any("sb3" in (pair["a"], pair["b"]) for pair in document["paired"])


def wait_for_address(process: subprocess.Popen[str]) -> str:
    """The address in what gymctl eval says on its standard error."""
    said = ""
    deadline = time.monotonic() + 60
    assert process.stderr is not None
    while time.monotonic() < deadline:
        line = process.stderr.readline()
        said += line
        found = re.search(r"(?:wss?://)?127\.0\.0\.1:\d+", line)
        if found:
            return found.group(0)
        if not line and process.poll() is not None:
            break
    raise AssertionError(f"gymctl eval told no address: {said}")
