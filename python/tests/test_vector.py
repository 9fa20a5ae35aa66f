"""The vector environment against Gymnasium's own, made of as many single remote environments."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import clustergym
from clustergym import RemoteEnv, RemoteVectorEnv
from test_envs import SMALL, equal

N = 5
MODES = list(AutoresetMode)
# Episodes that end at different times, by termination and by truncation; actions of both kinds; every source of infos.
CASES = {
    "CartPole-v1": {},
    "ProbeTruncation-v1": {},
    "ProbeMaskedAction-v1": {},
    "Bandit-v1": {},
    "Nav2D-v1": {},
    "JobSelect-v1": SMALL,
}


@pytest.fixture
def many(url: str) -> Iterator[list[clustergym.Client]]:
    clients = [clustergym.Client(url, timeout=20) for _ in range(2)]
    yield clients
    for c in clients:
        c.close()


def pair(env_id: str, mode: AutoresetMode, clients: list[clustergym.Client], **options: Any) -> tuple[Any, Any]:
    kwargs = CASES.get(env_id, {})
    ours = RemoteVectorEnv(env_id, N, client=clients[0], autoreset_mode=mode, kwargs=kwargs, **options)
    one = clients[1]
    theirs = SyncVectorEnv(
        [lambda: RemoteEnv(env_id, client=one, kwargs=kwargs, **options) for _ in range(N)], autoreset_mode=mode
    )
    return ours, theirs


def describe(a: Any, b: Any, path: str = "") -> str:
    """Where two results differ."""
    if equal(a, b):
        return ""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{path}: keys {sorted(a)} and {sorted(b)}"
        return "; ".join(filter(None, (describe(a[k], b[k], f"{path}[{k!r}]") for k in a)))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return "; ".join(filter(None, (describe(x, y, f"{path}.{i}") for i, (x, y) in enumerate(zip(a, b)))))
    return f"{path}: {a!r} and {b!r} ({getattr(a, 'dtype', type(a))}, {getattr(b, 'dtype', type(b))})"


def absent_alike(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> tuple[Any, ...]:
    """theirs, whose single infos have every key, with the masks of ours where both have a blank in its place."""
    infos = dict(theirs[-1])
    if "final_info" in infos:
        infos["final_info"] = absent_alike((ours[-1]["final_info"],), (infos["final_info"],))[0]
    for key in OPTIONAL & infos.keys():
        shown, has = ours[-1].get("_" + key), infos["_" + key]
        if shown is None:
            assert key == "episode", "of a batch only the ends have it"
            assert not infos[key]["r"].any()
            del infos[key], infos["_" + key]
            continue
        assert (shown <= has).all()
        missing = has & ~shown
        if isinstance(infos[key], dict):
            inner = dict(infos[key])
            for part in ("r", "l"):
                assert not inner[part][missing].any()
                inner["_" + part] = inner["_" + part] & shown
            infos[key] = inner
        else:
            assert (infos[key][missing] == BLANK.get(key, 0)).all()
        infos["_" + key] = shown
    return (*theirs[:-1], infos)


# What only some infos have a value of, and what it is replaced by elsewhere.
OPTIONAL = {"seed", "invalid", "episode", "jct_s", "wait_s", "slowdown", "makespan_s", "unfinished"}
BLANK = {"seed": -1}

# One vector with metrics at the ends of episodes, which is the default; a dict of fields with returns and lengths too.
VIEWS: dict[str, dict[str, Any]] = {"flat": {}, "dict": {"obs": "dict", "info": ["episode", "metrics"]}}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", CASES)
def test_it_is_gymnasiums_sync_vector_env_to_the_byte(
    env_id: str, mode: AutoresetMode, view: str, many: list[clustergym.Client]
) -> None:
    ours, theirs = pair(env_id, mode, many, **VIEWS[view])
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is mode
    first = ours.reset(seed=7)
    assert describe(first, absent_alike(first, theirs.reset(seed=7))) == ""
    ours.action_space.seed(3)
    ended = 0
    for step in range(120):
        actions = ours.action_space.sample()
        a = ours.step(actions)
        b = absent_alike(a, theirs.step(actions))
        assert describe(a, b) == "", f"step {step}"
        over = a[2] | a[3]
        ended += int(over.sum())
        if over.any() and mode is AutoresetMode.DISABLED:
            options = {"reset_mask": over}
            a = ours.reset(options=dict(options))
            assert describe(a, absent_alike(a, theirs.reset(options=dict(options)))) == "", f"step {step}"
    assert ended > 0, "the test has seen no episode end"
    ours.close()
    theirs.close()


def test_seeds_may_be_given_one_by_one(many: list[clustergym.Client]) -> None:
    ours, theirs = pair("CartPole-v1", AutoresetMode.NEXT_STEP, many)
    seeds = [5, 3, 5, 1, 8]
    for given in (seeds, None):
        a = ours.reset(seed=given)
        assert describe(a, absent_alike(a, theirs.reset(seed=given))) == ""
    with pytest.raises(ValueError, match="seeds"):
        ours.reset(seed=[1, 2])
    mask = np.array([True, False, False, True, False])
    options = {"reset_mask": mask}
    a = ours.reset(seed=[9, None, None, 8, None], options=options)
    b = theirs.reset(seed=[9, None, None, 8, None], options=dict(options))
    assert describe(a, absent_alike(a, b)) == ""
    assert "reset_mask" in options, "the caller's options are left alone"
    ours.close()
    theirs.close()


def test_a_partial_reset_returns_the_other_observations_as_they_were(many: list[clustergym.Client]) -> None:
    ours, theirs = pair("CartPole-v1", AutoresetMode.NEXT_STEP, many, obs="dict")
    ours.reset(seed=1)
    theirs.reset(seed=1)
    for _ in range(3):
        a = np.ones(N, np.int64)
        obs = ours.step(a)[0]
        theirs.step(a)
    for part in obs.values():
        part[:] = 77.0  # the caller may overwrite its arrays
    mask = np.arange(N) == 2
    first = ours.reset(options={"reset_mask": mask})
    assert describe(first, absent_alike(first, theirs.reset(options={"reset_mask": mask.copy()}))) == ""
    assert ours.action_masks().shape == (N, 2)
    ours.close()
    theirs.close()


def test_wrong_reset_masks_are_refused(client: clustergym.Client) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 3, client=client)
    envs.reset(seed=1)
    for mask in ([True, False, False], np.array([1, 0, 0]), np.array([True]), np.zeros(3, bool)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    envs.close()


def test_n_environments_are_the_first_n_of_more(many: list[clustergym.Client]) -> None:
    few = RemoteVectorEnv("CartPole-v1", 2, client=many[0])
    more = RemoteVectorEnv("CartPole-v1", 64, client=many[1])
    few.reset(seed=4)
    more.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(0, 2, 64)
        a, b = few.step(actions[:2]), more.step(actions)
        assert (a[0] == b[0][:2]).all()
        for x, y in zip(a[1:4], b[1:4]):
            assert (x == y[:2]).all()
    few.close()
    more.close()


def test_everything_returned_is_writable_and_ones_own(client: clustergym.Client) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 3, client=client, obs="dict")
    first = envs.reset(seed=1)
    second = envs.step(np.zeros(3, np.int64))
    arrays = [*first[0].values(), *second[0].values(), *second[1:4], first[1]["action_mask"], second[4]["action_mask"]]
    for i, a in enumerate(arrays):
        assert a.flags.writeable
        assert not any(np.shares_memory(a, b) for b in arrays[:i])
    lean = RemoteVectorEnv("CartPole-v1", 3, client=client, copy=False)
    obs, _ = lean.reset(seed=1)
    assert not obs.flags.writeable
    envs.close()
    lean.close()


def test_steps_may_be_begun_and_awaited_apart(client: clustergym.Client) -> None:
    envs = [RemoteVectorEnv("CartPole-v1", 3, client=client) for _ in range(3)]
    for i, e in enumerate(envs):
        e.reset(seed=i)
    for e in envs:
        e.step_async(np.ones(3, np.int64))
    with pytest.raises(clustergym.ClusterGymError, match="not waited for"):
        envs[0].step_async(np.ones(3, np.int64))
    results = [e.step_wait() for e in reversed(envs)][::-1]
    with pytest.raises(clustergym.ClusterGymError, match="no step"):
        envs[0].step_wait()
    check = RemoteVectorEnv("CartPole-v1", 3, client=client)
    for i, r in enumerate(results):
        check.reset(seed=i)
        assert describe(check.step(np.ones(3, np.int64)), r) == ""
        envs[i].close()
    check.close()


def test_sent_and_received_trajectories_are_those_of_steps(client: clustergym.Client) -> None:
    n, batch = 6, 2
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (40, n))
    ours = RemoteVectorEnv("CartPole-v1", n, client=client, recv="any", batch=batch)
    steps = RemoteVectorEnv("CartPole-v1", n, client=client)
    first, _ = ours.reset(seed=2)
    assert describe(first, steps.reset(seed=2)[0]) == ""
    with pytest.raises(clustergym.NotPending):
        ours.recv()
    want = [steps.step(a) for a in actions]
    done = np.zeros(n, np.int64)
    ours.send(actions[0])
    while done.min() < len(actions) - 1:
        obs, r, te, tr, infos = ours.recv()
        ids = infos["env_id"]
        assert ids.shape == r.shape == (batch,)
        for row, i in enumerate(ids):
            w = want[done[i]]
            assert (r[row], te[row], tr[row]) == (w[1][i], w[2][i], w[3][i])
            assert (obs[row] == w[0][i]).all()
            done[i] += 1
        again = ids[done[ids] < len(actions)]
        if len(again):
            ours.send(actions[done[again], again], again)
        elif done.sum() == n * len(actions):
            break
    ours.close()
    steps.close()


def test_masks_of_all_environments_are_at_hand(client: clustergym.Client) -> None:
    for place in (("info",), ("obs",), ()):
        envs = RemoteVectorEnv("InvalidAction-v1", 4, client=client, mask=place)
        envs.reset(seed=1)
        _, _, _, _, infos = envs.step(envs.action_space.sample())
        masks = envs.action_masks()
        assert masks.dtype == bool
        assert masks.shape == (4, 80)
        assert (masks.sum(axis=1) == 20).all()
        assert ("action_mask" in infos) == ("info" in place)
        if "info" in place:
            assert (infos["action_mask"] == masks).all()
        envs.close()


def test_snapshots_cover_all_or_some(client: clustergym.Client) -> None:
    envs, others = (RemoteVectorEnv("CartPole-v1", 4, client=client) for _ in range(2))
    envs.reset(seed=1)
    others.reset(seed=50)
    a = np.array([0, 1, 1, 0])
    envs.step(a)
    blob, part = envs.snapshot(), envs.snapshot([1, 2])
    want = [envs.step(a) for _ in range(30)]
    others.restore(blob)
    for w in want:
        assert describe(others.step(a), w) == ""
    before, _ = others.reset(seed=50)
    mixed, _ = others.restore(part, [1, 2])
    assert (mixed[[0, 3]] == before[[0, 3]]).all()
    got = others.step(a)
    assert (got[0][1:3] == want[0][0][1:3]).all()
    envs.close()
    others.close()


def test_actions_of_another_shape_or_kind_are_refused(client: clustergym.Client) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 3, client=client)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="shape"):
        envs.step(np.zeros(4, np.int64))
    with pytest.raises(TypeError, match="integers"):
        envs.step(np.zeros(3))
    with pytest.raises(clustergym.BadAction) as e:
        envs.step(np.array([0, 7, -1]))
    assert e.value.env == (1, 2)
    for good in ([0, 1, 0], (0, 1, 0), np.array([0, 1, 0], np.uint8), np.array([0, 1, 0], np.int32)):
        envs.step(good)
    envs.close()


def test_disabled_autoreset_names_who_needs_a_reset(client: clustergym.Client) -> None:
    envs = RemoteVectorEnv("ProbeTruncation-v1", 2, client=client, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=1)
    over = np.zeros(2, bool)
    while not over.any():
        _, _, te, tr, _ = envs.step(np.zeros(2, np.int64))
        over = te | tr
    with pytest.raises(clustergym.NeedsReset) as e:
        envs.step(np.zeros(2, np.int64))
    assert e.value.env == tuple(np.flatnonzero(over))
    envs.close()


def test_make_vec_takes_the_vector_environment(url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is out of date")  # version 2 is there
        envs = gym.make_vec("clustergym/JobSelect-v1", 3, url=url, **SMALL)
        assert isinstance(envs, RemoteVectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        obs, _ = envs.reset(seed=1)
        assert obs in envs.observation_space
        for _ in range(20):
            obs, r, te, tr, _ = envs.step(envs.action_space.sample())
            assert obs in envs.observation_space
            assert r.dtype == np.float64
            assert te.dtype == tr.dtype == np.bool_
        envs.close()
        envs.close()
        sync = gym.make_vec("clustergym/CartPole-v1", 2, vectorization_mode="sync", url=url)
        sync.reset(seed=1)
        sync.close()
        same = gym.make_vec("clustergym/CartPole-v1", 2, url=url, autoreset_mode=AutoresetMode.SAME_STEP)
        assert same.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        again = gym.make_vec(same.spec)  # type: ignore[arg-type]
        again.close()
        same.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_gymnasiums_recorder_of_episodes_has_its_key_to_itself(mode: AutoresetMode, url: str) -> None:
    envs = gym.make_vec("clustergym/JobSelect-v1", 3, url=url, autoreset_mode=mode, **SMALL)
    recorder = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    _, infos = recorder.reset(seed=1)
    ended = 0
    while ended < 3:
        _, _, terminated, truncated, infos = recorder.step(infos["action_mask"].argmax(axis=1))
        over = terminated | truncated
        ended += int(over.sum())
        if over.any():
            assert (infos["_episode"] == over).all()
            assert (infos["episode"]["l"][over] > 1).all()
            last = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
            assert (last["_jct_s"] == over).all()
            assert (last["jct_s"][over] > 0).all()
        else:
            assert "episode" not in infos
            assert not infos["_jct_s"].any()
            assert not infos["jct_s"].any()
    recorder.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("info", ["metrics", "all", "none", ["metrics"]])
def test_all_infos_of_a_batch_have_the_same_keys(mode: AutoresetMode, info: Any, client: clustergym.Client) -> None:
    envs = RemoteVectorEnv("JobSelect-v1", 3, client=client, autoreset_mode=mode, info=info, **SMALL)
    final = {"final_obs", "_final_obs", "final_info", "_final_info"}
    only = final | ({"episode", "_episode"} if info == "all" else set())  # the ends alone have them, as in Gymnasium
    _, infos = envs.reset()
    keys, types = set(infos) - only, {key: value.dtype for key, value in infos.items() if key not in only}
    assert ("seed" in keys) == (info != "none")
    ended = 0
    for _ in range(60):
        _, _, terminated, truncated, infos = envs.step(np.zeros(3, np.int64))
        over = terminated | truncated
        ended += int(over.sum())
        for shown in (infos, infos.get("final_info", infos)):
            assert set(shown) - only == keys
            assert {key: value.dtype for key, value in shown.items() if key not in only} == types
        if mode is AutoresetMode.DISABLED and over.any():
            _, infos = envs.reset(options={"reset_mask": over})
            assert set(infos) - only == keys
    assert ended > 0
    envs.close()


def test_texts_come_one_by_environment(url: str) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 2, url, render_mode="ansi")
    envs.reset(seed=1)
    texts = envs.render()
    assert texts is not None
    assert [type(t) for t in texts] == [str, str]
    envs.close()


def test_a_pickled_vector_environment_opens_its_own(url: str) -> None:
    envs = RemoteVectorEnv("CartPole-v1", 2, url, autoreset_mode="SameStep")
    other = pickle.loads(pickle.dumps(envs))
    assert other.metadata == envs.metadata
    assert describe(envs.reset(seed=1), other.reset(seed=1)) == ""
    envs.close()
    other.close()
    for call in (envs.reset, envs.action_masks, lambda: envs.step([0, 0])):
        with pytest.raises(clustergym.ClusterGymError, match="closed"):
            call()
