"""What all implementations in Python share: greedy episodes, validations, the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

# A batch of observations in, one action for each out. Batches of one kind always have the same number of rows.
Act = Callable[[Any], Any]

VALIDATION_SEED, TEST_SEED = 2_000_000, 3_000_000  # far from those of training


def episodes(act: Act, env: str, n: int, first_seed: int) -> list[float]:
    """The returns of n episodes of Gymnasium's env, on seeds from first_seed on, played side by side."""
    envs = [gym.make(env) for _ in range(n)]
    obs = np.stack([e.reset(seed=first_seed + i)[0] for i, e in enumerate(envs)])
    returns, running = [0.0] * n, set(range(n))
    while running:
        actions = np.asarray(act(obs))
        for i in sorted(running):
            obs[i], reward, terminated, truncated, _ = envs[i].step(actions[i])
            returns[i] += float(reward)
            if terminated or truncated:
                running.discard(i)
    for e in envs:
        e.close()
    return returns


Times = tuple[float, float]  # seconds, and seconds of processor time


def now() -> Times:
    return time.perf_counter(), time.process_time()


def minus(a: Times, b: Times) -> Times:
    return a[0] - b[0], a[1] - b[1]


def plus(a: Times, b: Times) -> Times:
    return a[0] + b[0], a[1] + b[1]


class Run:
    """The clock of one training, its validations and its best checkpoint.

    The clock runs from job's step ``clock_from`` on, so that imports, compilation and first calls are start-up, and stands
    still during validations. It counts seconds, and seconds of this process's processor time: what others on the machine
    take is in the first alone. ``play(n, first_seed)`` plays the agent as it is; ``keep()`` copies what makes it up
    and ``restore(copy)`` puts that back.
    """

    def __init__(
        self,
        job: dict[str, Any],
        play: Callable[[int, int], list[float]],
        keep: Callable[[], Any],
        restore: Callable[[Any], None],
    ) -> None:
        self.job, self.play, self.keep, self.restore = job, play, keep, restore
        self.began = time.perf_counter()
        self.validations: list[tuple[int, float]] = []
        self.best: tuple[int, Any] = (0, None)
        self.validated = 0
        self._from: tuple[Times, int] | None = None
        self._apart = 0.0, 0.0  # what validations took while the clock was on
        self.startup = 0.0

    def update_begins(self, step: int) -> None:
        """Called between two updates, before the steps of the next one are taken."""
        if self._from is None and step >= self.job["clock_from"]:
            self._from = now(), step
            self.startup = time.perf_counter() - self.began

    def stepped(self, step: int) -> None:
        """Called after any step; validates where a multiple of the cadence was reached or passed."""
        every = self.job["eval_every"]
        if step // every != self.validated // every:
            self._validate(step)

    def _validate(self, step: int) -> None:
        at = now()
        self.validated = step
        mean = float(np.mean(self.play(self.job["validation"], VALIDATION_SEED)))
        if not self.validations or mean >= max(m for _, m in self.validations):  # of equal ones the latest
            self.best = step, self.keep()
        self.validations.append((step, mean))
        if self._from is not None:
            self._apart = plus(self._apart, minus(now(), at))

    def finish(self, step: int) -> dict[str, Any]:
        """Ends the clock, plays the test episodes with the last and the best checkpoint, and says all that was seen."""
        if self._from is None:
            raise RuntimeError(f"the clock was never started within {step} steps")
        seconds, processor = minus(minus(now(), self._from[0]), self._apart)
        timed = step - self._from[1]
        if self.validated != step:
            self._validate(step)
        last = self.play(self.job["episodes"], TEST_SEED)
        best = last
        if self.best[0] != step:
            self.restore(self.best[1])
            best = self.play(self.job["episodes"], TEST_SEED)
        return {
            "steps": step,
            "timed_steps": timed,
            "seconds": seconds,
            "processor_s": processor,
            "startup_s": self.startup,
            "validations": self.validations,
            "best_step": self.best[0],
            "best": best,
            "last": last,
        }
