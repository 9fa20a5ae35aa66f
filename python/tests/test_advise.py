"""What policies would do in the present state."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import clustergym
from clustergym import RemoteEnv

SMALL = {
    "cluster": "2x4",
    "max_gpus": 4,
    "visible": 4,
    "window": 12,
    "warm": 4,
    "load": 3.0,
    "trace": {"synth": {"jobs": 500}},
}
LOOK = "rollout:sjf@slots"


def played(env: RemoteEnv, asks: bool) -> list[bytes]:
    """An episode of the first legal actions: the bytes of all observations and rewards."""
    obs, _ = env.reset(seed=3)
    out, ended = [obs.tobytes()], False
    while not ended:
        if asks:
            for policy in ("sjf@slots", LOOK):
                action = env.advise(policy, budget=16 if policy == LOOK else None)
                assert isinstance(action, int)
                assert env.action_masks()[action]
                assert action == env.advise(policy, budget=16 if policy == LOOK else None)
        obs, reward, terminated, truncated, _ = env.step(int(env.action_masks().argmax()))
        out.append(obs.tobytes() + np.float64(reward).tobytes())
        ended = terminated or truncated
    return out


def test_asking_changes_no_byte(client: clustergym.Client) -> None:
    env = RemoteEnv("JobSelect-v1", client=client, **SMALL)
    assert LOOK in env.handle.meta["advise"]
    assert played(env, False) == played(env, True)
    with pytest.raises(clustergym.NeedsReset, match="episode"):
        env.advise("sjf@slots")
    env.reset(seed=1)
    with pytest.raises(clustergym.RemoteError, match="policy"):
        env.advise("sjff@slots")
    for budget in (0, 10**6, "1h"):
        with pytest.raises(clustergym.RemoteError, match="budget"):
            env.advise(LOOK, budget=budget)
    env.close()
    rank = RemoteEnv("QueueRank-v1", client=client)
    rank.reset(seed=1)
    with pytest.raises(clustergym.RemoteError, match="does not act"):
        rank.advise(LOOK)
    rank.close()


def test_vectors_are_advised_in_one_request(client: clustergym.Client) -> None:
    venv = clustergym.RemoteVectorEnv("JobSelect-v1", 3, client=client, kwargs=SMALL)
    venv.reset(seed=5)
    for _ in range(60):
        actions = venv.advise("sjf@slots")
        assert actions.dtype == np.int64
        assert actions.shape == (3,)
        assert (venv.advise("sjf@slots", ids=[2, 0]) == actions[[2, 0]]).all()
        venv.step(actions)
    venv.close()


def test_the_example_of_dagger_runs(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGYM_URL", url)
    monkeypatch.setattr(sys, "argv", ["dagger.py", "--rounds", "2", "--steps", "20", "--envs", "2", "--budget", "16"])
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "dagger.py"), run_name="__main__")
    assert "round 1: agrees with rollout:sjf@slots" in capsys.readouterr().out
