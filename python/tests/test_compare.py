"""Checkpoints in Python, and comparisons in one call."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import comparison
from clustergym._child import Child

# Windows of JobSelect-v1 take a second; streams have tests of their own at the end.
compare = functools.partial(clustergym.compare, env="JobSelect-v1")

# Few jobs on a small, crowded cluster: policies differ, and a run takes a second.
KWARGS: dict[str, Any] = {
    "cluster": {"name": "mine", "racks": [{"nodes": [{"gpus": 4}]}]},
    "window": 16, "warm": 8, "load": 3.0, "visible": 4, "max_gpus": 4, "comm": "none",
    "trace": {"synth": {"profile": "lublin", "procs": 4, "jobs": 3000}},
}  # fmt: skip
NETWORKS: dict[str, Any] = {
    "mlp": {"kind": "mlp", "hidden": [8]},
    "cnn": {
        "kind": "cnn", "activation": "relu", "separate": False, "hidden": [8], "head": "slots", "slot_hidden": 4,
        "branches": [
            {"field": "jobs", "slots": True, "dense": [4]},
            {"field": "queue", "slots": True, "convs": [{"filters": 2, "kernel": [20, 4], "stride": [20, 4]}]},
            {"field": "cluster", "convs": [{"filters": 2, "kernel": [20, 4], "stride": [20, 4]}], "dense": [4]},
        ],
    },
}  # fmt: skip


def train(folder: Path, agent: str, network: str) -> Path:
    """The folder of a tiny run."""
    (folder / "cluster.yaml").write_text(json.dumps(KWARGS["cluster"]))
    own = {key: value for key, value in KWARGS.items() if key not in ("cluster", "trace")}
    settings: dict[str, Any] = {"network": NETWORKS[network]}
    if agent == "ppo":
        settings |= {"steps": 32, "epochs": 2, "minibatches": 2, "norm_obs": network == "mlp"}
    else:
        settings |= {"buffer": 300, "learning_starts": 100, "batch": 16, "train_every": 16}
    config = folder / f"{agent}-{network}.yaml"
    config.write_text(json.dumps({
        "name": "tiny", "cluster": str(folder / "cluster.yaml"), "trace": KWARGS["trace"], "env": {"id": "JobSelect-v1", **own},
        "agent": agent,
        agent: settings, "train": {"steps": 512, "envs": 2, "log_every": 256, "eval_every": 256, "checkpoint_every": 256},
        "eval": {"validation": 2},
    }))  # fmt: skip
    run = folder / f"{agent}-{network}"
    command = [clustergym.find_gymctl(), "train", "-c", str(config), "--no-eval", "--json", "--run-dir", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {f"{agent}-{net}": train(folder, agent, net) for agent in ("ppo", "ddqn") for net in NETWORKS}


def first_legal(_: Any, mask: Any) -> int:
    return int(np.argmax(mask))


@pytest.mark.parametrize("name", [f"{agent}-{net}" for agent in ("ppo", "ddqn") for net in NETWORKS])
def test_a_checkpoint_plays_in_python_as_in_gymctl(runs: dict[str, Path], name: str) -> None:
    with clustergym.load(runs[name]) as policy:
        for view in ("dict", "flat"):
            table = compare(
                policy, KWARGS, policies=["sjf+skip"], checkpoints=[runs[name]], windows=4, obs=view, show=False
            )
            python, native = table["model"], next(row for row in table if row.kind == "checkpoint")
            assert native.name == policy.name
            assert python.per_window == native.per_window
            assert python.metrics == native.metrics
            assert native.difference == 0
            assert table["sjf+skip"].difference != 0


def test_a_batch_is_its_rows(runs: dict[str, Path], rng: np.random.Generator) -> None:
    with clustergym.load(runs["ppo-cnn"]) as policy:
        envs = clustergym.RemoteVectorEnv("JobSelect-v1", 5, obs="dict", **KWARGS)
        flat = clustergym.RemoteVectorEnv("JobSelect-v1", 5, obs="flat", **KWARGS)
        obs, _ = envs.reset(seed=3)
        rows, _ = flat.reset(seed=3)
        assert policy.observation_space.contains({key: value[0] for key, value in obs.items()})
        assert policy.action_space == envs.single_action_space
        chosen = set()
        for _ in range(30):
            masks = envs.action_masks()
            actions, state = policy.predict(obs, action_masks=masks)
            assert state is None
            assert actions.shape == (5,)
            assert masks[np.arange(5), actions].all()
            np.testing.assert_array_equal(actions, policy.predict(rows, action_masks=masks)[0])
            for i in range(5):
                single = {key: value[i] for key, value in obs.items()}
                assert policy.predict(single, action_masks=masks[i])[0] == actions[i]
                assert policy.predict(rows[i], action_masks=masks[i])[0] == actions[i]
            inside = {**obs, "action_mask": masks.astype(np.uint8)}
            np.testing.assert_array_equal(actions, policy.predict(inside)[0])
            chosen |= set(actions.tolist())
            obs, *_ = envs.step(actions)
            rows, *_ = flat.step(actions)
        assert len(chosen) > 1
        many = np.repeat(rows, 1000, axis=0)  # more than one request
        masks = np.ones((5000, envs.single_action_space.n), bool)
        np.testing.assert_array_equal(policy.predict(many, action_masks=masks)[0][::1000], policy.predict(rows)[0])
        envs.close()
        flat.close()


def test_a_policy_refuses_what_does_not_fit(runs: dict[str, Path], tmp_path: Path) -> None:
    with clustergym.load(runs["ddqn-mlp"]) as policy:
        width = sum(int(np.prod(shape)) for shape in policy.fields.values())
        good = np.zeros(width, np.float32)
        action, _ = policy.predict(good)
        for bad in (np.zeros(width + 1), np.zeros((2, 3, width)), np.float32(1), {"jobs": good}):
            with pytest.raises(ValueError, match="observation"):
                policy.predict(bad)
        for mask in ([True], np.ones((2, 5))):
            with pytest.raises(ValueError, match="action_masks has shape"):
                policy.predict(good, action_masks=mask)
        with pytest.raises(ValueError, match="greedily"):
            policy.predict(good, deterministic=False)
        with pytest.raises(clustergym.ClusterGymError, match="no legal action"):
            policy.predict(good, action_masks=np.zeros(policy.action_space.n, bool))
        assert policy.predict(good)[0] == action
        assert policy.env_id == "JobSelect-v1"
        assert "ddqn" in repr(policy)
    with pytest.raises(clustergym.ClusterGymError, match="closed"):
        policy.predict(good)
    for bad_run, words in ((tmp_path, "neither a checkpoint"), (tmp_path / "nowhere", "nowhere")):
        with pytest.raises(clustergym.GymctlError, match=words):
            clustergym.load(bad_run)


def _predict(policy: Any, obs: Any, out: Any) -> None:
    out.send(policy.predict(obs)[0].tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_policy_plays_in_other_processes(runs: dict[str, Path], method: str, rng: np.random.Generator) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has none")
    context = multiprocessing.get_context(method)
    with clustergym.load(runs["ppo-mlp"]) as policy:
        width = sum(int(np.prod(shape)) for shape in policy.fields.values())
        obs = rng.random((40, width), np.float32)
        want = policy.predict(obs)[0].tolist()
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_predict, args=(policy, obs, there))
        child.start()
        there.close()
        assert here.poll(60)
        assert here.recv() == want
        child.join(60)
        assert policy.predict(obs)[0].tolist() == want
        assert pickle.loads(pickle.dumps(policy)).predict(obs)[0].tolist() == want


def test_a_policy_outlives_its_program_and_an_interrupt(
    runs: dict[str, Path], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = clustergym.load(runs["ppo-mlp"])
    obs = rng.random((8, sum(int(np.prod(shape)) for shape in policy.fields.values())), np.float32)
    want = policy.predict(obs)[0].tolist()
    assert policy._child is not None
    policy._child.process.kill()
    policy._child.process.wait(20)
    with pytest.raises(clustergym.ClusterGymError, match="has ended"):
        policy.predict(obs)
    assert policy.predict(obs)[0].tolist() == want

    def interrupted(size: int) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(policy, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            policy.predict(obs)
    assert policy.predict(obs)[0].tolist() == want
    process = policy._child.process
    policy.close()
    policy.close()
    assert process.poll() is not None


def test_a_function_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{30 * i},{50 + 37 * i % 400},{1 + i % 4}" for i in range(600)]
    (tmp_path / "jobs.csv").write_text("\n".join(["submit_time,duration,num_gpu", *rows]) + "\n")
    (tmp_path / "mine.yaml").write_text(json.dumps(KWARGS["cluster"]))
    own = {
        **{key: value for key, value in KWARGS.items() if key not in ("trace", "cluster", "load")},
        "trace": tmp_path / "jobs.csv", "cluster": tmp_path / "mine.yaml", "load": np.float64(2.0),
        "obs": "dict", "num_envs": 4, "mask": ["info"],
    }  # fmt: skip
    seen: list[Any] = []

    def act(obs: Any, mask: Any) -> int:
        seen.append((obs, mask))
        return first_legal(obs, mask)

    begun: list[int] = []
    table = compare(
        act,
        own,
        policies=["fifo+skip", "random@slots"],
        windows=3,
        seeds=2,
        name="first",
        reset=lambda: begun.append(1),
    )
    out = capsys.readouterr().out
    assert [row.name for row in table] == ["first", "fifo+skip", "random@slots"]
    assert out == f"{table}\n"
    assert "first wins" in out
    assert len(begun) == 3
    assert isinstance(seen[0][0], dict)
    assert seen[0][1].dtype == np.bool_
    model, rival = table[0], table["fifo+skip"]
    assert model.difference is None
    assert len(model.per_window) == len(rival.per_window) == 3
    assert model.metrics["jct_s"] == pytest.approx(np.mean(model.per_window))
    assert rival.difference == pytest.approx(100 * (np.mean(model.per_window) / np.mean(rival.per_window) - 1))
    assert rival.interval is not None
    low, high = rival.interval
    assert low <= high
    assert rival.win_rate is not None
    assert 0 <= rival.win_rate <= 1
    assert len(table.document["windows"]) == 3
    # The windows are those of the file, on its cluster: gymctl on its own says the same of the heuristic.
    command = [clustergym.find_gymctl(), "eval", "-c", str(tmp_path / "run.yaml"), "--policies", "fifo+skip",
               "--windows", "3", "--no-whole", "--json", "--trace", str(tmp_path / "jobs.csv"),
               "--cluster", str(tmp_path / "mine.yaml")]  # fmt: skip
    settings = {key: own[key] for key in ("window", "warm", "visible", "max_gpus", "comm")}
    (tmp_path / "run.yaml").write_text(json.dumps({"env": {"id": "JobSelect-v1", **settings, "load": 2.0}}))
    alone = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert alone["policies"][0]["metrics"]["jct_s"]["per_window"] == rival.per_window


def test_presets_and_defaults_are_those_of_the_environment() -> None:
    for kwargs in (
        {"window": 8, "warm": 0, "preset": "quickstart-v1", "trace.synth.jobs": 1000},
        {"window": 8, "warm": 0},
    ):
        env = clustergym.RemoteEnv("JobSelect-v1", split="test", obs="dict", **kwargs)
        first = env.reset(seed=1, options={"window": 0})[0]
        env.close()
        seen: list[Any] = []

        def act(obs: Any, mask: Any, seen: list[Any] = seen) -> int:
            seen.append({key: value.shape for key, value in obs.items()})
            return first_legal(obs, mask)

        table = compare(act, kwargs, policies=["sjf@slots"], windows=1, obs="dict", show=False)
        assert seen[0] == {key: value.shape for key, value in first.items()}
        assert table.document["windows"][0]["jobs"] == 8
    with pytest.raises(ValueError, match="preset is of JobSelect-v1, want one of GPUPick-v1"):
        compare(first_legal, {"preset": "quickstart-v1", "window": 8, "warm": 0, "trace.synth.jobs": 1000},
                           env="GPUPick-v1", policies=["sjf+skip"], windows=1)  # fmt: skip


def test_an_environment_with_another_metric() -> None:
    table = compare(first_legal, {"window": 8, "trace.synth.jobs": 1200}, env="DelayOffer-v1", windows=2, show=False)
    assert len(table) > 1
    assert all(len(row.per_window) == 2 for row in table)
    assert str(table).splitlines()[4].startswith("model")


def test_a_table_names_the_rung_of_its_run_times(runs: dict[str, Path]) -> None:
    table = compare(
        first_legal,
        {**KWARGS, "estimates": "history"},
        policies=["fifo+skip", "las", "sjf+skip"],
        checkpoints=[runs["ppo-mlp"]],
        windows=2,
        show=False,
    )
    assert (table.estimates, table.rung) == ("history", "causal")
    checkpoint = table.rows[1]
    assert (checkpoint.kind, checkpoint.trained_on, checkpoint.asks_nothing) == ("checkpoint", "exact", False)
    assert [row.asks_nothing for row in table] == [False, False, True, True, False]
    lines = str(table).splitlines()
    assert lines[:2] == ["estimates: history (causal)", ""]
    assert lines[5].startswith(f"{checkpoint.name} (trained on exact) ")
    assert lines[-1] == "fifo+skip and las+skip ask nothing of run times."


@pytest.mark.parametrize(
    ("kwargs", "policies", "words"),
    [
        ({"windw": 8}, ["sjf+skip"], r"env\.windw: .*did you mean window\?"),
        ({"window": 0}, ["sjf+skip"], r"env\.window: got 0"),
        ({"trace": "nowhere.csv"}, ["sjf+skip"], r"nowhere\.csv: there is no such file"),
        ({"cluster": {"racks": [{"nodes": [{"gpu": 4}]}]}}, ["sjf+skip"], r"gpu.*did you mean gpus\?"),
        ({"window": 8}, ["sfj+skip"], "sfj"),
    ],
)
def test_a_mistake_is_said_in_gymctl_s_words(kwargs: dict[str, Any], policies: list[str], words: str) -> None:
    with pytest.raises(clustergym.GymctlError, match=words) as caught:
        compare(first_legal, kwargs, policies=policies)
    assert "clustergym-compare-" not in str(caught.value)


def test_a_mistake_of_the_call_is_said_before() -> None:
    with pytest.raises(ValueError, match="url: compare plays on this machine"):
        compare(first_legal, {"url": "ws://127.0.0.1:1"})
    with pytest.raises(ValueError, match="split is 'validation'"):
        compare(first_legal, {"split": "validation"})
    with pytest.raises(TypeError, match="model is a int"):
        compare(3, {})
    with pytest.raises(clustergym.GymctlError, match="CartPole-v1"):
        compare(first_legal, env="CartPole-v1")


def test_a_model_of_other_observations_is_refused(runs: dict[str, Path]) -> None:
    with (
        clustergym.load(runs["ppo-mlp"]) as policy,
        pytest.raises(clustergym.ClusterGymError, match=r"env and env_kwargs must be those that it was trained with"),
    ):
        compare(policy, {**KWARGS, "visible": 6}, policies=["sjf+skip"], windows=1)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    children: list[Child] = []

    class Watched(Child):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            children.append(self)

    monkeypatch.setattr(comparison, "Child", Watched)
    return children


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_ends_the_program(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    children = watched(monkeypatch)

    def act(obs: Any, mask: Any) -> int:
        raise error

    with pytest.raises(error):
        compare(act, KWARGS, policies=["sjf+skip"], windows=2)
    assert len(children) == 1
    assert children[0].process.poll() is not None


def test_a_program_that_dies_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    children = watched(monkeypatch)

    def act(obs: Any, mask: Any) -> int:
        children[0].process.kill()
        children[0].process.wait(20)
        return first_legal(obs, mask)

    with pytest.raises(clustergym.GymctlError):
        compare(act, KWARGS, policies=["sjf+skip"], windows=2, timeout=5)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks for the program in /proc")
def test_the_program_ends_with_a_python_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import clustergym, os, sys, time\n"
        "from clustergym import comparison\n"
        "class Said(comparison.Child):\n"
        "    def __init__(self, *a, **k):\n"
        "        super().__init__(*a, **k)\n"
        "        print(self.process.pid, flush=True)\n"
        "comparison.Child = Said\n"
        "def act(obs, mask):\n"
        "    print('plays', flush=True)\n"
        "    time.sleep(100)\n"
        "clustergym.compare(act, {'window': 8, 'warm': 0, 'trace.synth.jobs': 1000}, policies=['sjf+skip'], windows=1)\n"
    )
    python = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert python.stdout is not None
    pid = int(python.stdout.readline())
    assert python.stdout.readline() == "plays\n"
    python.send_signal(signal.SIGKILL)
    python.wait(20)
    python.stdout.close()
    for _ in range(1000):
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    break
        except (ProcessLookupError, FileNotFoundError):
            break
        time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGKILL)
        pytest.fail("it still runs")


STREAMS = {"trace": {"synth": {"jobs": 2000}}, "visible": 4}


def test_streams_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """A function that plays as fifo@slots does has its row, on draws, with intervals and verdicts."""
    table = clustergym.compare(
        first_legal, {"kwargs": {**STREAMS, "trace": {"synth": {"jobs": 2000}}}},
        policies=["sjf+skip", "fifo@slots"], draws=10, jobs=40,
    )  # fmt: skip
    model, rival = table["model"], table["fifo@slots"]
    assert table.document["env"] == "JobSelect-v2"  # the default
    assert table.streams is not None
    assert table.streams["units"] == 10
    assert table.streams["counted_jobs"] == 40
    assert len(model.per_window) == 10
    assert model.ci is not None
    assert model.ci[0] < model.metrics["jct_s"] < model.ci[1]
    assert model.metrics["jct_s"] == pytest.approx(np.mean(model.per_window))
    assert rival.difference == pytest.approx(100 * (model.metrics["jct_s"] / rival.metrics["jct_s"] - 1))
    assert rival.interval is not None
    assert rival.interval[0] <= rival.difference <= rival.interval[1]
    assert {row.verdict for row in table[1:]} <= {"ahead", "behind", "cannot be told apart"}
    assert model.verdict is None
    assert rival.win_rate is None
    said = capsys.readouterr().out
    assert "10 draws, the same for all, 40 counted jobs after 2000 of warm-up." in said
    assert "verdict" in said


def test_few_streams_have_no_intervals() -> None:
    table = clustergym.compare(first_legal, {"kwargs": STREAMS}, policies=["sjf+skip"], draws=2, jobs=20, show=False)
    rival = table["sjf+skip"]
    assert rival.interval is None
    assert rival.verdict == "too few units"
    assert table["model"].ci is None
    assert "2 draws are too few for intervals and verdicts, which need 10." in str(table)
