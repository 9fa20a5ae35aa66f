"""Copies of environments: independent ones that continue from the same state, or a refusal."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import clustergym
from clustergym import RemoteEnv, RemoteVectorEnv
from test_envs import SMALL, equal

JOBS = "clustergym/JobSelect-v1"
ENTRY = "vector_entry_point"

# What one can make of a remote environment, each with whether copy.copy refuses it.
MADE: dict[str, tuple[Callable[[str], Any], bool]] = {
    "RemoteEnv": (lambda url: RemoteEnv("JobSelect-v1", url, **SMALL), False),
    "RemoteVectorEnv": (lambda url: RemoteVectorEnv("JobSelect-v1", 2, url, **SMALL), False),
    "make_vec": (lambda url: gym.make_vec(JOBS, 2, url=url, vectorization_mode=ENTRY, **SMALL), False),
    "make": (lambda url: gym.make(JOBS, url=url, **SMALL), True),
    "a limit": (lambda url: gym.make(JOBS, url=url, max_episode_steps=50, **SMALL), True),
    "wrappers": (lambda url: gym.wrappers.FlattenObservation(gym.make(JOBS, url=url, obs="dict", **SMALL)), True),
    "SyncVectorEnv": (lambda url: gym.make_vec(JOBS, 2, url=url, vectorization_mode="sync", **SMALL), True),
    "vector wrappers": (
        lambda url: gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec(JOBS, 2, url=url, **SMALL)),
        True,
    ),
}


def oldest(info: dict[str, Any]) -> Any:
    """The first legal action of each environment."""
    mask = info["action_mask"]
    return int(mask.argmax()) if mask.ndim == 1 else mask.argmax(axis=1)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("made", MADE)
def test_a_copy_goes_on_from_the_same_state_alone_or_is_refused(made: str, how: Callable[[Any], Any], url: str) -> None:
    make, refused = MADE[made]
    env = make(url)
    _, info = env.reset(seed=5)
    for _ in range(3):
        *_, info = env.step(oldest(info))
    if how is copy.copy and refused:
        with pytest.raises(TypeError, match=r"snapshot\(\)"):
            how(env)
        env.step(oldest(info))
        env.close()
        return
    twin = how(env)
    for _ in range(2):
        action = oldest(info)
        ours, theirs = env.step(action), twin.step(action)
        assert all(equal(a, b) for a, b in zip(ours[:4], theirs[:4]))
        info = ours[4]
    twin.step(oldest(info))  # further than the original
    twin.close()
    *_, info = env.step(oldest(info))
    env.close()


def test_copies_of_what_has_no_episode_need_a_reset(url: str) -> None:
    env = RemoteEnv("CartPole-v1", url)
    twin = copy.deepcopy(env)
    with pytest.raises(clustergym.NeedsReset):
        twin.step(0)
    assert equal(twin.reset(seed=1)[0], env.reset(seed=1)[0])
    env.close()
    late = copy.deepcopy(env)
    late.reset(seed=1)
    late.close()
    twin.close()


def test_a_copy_at_an_episodes_end_begins_the_same_next_episode(url: str) -> None:
    env = RemoteEnv("ProbeConstant-v1", url)
    env.reset(seed=3)
    *_, over, _, _ = env.step(0)
    assert over
    twin = copy.deepcopy(env)
    assert equal(twin.reset()[0], env.reset()[0])
    env.close()
    twin.close()


def test_a_copy_in_a_shared_session_stays_in_it(client: clustergym.Client) -> None:
    env = RemoteEnv("CartPole-v1", client=client)
    env.reset(seed=1)
    twin = copy.copy(env)
    assert twin.client is client
    twin.close()
    env.step(0)
    env.close()


def test_what_a_twin_is_shared_by_is_kept_in_a_deep_copy(url: str) -> None:
    env = RemoteEnv("CartPole-v1", url)
    env.reset(seed=1)
    both = copy.deepcopy([env, env])
    assert both[0] is both[1]
    assert both[0] is not env
    both[0].close()
    env.close()


def test_other_environments_are_copied_as_ever() -> None:
    env = gym.make("CartPole-v1")
    env.reset(seed=1)
    twin = copy.copy(env)
    assert type(twin) is type(env)
    assert twin.unwrapped is env.unwrapped
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    assert copy.copy(envs).envs is envs.envs  # type: ignore[attr-defined]
    plain = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    assert np.shares_memory(copy.copy(plain).episode_start_times, plain.episode_start_times)
    env.close()
    envs.close()
