"""Models of Stable-Baselines3 as ONNX: gymctl plays them as they play themselves, with both of PyTorch's exporters."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize

import clustergym.onnx
from clustergym import LocalServer, RemoteEnv, evaluate, find_gymctl
from clustergym.sb3 import RemoteSB3VecEnv

SHORT: dict[str, Any] = {"n_steps": 64, "batch_size": 64, "n_epochs": 2}
WINDOW: dict[str, Any] = {"preset": "quickstart-v1", "window": 24}

# What is trained: the algorithm, its policy, its settings, and the view of observations.
KINDS: dict[str, tuple[Any, str, dict[str, Any], str]] = {
    "ppo": (PPO, "MlpPolicy", SHORT, "flat"),
    "dqn": (DQN, "MlpPolicy", {"learning_starts": 100, "policy_kwargs": {"net_arch": [64]}}, "flat"),
    "maskable-ppo": (MaskablePPO, "MlpPolicy", SHORT, "flat"),
    "multi-input": (PPO, "MultiInputPolicy", SHORT, "dict"),
    "cnn": (PPO, "CnnPolicy", SHORT | {
        "policy_kwargs": {"normalize_images": False, "features_extractor_kwargs": {"normalized_image": True, "features_dim": 32}},
    }, "flat"),
}  # fmt: skip


class Pictures(VecEnvWrapper):
    """Flat observations as images of one channel, on which CnnPolicy learns."""

    def __init__(self, venv: Any) -> None:
        (n,) = venv.observation_space.shape
        h = next(h for h in range(36, n) if n % h == 0 and n // h >= 36)
        super().__init__(venv, observation_space=spaces.Box(-np.inf, np.inf, (1, h, n // h)))

    def reset(self) -> Any:
        return self.venv.reset().reshape(-1, *self.observation_space.shape)

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if "terminal_observation" in info:
                info["terminal_observation"] = info["terminal_observation"].reshape(self.observation_space.shape)
        return obs.reshape(-1, *self.observation_space.shape), rewards, dones, infos


@pytest.fixture(scope="module", params=[*KINDS, "normalised"])
def trained(request: pytest.FixtureRequest, url: str) -> tuple[str, Any, str]:
    """A model of each kind that has learned a little."""
    kind = request.param
    algorithm, policy, settings, obs = KINDS["ppo" if kind == "normalised" else kind]
    env: Any = RemoteSB3VecEnv("JobSelect-v1", 4, url=url, obs=obs, kwargs=WINDOW)
    if kind == "normalised":
        env = VecNormalize(env)
    if kind == "cnn":
        env = Pictures(env)
    torch.set_num_threads(1)
    model = algorithm(policy, env, seed=1, device="cpu", **settings)
    model.learn(512)
    return kind, model, obs


def choose(model: Any, obs: Any, mask: np.ndarray) -> int:
    """What the model itself would do: of probabilities by the rule of gymctl, of values the largest."""
    scale = model.get_vec_normalize_env()
    if scale is not None:
        obs = scale.normalize_obs(obs)
    if not isinstance(obs, dict):
        obs = obs.reshape(model.observation_space.shape)
    if isinstance(model, DQN):
        return int(model.predict(obs, deterministic=True)[0])
    with torch.no_grad():
        logits = model.policy.get_distribution(model.policy.obs_to_tensor(obs)[0]).distribution.logits
    return int(clustergym.decide(logits[0], mask, noop=len(mask) - 1))


@pytest.mark.parametrize("legacy", [False, True], ids=["dynamo", "legacy"])
def test_gymctl_plays_models_action_for_action(trained: tuple[str, Any, str], legacy: bool, tmp_path: Path) -> None:
    kind, model, obs = trained
    path = clustergym.onnx.export(model, tmp_path / "policy.onnx", legacy=legacy)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    decisions = 0
    with LocalServer(args=["--policy-onnx", str(path), "--name", "mine"]) as server:
        env = RemoteEnv("JobSelect-v1", server.url, obs=obs, kwargs=WINDOW | {"split": "test"})
        assert "mine" in env.handle.meta["advise"]
        noop = int(env.action_space.n) - 1  # to wait
        for seed in range(4):
            seen, _ = env.reset(seed=seed)
            over = False
            while not over:
                mask = env.action_masks()
                action = choose(model, seen, mask)
                if not mask[action]:  # as step does with an illegal action
                    action = noop if mask[noop] else int(mask.argmax())
                assert env.advise("mine") == action
                decisions += 1
                seen, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated
        env.close()
    print(f"{kind}: {decisions} decisions")
    assert decisions > 50


@pytest.mark.parametrize("trained", ["maskable-ppo", "dqn"], indirect=True)  # with the mask inside, and without
def test_gymctl_eval_counts_models_as_their_own_play(trained: tuple[str, Any, str], tmp_path: Path) -> None:
    _, model, obs = trained
    path = clustergym.onnx.export(model, tmp_path / "policy.onnx")
    with subprocess.Popen(
        [
            find_gymctl(), "eval", "-c", "quickstart-v1", "--policy-onnx", str(path), "--name", "onnx",
            "--serve", "127.0.0.1:0", "--external", "python",
            "--windows", "3", "--no-whole", "--policies", "fifo+skip", "--set", "env.window=24", "--json",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            assert run.stdout is not None
            assert run.stderr is not None
            address = next(line.split()[-1] for line in run.stderr if "can connect to" in line)
            drain = threading.Thread(target=run.stderr.read)
            drain.start()
            evaluate(lambda seen, mask: choose(model, seen, mask), f"ws://{address}", "python", obs=obs)
            report = json.loads(run.stdout.read())
            assert run.wait(60) == 0
            drain.join()
        finally:
            run.kill()
    rows = {p["name"]: p["metrics"] for p in report["policies"]}
    assert rows["onnx"] == rows["python"]


class Attention(torch.nn.Module):
    """A network that is no model of a library: a transformer over the rows of the queue, with the mask inside."""

    def __init__(self, at: int, rows: int, columns: int) -> None:
        super().__init__()
        self.at, self.rows, self.columns = at, rows, columns
        self.embed = torch.nn.Linear(columns, 32)
        self.layer = torch.nn.TransformerEncoderLayer(32, 4, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.score = torch.nn.Linear(32, 1)
        self.wait = torch.nn.Linear(32, 1)

    def forward(self, obs: Any, action_mask: Any) -> Any:
        x = obs[:, self.at : self.at + self.rows * self.columns].reshape(-1, self.rows, self.columns)
        x = self.layer(self.embed(x))
        logits = torch.cat([self.score(x).squeeze(2), self.wait(x.mean(dim=1))], dim=1)
        return torch.where(action_mask, logits, torch.full_like(logits, -1e9))


@pytest.mark.parametrize("legacy", [False, True], ids=["dynamo", "legacy"])
def test_gymctl_plays_a_network_of_plain_pytorch(legacy: bool, tmp_path: Path) -> None:
    with LocalServer() as server:
        env = RemoteEnv("JobSelect-v1", server.url, obs="dict", kwargs=WINDOW)
        sizes = {name: space.shape for name, space in env.observation_space.spaces.items()}
        env.close()
    torch.manual_seed(1)
    at = sum(int(np.prod(shape)) for name, shape in sizes.items() if name < "jobs")
    net = Attention(at, *sizes["jobs"]).eval()
    n = sum(int(np.prod(shape)) for shape in sizes.values())
    actions = sizes["jobs"][0] + 1
    args = (torch.zeros(2, n), torch.ones(2, actions, dtype=torch.bool))
    path = tmp_path / "plain.onnx"
    names: dict[str, Any] = {"input_names": ["obs", "action_mask"], "output_names": ["logits"]}
    if legacy:
        axes = {name: {0: "N"} for name in ("obs", "action_mask", "logits")}
        torch.onnx.export(net, args, str(path), dynamo=False, opset_version=17, dynamic_axes=axes, **names)
    else:
        shapes = {name: {0: torch.export.Dim("N", min=1)} for name in ("obs", "action_mask")}
        torch.onnx.export(
            net, args, str(path), dynamo=True, opset_version=20, external_data=False, dynamic_shapes=shapes, **names
        )
    decisions = 0
    with LocalServer(args=["--policy-onnx", str(path), "--name", "mine"]) as server:
        env = RemoteEnv("JobSelect-v1", server.url, obs="flat", kwargs=WINDOW | {"split": "test"})
        for seed in range(2):
            seen, _ = env.reset(seed=seed)
            over = False
            while not over:
                with torch.no_grad():
                    scores = net(torch.as_tensor(seen)[None], torch.as_tensor(env.action_masks())[None])
                action = clustergym.decide(scores[0], env.action_masks(), noop=env.handle.meta["noop"])
                assert env.advise("mine") == action
                decisions += 1
                seen, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated
        env.close()
    assert decisions > 30


def test_images_of_bytes(tmp_path: Path) -> None:
    """CnnPolicy over images with channels last, which SB3 turns and scales: the file takes them as they are."""

    class Photos(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(0, 255, (40, 36, 3), np.uint8)
        action_space = spaces.Discrete(4)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self.observation_space.sample(), {}

        def step(self, action: Any) -> Any:
            return self.observation_space.sample(), float(action == 1), bool(self.np_random.random() < 0.1), False, {}

    model = PPO("CnnPolicy", Photos(), device="cpu", seed=1, n_steps=32, batch_size=32, n_epochs=1)
    model.learn(64)
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (8, 40, 36, 3), dtype=np.uint8)
    want = model.predict(images.transpose(0, 3, 1, 2), deterministic=True)[0]
    for legacy in (False, True):
        path = clustergym.onnx.export(model, tmp_path / "cnn.onnx", legacy=legacy)
        onnx.checker.check_model(onnx.load(path), full_check=True)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        assert np.array_equal(session.run(["action"], {"obs": images})[0], want)
    run = subprocess.run(
        [find_gymctl(), "eval", "-c", "cartpole-ppo", "--policy-onnx", str(path)], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert "has 4320 numbers a row, and an observation of CartPole-v1 has 4" in run.stderr


class Vectors(gymnasium.Env[Any, Any]):
    """Observations of four numbers, for models that are made and not trained."""

    observation_space = spaces.Box(-1, 1, (4,))

    def __init__(self, actions: spaces.Space[Any]) -> None:
        self.action_space = actions


@pytest.mark.parametrize(
    ("algorithm", "actions"),
    [
        (PPO, spaces.Box(-0.2, 0.3, (2, 2), np.float64)),
        (PPO, spaces.MultiDiscrete([2, 3])),
        (MaskablePPO, spaces.MultiDiscrete([2, 3])),
    ],
)
def test_actions_of_other_spaces(algorithm: Any, actions: spaces.Space[Any], tmp_path: Path) -> None:
    model = algorithm("MlpPolicy", Vectors(actions), device="cpu", seed=1)
    model.policy.action_net.weight.data.mul_(100)  # fresh ones all but agree
    model.policy.set_training_mode(True)
    path = clustergym.onnx.export(model, tmp_path / "policy.onnx", legacy=True)
    assert all(m.training for m in model.policy.modules())
    onnx.checker.check_model(onnx.load(path), full_check=True)
    rng = np.random.default_rng(1)
    feed: dict[str, Any] = {"obs": rng.uniform(-1, 1, (40, 4)).astype(np.float32)}
    masks: dict[str, Any] = {}
    if algorithm is MaskablePPO:
        feed["action_mask"] = rng.random((40, 5)) < 0.6
        feed["action_mask"][:, [0, 2]] = True
        masks = {"action_masks": feed["action_mask"]}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    got = session.run(["action"], feed)[0]
    want = model.predict(feed["obs"], deterministic=True, **masks)[0]
    assert got.dtype == (np.float32 if isinstance(actions, spaces.Box) else np.int64)
    assert len(np.unique(got.reshape(40, -1), axis=0)) > 3
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


def test_what_has_no_form_is_refused(tmp_path: Path) -> None:
    from stable_baselines3 import SAC

    class Box(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (2,))
        action_space = spaces.Box(-1, 1, (1,))

    with pytest.raises(TypeError, match="a model of SAC has no form here"):
        clustergym.onnx.export(SAC("MlpPolicy", Box(), device="cpu"), tmp_path / "sac.onnx")
