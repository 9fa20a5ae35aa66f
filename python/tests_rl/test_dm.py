"""dm_env: its own tests of environments, and discounts."""

from __future__ import annotations

import dm_env
import numpy as np
import pytest
from absl.testing import absltest
from conftest import IDS, SMALL, kwargs_of
from dm_env import test_utils

from clustergym import RemoteEnv
from clustergym.dm import RemoteDmEnv


@pytest.mark.parametrize("env_id", IDS)
def test_the_tests_of_dm_env_pass_for_every_environment(url: str, env_id: str) -> None:
    class Case(test_utils.EnvironmentTestMixin, absltest.TestCase):
        def make_object_under_test(self) -> dm_env.Environment:
            return RemoteDmEnv(env_id, seed=1, url=url, kwargs=kwargs_of(env_id))

        def make_action_sequence(self):  # noqa: ANN201
            for _ in range(250):
                yield self.make_action()

    suite = absltest.TestLoader().loadTestsFromTestCase(Case)
    result = suite.run(absltest.unittest.TestResult())
    assert result.testsRun >= 4
    assert not result.errors + result.failures, result.errors + result.failures


def play(env: RemoteDmEnv) -> list[dm_env.TimeStep]:
    steps = [env.reset()]
    while not steps[-1].last():
        mask = steps[-1].observation["action_mask"]
        assert np.array_equal(mask.astype(bool), env.action_masks())
        steps.append(env.step(int(mask.argmax())))
    return steps


def test_an_end_is_worth_nothing_and_a_cut_is_not_an_end(url: str) -> None:
    ends = RemoteDmEnv("JobSelect-v1", seed=1, url=url, kwargs=SMALL)
    cut = RemoteDmEnv("InvalidAction-v1", seed=1, url=url)
    try:
        for env, last in ((ends, 0.0), (cut, 1.0)):
            steps = play(env)
            assert steps[0].first() and steps[0].reward is None and steps[0].discount is None
            assert {s.discount for s in steps[1:-1]} == {1.0}
            assert steps[-1].discount == last
            assert env.step(0).first(), "the step after the last begins an episode"
    finally:
        ends.close()
        cut.close()


def test_what_dm_env_plays_is_what_gymnasium_plays(url: str) -> None:
    env, same = RemoteDmEnv("JobSelect-v1", seed=7, url=url, kwargs=SMALL), RemoteEnv("JobSelect-v1", url, kwargs=SMALL)
    try:
        steps = play(env)
        _, info = same.reset(seed=7)
        rewards, over = [], False
        while not over:
            _, reward, terminated, truncated, info = same.step(int(info["action_mask"].argmax()))
            rewards.append(reward)
            over = terminated or truncated
        assert [s.reward for s in steps[1:]] == rewards
    finally:
        env.close()
        same.close()


def test_options_are_for_ids() -> None:
    with pytest.raises(ValueError, match="options belong"):
        RemoteDmEnv(object(), obs="flat")  # type: ignore[arg-type]
