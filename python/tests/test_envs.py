"""Environments of a real server behind Gymnasium's interface."""

from __future__ import annotations

import importlib.metadata
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import registry
from gymnasium.utils.env_checker import check_env

import clustergym
from clustergym import ENVIRONMENTS, RemoteEnv
from clustergym.infos import blank_info, row_info
from clustergym.registration import STEP_LIMITS

SMALL = {"cluster": "pool:4", "max_gpus": 4, "window": 8, "warm": 0, "trace": {"synth": {"jobs": 500}}}
"""A JobSelect-v1 whose episodes end after a few dozen steps."""

# Gymnasium warns of infinite bounds; these observations have none.
UNBOUNDED = {"CartPole-v1"}


def equal(a: Any, b: Any) -> bool:
    """Equality of observations and infos, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.shape == b.shape and all(equal(x, y) for x, y in zip(a.flat, b.flat))
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b)


def legal(mask: Any, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


# Registration.


def test_the_registered_environments_are_those_of_the_server() -> None:
    listed = json.loads(
        subprocess.run([clustergym.find_gymctl(), "envs", "--json"], capture_output=True, check=True).stdout
    )
    assert {e["id"]: e["solved"] for e in listed["envs"]} == ENVIRONMENTS


def test_environments_are_registered_once_however_often_it_is_asked() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = dict(registry)
        clustergym.register()
        for point in importlib.metadata.entry_points(group="gymnasium.envs"):
            if point.name == "clustergym":
                # As a loader of plugins does it.
                with gym.envs.registration.namespace("clustergym"):
                    point.load()()
        assert registry == before
    assert {name for name in registry if name.startswith("clustergym/")} == {f"clustergym/{e}" for e in ENVIRONMENTS}


def test_specs_say_when_the_server_truncates(url: str) -> None:
    with clustergym.Client(url) as client:
        for env_id in ENVIRONMENTS:
            registered = gym.spec(f"clustergym/{env_id}").max_episode_steps
            env = RemoteEnv(env_id, client=client)
            limit = env.handle.spec["max_episode_steps"]
            assert env.spec is not None
            assert env.spec.max_episode_steps == limit
            # Arguments change some limits, which Gymnasium's TimeLimit would not follow.
            assert registered == (None if env_id == "DelayOffer-v1" else limit)
            env.close()
    made = gym.make("clustergym/JobSelect-v1", url=url, max_steps=3, **SMALL)
    assert made.spec is not None
    assert made.spec.max_episode_steps == 3
    again = made.spec.make()
    for env in (made, again):
        env.reset(seed=1)
        assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
        env.close()


@pytest.mark.parametrize("env_id", sorted(STEP_LIMITS))
def test_an_episode_made_by_gymnasium_is_truncated_in_the_servers_step(env_id: str, url: str) -> None:
    ends = []
    for env in (gym.make(f"clustergym/{env_id}", url=url), RemoteEnv(env_id, url)):
        env.action_space.seed(1)
        env.reset(seed=1)
        for _ in range(STEP_LIMITS[env_id]):
            *_, terminated, truncated, _ = env.step(0 if env_id == "MountainCar-v0" else env.action_space.sample())
            ends.append((terminated, truncated))
            if terminated or truncated:
                break
        env.close()
    half = len(ends) // 2
    assert ends[:half] == ends[half:]


def test_a_batch_takes_the_limit_that_the_server_keeps_and_no_other(url: str) -> None:
    envs = gym.make_vec("clustergym/CartPole-v1", 2, url=url)
    assert envs.spec is not None
    assert envs.spec.max_episode_steps == 500
    envs.close()
    clustergym.RemoteVectorEnv("CartPole-v1", 2, url, max_episode_steps=1000).close()
    for env_id, given in (("CartPole-v1", 100), ("JobSelect-v1", 100)):
        with pytest.raises(ValueError, match="max_episode_steps is 100"):
            gym.make_vec(f"clustergym/{env_id}", 2, url=url, max_episode_steps=given)


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_unknown_arguments_are_type_errors_in_pythons_words(env_id: str, url: str) -> None:
    for make in (
        lambda: RemoteEnv(env_id, url, frameskip=4),
        lambda: gym.make(f"clustergym/{env_id}", url=url, frameskip=4),
        lambda: gym.make_vec(f"clustergym/{env_id}", 2, url=url, frameskip=4),
        lambda: RemoteEnv(env_id, url, kwargs={"frameskip": 4}),
    ):
        with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'frameskip'") as caught:
            make()
        assert isinstance(caught.value, clustergym.BadKwargs)
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)


def test_wrong_arguments_that_exist_are_no_type_errors(url: str) -> None:
    for kwargs in ({"window": "soon"}, {"window": -1}, {"trace": {"fil": "jobs.csv"}}):
        with pytest.raises(clustergym.BadKwargs) as caught:
            RemoteEnv("JobSelect-v1", url, **kwargs)
        assert not isinstance(caught.value, TypeError)


def test_the_refusal_of_an_argument_does_not_show_the_token() -> None:
    token = "a-token-of-this-test-alone"
    with clustergym.LocalServer(token=token) as server:
        for make in (gym.make, gym.make_vec):
            with pytest.raises(clustergym.UnknownKwargs) as caught:
                make("clustergym/JobSelect-v1", url=server.url, token=token, nonsense=1)
            assert token not in str(caught.value)
            assert token not in repr(caught.value)


def test_importing_starts_no_server_and_make_finds_the_module_by_itself(url: str) -> None:
    code = (
        "import sys, gymnasium; assert 'clustergym' not in sys.modules\n"
        f"env = gymnasium.make('clustergym:clustergym/ProbeAction-v1', url={url!r})\n"
        "import clustergym.server; assert clustergym.server._shared is None\n"
        "env.reset(seed=1); env.close(); print('done')"
    )
    src = str(Path(clustergym.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": src, "CLUSTERGYM_GYMCTL": "/nowhere"}
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert out.stdout == "done\n", out.stderr


def test_the_client_needs_no_gymnasium(url: str) -> None:
    code = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'gymnasium': raise ModuleNotFoundError(name, name='gymnasium')\n"
        "sys.meta_path.insert(0, No())\n"
        "import clustergym\n"
        f"c = clustergym.Client({url!r}); h = clustergym.Handle(c, 'CartPole-v1')\n"
        "print(h.wait(h.post_reset(seed=1))['obs']['pole_angle'].shape); c.close()"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(clustergym.__file__).parents[1])}
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert out.stdout == "(1, 1)\n", out.stderr


# The views of observations.


def test_observations_are_one_vector_unless_something_needs_fields(url: str) -> None:
    for env_id, size in (("CartPole-v1", 4), ("JobSelect-v1", None)):
        env = gym.make(f"clustergym/{env_id}", url=url)
        fields = gym.make(f"clustergym/{env_id}", url=url, obs="dict")
        assert isinstance(env.observation_space, gym.spaces.Box)
        assert env.observation_space.dtype == np.float32
        assert size is None or env.observation_space.shape == (size,)
        assert env.observation_space == gym.spaces.flatten_space(fields.observation_space)
        (flat, _), (whole, _) = env.reset(seed=4), fields.reset(seed=4)
        assert equal(flat, gym.spaces.flatten(fields.observation_space, whole))
        env.close()
        fields.close()
    masked = RemoteEnv("JobSelect-v1", url, mask=["obs"])
    assert isinstance(masked.observation_space, gym.spaces.Dict)
    masked.close()
    with pytest.raises(clustergym.BadRequest, match="obs dict"):
        RemoteEnv("JobSelect-v1", url, mask=["obs"], obs="flat")


@pytest.mark.parametrize("forecast", ["auto", "on", "off"])
@pytest.mark.parametrize("estimates", ["exact", "history"])
def test_forecasts_are_in_the_observation_space_where_the_key_says_so(url: str, estimates: str, forecast: str) -> None:
    shown = forecast == "on" or (forecast == "auto" and estimates == "history")
    small: dict[str, Any] = {**SMALL, "estimates": estimates, "forecast": forecast}
    envs = gym.make_vec("clustergym/JobSelect-v1", num_envs=2, url=url, obs="dict", **small)
    space = envs.single_observation_space
    assert isinstance(space, gym.spaces.Dict)
    assert list(space) == ["cluster", "global", *(["held"] if shown else []), "jobs", "queue"]
    assert space["jobs"].shape == (10, 24 if shown else 10)
    obs, _ = envs.reset(seed=7)
    assert envs.observation_space.contains(obs)
    empty = obs["jobs"][..., 0] == 0
    assert empty.any()
    assert not obs["jobs"][empty].any()
    if shown:
        assert (obs["jobs"][~empty][:, 10:15] > 0).all(), "every job has quantiles"
    envs.close()
    with pytest.raises(clustergym.ClusterGymError, match="auto, on or off"):
        RemoteEnv("JobSelect-v1", url, **{**small, "forecast": True})


# Metrics.


def play_to_the_end(env: gym.Env[Any, Any]) -> tuple[dict[str, Any], float, int]:
    """The last info, return and length of an episode of the oldest legal jobs."""
    _, info = env.reset(seed=1)
    total, steps, over = 0.0, 0, False
    while not over:
        assert not info.get("jct_s"), "only the last step has a value"
        _, reward, terminated, truncated, info = env.step(int(np.argmax(info["action_mask"])))
        total, steps, over = total + reward, steps + 1, terminated or truncated
    return info, total, steps


def test_the_last_info_has_the_metrics_without_asking_and_no_episode(url: str) -> None:
    names = {"jct_s", "wait_s", "slowdown", "makespan_s", "unfinished"}
    env = gym.make("clustergym/JobSelect-v1", url=url, **SMALL)
    assert set(env.get_wrapper_attr("metric_names")) == names
    info, total, steps = play_to_the_end(env)
    assert set(info) == {"action_mask", "discount", "elapsed_s", "seed", "invalid", *names}
    assert all(type(info[name]) is float for name in names)
    assert info["jct_s"] > info["wait_s"] >= 0
    env.close()
    for asked, more in (("episode", set()), (["episode", "metrics"], names)):
        env = RemoteEnv("JobSelect-v1", url, info=asked, **SMALL)
        info, _, _ = play_to_the_end(env)
        assert set(info) == {"action_mask", "discount", "elapsed_s", "seed", "invalid", "episode", *more}
        assert info["episode"] == {"r": total, "l": steps}
        env.close()


def shape_of(info: Any) -> Any:
    """The keys and types of an info."""
    if isinstance(info, dict):
        return {key: shape_of(value) for key, value in info.items()}
    return (info.dtype, info.shape) if isinstance(info, np.ndarray) else type(info)


@pytest.mark.parametrize("env_id", ["JobSelect-v1", "CartPole-v1", "InvalidAction-v1", "QueueRank-v1", "DelayOffer-v1"])
@pytest.mark.parametrize("invalid", ["noop", "error"])
@pytest.mark.parametrize("info", ["metrics", "episode", ["episode", "metrics"], "all", "none", []])
def test_all_infos_of_an_environment_have_the_same_keys_and_types(
    env_id: str, invalid: str, info: Any, client: clustergym.Client
) -> None:
    small = {"JobSelect-v1": SMALL, "QueueRank-v1": {"window": 8}, "DelayOffer-v1": {"window": 4}}.get(env_id, {})
    env = RemoteEnv(env_id, client=client, info=info, invalid=invalid, **small)
    shapes = [shape_of(env.reset()[1])]
    ends = 0
    while ends < 2 and len(shapes) < 400:
        # With invalid="noop" masked actions are tried too, and replaced.
        legal = np.flatnonzero(env.action_masks()) if invalid == "error" else np.arange(env.action_space.n)  # type: ignore[attr-defined]
        *_, terminated, truncated, got = env.step(int(legal[len(shapes) % len(legal)]))
        shapes.append(shape_of(got))
        if terminated or truncated:
            ends += 1
            shapes.append(shape_of(env.reset()[1]))
    assert all(shape == shapes[0] for shape in shapes)
    env.close()


def test_a_blank_is_what_an_info_lacks_and_unknown_at_an_episodes_end_is_nan() -> None:
    blank = blank_info(["episode", "metrics"], ("jct_s",), "noop")
    assert blank == {"seed": -1, "invalid": False, "jct_s": 0.0, "episode": {"r": 0.0, "l": 0}}
    assert blank_info("none", ("jct_s",), "noop") == {}
    reply = {"jct_s": np.array([7.0, 0.0]), "_jct_s": np.array([True, False])}
    assert row_info(reply, 0, blank, True)["jct_s"] == 7
    assert row_info(reply, 1, blank, False)["jct_s"] == 0
    assert np.isnan(row_info(reply, 1, blank, True)["jct_s"])
    assert "jct_s" not in row_info(reply, 1)
    row = row_info(None, 0, blank)
    row["episode"]["r"] = 5.0
    assert blank["episode"]["r"] == 0, "the caller owns its info"


def test_gymnasiums_recorder_of_episodes_has_its_key_to_itself(url: str) -> None:
    env = gym.wrappers.RecordEpisodeStatistics(gym.make("clustergym/JobSelect-v1", url=url, **SMALL))
    info, total, steps = play_to_the_end(env)
    assert info["episode"]["r"] == pytest.approx(total)
    assert info["episode"]["l"] == steps
    assert info["jct_s"] > 0
    env.close()


# Gymnasium's own checker.


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
@pytest.mark.parametrize("obs", ["dict", "flat"])
def test_gymnasiums_checker_finds_no_fault_and_warns_of_none(env_id: str, obs: str, url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is out of date")  # version 2 is there
        if env_id in UNBOUNDED:
            warnings.filterwarnings("ignore", message=".*(minimum value is -infinity|maximum value is infinity)")
        env = gym.make(f"clustergym/{env_id}", url=url, obs=obs)
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize("mask", [(), ("obs",), ("info", "obs")])
def test_the_checker_is_content_wherever_the_mask_is(mask: tuple[str, ...], url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = RemoteEnv("ProbeMaskedAction-v1", url, mask=mask)
        check_env(env)
        fields = getattr(env.observation_space, "spaces", {})  # a mask among the observations makes them fields
        assert ("action_mask" in fields) == ("obs" in mask) == bool(fields)
        obs, info = env.reset(seed=0)
        assert ("action_mask" in info) == ("info" in mask)
        legal_now = env.action_masks()
        assert legal_now.dtype == bool
        for place in (obs, info):
            if isinstance(place, dict) and "action_mask" in place:
                assert (place["action_mask"] == legal_now).all()
        env.close()


def test_an_environment_made_without_gymnasiums_make_has_a_spec_that_makes_another(url: str) -> None:
    env = RemoteEnv("JobSelect-v1", url, timeout=30, **SMALL)
    assert env.spec is not None
    assert env.spec.id == "clustergym/JobSelect-v1"
    other = env.spec.make()
    assert equal(env.reset(seed=4), other.reset(seed=4))
    assert env.handle.spec["scenario_sha"] == other.unwrapped.handle.spec["scenario_sha"]  # type: ignore[attr-defined]
    other.close()
    env.close()


# Types, as the checkers of agents' libraries want them.


@pytest.mark.parametrize("view", ["flat", "dict"])
@pytest.mark.parametrize("env_id", ["JobSelect-v1", "CartPole-v1", "Nav2D-v1", "Bandit-v1"])
def test_what_step_returns_has_exactly_the_declared_types(env_id: str, view: str, client: clustergym.Client) -> None:
    info_of = ["episode", "metrics"]
    env = RemoteEnv(env_id, client=client, obs=view, info=info_of, **(SMALL if env_id == "JobSelect-v1" else {}))
    env.action_space.seed(1)
    obs, info = env.reset(seed=1)
    seen: list[np.ndarray] = []
    for _ in range(300):
        assert obs in env.observation_space
        for part, space in (
            [(obs, env.observation_space)]
            if view == "flat"
            else [(obs[name], env.observation_space[name]) for name in obs]  # type: ignore[index]
        ):
            assert part.dtype == space.dtype
            assert part.flags.writeable
            assert part.flags.c_contiguous
            assert not any(np.shares_memory(part, other) for other in seen[-8:])
            seen.append(part)
        for value in info.values():
            assert type(value) in (float, int, bool, dict) or value.dtype == np.int8
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert type(reward) is float
        assert type(terminated) is bool
        assert type(truncated) is bool
        assert not (terminated and truncated)
        if terminated or truncated:
            assert set(env.metric_names) <= set(info)
            assert set(info["episode"]) == {"r", "l"}
            assert type(info["episode"]["l"]) is int
            obs, info = env.reset()
    env.close()


def test_arrays_without_copying_are_read_only(client: clustergym.Client) -> None:
    env = RemoteEnv("CartPole-v1", client=client, copy=False)
    obs, _ = env.reset(seed=1)
    assert not obs.flags.writeable
    env.close()


def test_returned_observations_may_be_changed_without_consequence(client: clustergym.Client) -> None:
    env, other = (RemoteEnv("CartPole-v1", client=client) for _ in range(2))
    a, _ = env.reset(seed=1)
    other.reset(seed=1)
    a[:] = 99
    assert equal(env.step(1), other.step(1))
    env.close()
    other.close()


# Behaviour.


@pytest.mark.parametrize("env_id", ["JobSelect-v1", "InvalidAction-v1", "CartPole-v1"])
def test_the_same_seed_and_actions_give_the_same_bytes(env_id: str, url: str) -> None:
    runs = []
    for _ in range(2):
        rng = np.random.default_rng(0)
        with clustergym.Client(url) as c:
            env = RemoteEnv(env_id, client=c, **(SMALL if env_id == "JobSelect-v1" else {}))
            run: list[Any] = [env.reset(seed=11)]
            for _ in range(150):
                run.append(env.step(legal(env.action_masks(), rng)))
                if run[-1][2] or run[-1][3]:
                    run.append(env.reset())
            runs.append(run)
    assert equal(runs[0], runs[1])


def test_other_seeds_give_other_episodes_and_so_does_the_next_reset(client: clustergym.Client) -> None:
    env = RemoteEnv("CartPole-v1", client=client)
    first = env.reset(seed=1)[0]
    assert not equal(first, env.reset(seed=2)[0])
    assert equal(first, env.reset(seed=1)[0])
    assert not equal(first, env.reset()[0])
    env.close()


def test_an_unseeded_environment_says_which_seed_it_drew(client: clustergym.Client) -> None:
    env = RemoteEnv("CartPole-v1", client=client)
    obs, info = env.reset()
    assert type(info["seed"]) is int
    again, info = env.reset(seed=info["seed"])
    assert equal(obs, again)
    assert info["seed"] == -1, "no seed was drawn"
    env.close()


def test_masked_actions_are_replaced_paid_for_or_refused(client: clustergym.Client) -> None:
    rewards = {}
    for invalid in ("noop", "penalty", "error"):
        env = RemoteEnv(
            "InvalidAction-v1", client=client, invalid=invalid, penalty=0.25 if invalid == "penalty" else None
        )
        env.reset(seed=3)
        masked = int(np.flatnonzero(~env.action_masks())[0])
        if invalid == "error":
            with pytest.raises(clustergym.BadAction) as e:
                env.step(masked)
            assert e.value.env == (0,)
            assert env.step(legal(env.action_masks(), np.random.default_rng(0)))[1] in (0.0, 1.0)
        else:
            _, reward, _, _, info = env.step(masked)
            assert info["invalid"] is True
            rewards[invalid] = reward
        env.close()
    assert rewards["noop"] - rewards["penalty"] == 0.25


@pytest.mark.parametrize("action", [2, -1, 10**15])
def test_actions_outside_the_space_are_refused_and_change_nothing(action: int, client: clustergym.Client) -> None:
    env, other = (RemoteEnv("CartPole-v1", client=client) for _ in range(2))
    env.reset(seed=1)
    other.reset(seed=1)
    with pytest.raises(clustergym.BadAction):
        env.step(action)
    assert equal(env.step(1), other.step(1))
    env.close()
    other.close()


def test_actions_of_another_kind_are_refused_before_they_are_sent(client: clustergym.Client) -> None:
    env = RemoteEnv("CartPole-v1", client=client)
    env.reset(seed=1)
    for action in (1.0, "left", None, np.array([0.5])):
        with pytest.raises(TypeError):
            env.step(action)
    for action in (1, np.int64(1), np.array(1), np.array([1]), np.uint8(1)):
        env.step(action)
    env.close()
    box = RemoteEnv("Nav2D-v1", client=client)
    box.reset(seed=1)
    with pytest.raises(ValueError, match="shape"):
        box.step([0.0, 0.0, 0.0])
    with pytest.raises(clustergym.BadAction):
        box.step(np.array([np.nan, 0.0]))
    box.step([0.05, -0.05])
    box.close()


def test_a_step_without_an_episode_needs_a_reset(client: clustergym.Client) -> None:
    env = RemoteEnv("ProbeAction-v1", client=client)
    with pytest.raises(clustergym.NeedsReset):
        env.step(0)
    env.reset(seed=1)
    while True:
        _, _, terminated, truncated, _ = env.step(0)
        if terminated or truncated:
            break
    with pytest.raises(clustergym.NeedsReset):
        env.step(0)
    env.reset()
    env.step(0)
    env.close()


def test_snapshots_continue_where_they_were_taken(client: clustergym.Client) -> None:
    env, other = (RemoteEnv("JobSelect-v1", client=client, **SMALL) for _ in range(2))
    rng = np.random.default_rng(5)
    env.reset(seed=9)
    for _ in range(5):
        env.step(legal(env.action_masks(), rng))
    blob = env.snapshot()
    assert isinstance(blob, bytes)
    mask = env.action_masks()
    obs, _info = other.restore(blob)
    assert obs in other.observation_space
    assert (other.action_masks() == mask).all()
    for _ in range(60):
        action = legal(env.action_masks(), rng)
        a, b = env.step(action), other.step(action)
        assert equal(a, b)
        if a[2] or a[3]:
            assert equal(env.reset()[0], other.reset()[0]), "random streams are part of the state"
    broken = blob[:-1] + bytes((blob[-1] ^ 1,))
    for bad in (b"", b"x", broken, blob[: len(blob) // 2]):
        with pytest.raises(clustergym.RemoteError):
            other.restore(bad)
    with pytest.raises(clustergym.SnapshotMismatch):
        RemoteEnv("CartPole-v1", client=client).restore(blob)
    env.close()
    other.close()


@pytest.mark.parametrize("env_id", ["JobSelect-v1", "CartPole-v1"])
def test_environments_show_themselves_as_text(env_id: str, url: str) -> None:
    env = gym.make(f"clustergym/{env_id}", url=url, render_mode="ansi")
    env.reset(seed=1)
    text = env.render()
    assert isinstance(text, str)
    assert len(text.splitlines()) >= 1
    env.close()
    with pytest.raises(ValueError, match="render_mode"):
        RemoteEnv(env_id, url, render_mode="human")


def test_tasks_and_methods_are_reached_by_name(client: clustergym.Client) -> None:
    env = RemoteEnv("Nav2D-v1", client=client)
    tasks = env.remote_call("sample_tasks", {"n": 3, "seed": 1})
    assert len(tasks) == 3
    env.remote_call("set_task", {"task": tasks[0]})
    env.reset(seed=1)
    assert env.remote_call("get_task") == pytest.approx(tasks[0])
    env.close()
    jobs = RemoteEnv("JobSelect-v1", client=client, **SMALL)
    jobs.reset(seed=1)
    action = jobs.remote_call("heuristic", {"rule": "sjf"})
    assert jobs.action_masks()[action]
    assert "jct_s" in str(jobs.remote_call("metrics"))
    with pytest.raises(clustergym.RemoteError):
        jobs.remote_call("rm")
    jobs.close()


def test_reset_options_name_a_window_of_the_workload(client: clustergym.Client) -> None:
    env = RemoteEnv("JobSelect-v1", client=client, **SMALL)
    a = env.reset(seed=1, options={"split": "test", "window": 0})[0]
    b = env.reset(seed=1, options={"split": "test", "window": 1})[0]
    assert not equal(a, b)
    assert equal(a, env.reset(seed=1, options={"split": "test", "window": 0})[0])
    for options in ({"split": "tset"}, {"split": "test", "window": 10**6}, {"window": "x"}):
        with pytest.raises(clustergym.RemoteError):
            env.reset(seed=1, options=options)
    env.close()


# Mistakes.


def test_mistakes_are_named(client: clustergym.Client) -> None:
    with pytest.raises(clustergym.UnknownEnv, match="NoSuch"):
        RemoteEnv("NoSuch-v1", client=client)
    with pytest.raises(clustergym.BadKwargs, match="windwo"):
        RemoteEnv("JobSelect-v1", client=client, windwo=8)
    with pytest.raises(clustergym.BadKwargs, match="window"):
        RemoteEnv("JobSelect-v1", client=client, window=-8)
    with pytest.raises(clustergym.BadRequest, match="obs"):
        RemoteEnv("CartPole-v1", client=client, obs="cube")
    with pytest.raises(clustergym.BadRequest, match="invalid"):
        RemoteEnv("CartPole-v1", client=client, invalid="maybe")
    with pytest.raises(TypeError, match="window"):
        RemoteEnv("JobSelect-v1", client=client, kwargs={"window": 8}, window=8)
    env = RemoteEnv("CartPole-v1", client=client)
    with pytest.raises(gym.error.Error):
        env.reset(seed=-1)
    env.close()
    env.close()
    for call in (env.reset, env.action_masks, env.snapshot, lambda: env.step(0), lambda: env.restore(b"")):
        with pytest.raises(clustergym.ClusterGymError, match="closed"):
            call()


def test_closing_an_environment_frees_its_place(url: str) -> None:
    with clustergym.Client(url) as c:
        for _ in range(3 * c.limits["handles"]):
            RemoteEnv("ProbeAction-v1", client=c).close()


# Processes.


def _play(env: RemoteEnv) -> Any:
    run: list[Any] = [env.reset(seed=3)]
    run += [env.step(i % 2) for i in range(8)]
    return run


def test_a_pickled_environment_opens_its_own(url: str) -> None:
    env = RemoteEnv("CartPole-v1", url)
    other = pickle.loads(pickle.dumps(env))
    assert other.client is not env.client
    assert equal(_play(env), _play(other))
    other.close()
    env.close()


def _child(env: RemoteEnv, pipe: Any) -> None:
    try:
        try:
            env.step(0)
            pipe.send("stepped an episode of the parent's")
            return
        except clustergym.NeedsReset:
            pass
        pipe.send(_play(env))
    except BaseException as e:
        pipe.send(repr(e))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_dials_anew_and_leaves_the_parents_session_alone(url: str) -> None:
    env = RemoteEnv("CartPole-v1", url, timeout=20)
    want = _play(env)
    env.reset(seed=5)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_child, args=(env, there))
    child.start()
    there.close()
    assert here.poll(30)
    got = here.recv()
    child.join(20)
    assert not isinstance(got, str), got
    assert equal(got, want)
    assert child.exitcode == 0
    env.step(0)
    assert env.stats.resumes == 0
    env.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_gymnasiums_own_worker_processes_may_hold_remote_environments(url: str) -> None:
    envs = gym.make_vec("clustergym/CartPole-v1", 2, vectorization_mode="async", url=url)
    obs, _ = envs.reset(seed=1)
    assert obs in envs.observation_space
    envs.step(envs.action_space.sample())
    envs.close()
