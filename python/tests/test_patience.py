"""The client waits for replies by sleeping or polling, whichever is faster."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym import RemoteVectorEnv
from clustergym._patience import HOLD, SHORT, TRIAL, Patience


def waits(p: Patience, n: int, asleep: float, awake: float) -> None:
    for _ in range(n):
        p.note(awake if p.spin else asleep)


@pytest.mark.parametrize(
    ("asleep", "awake", "spins"),
    [(100e-6, 70e-6, True), (100e-6, 99e-6, False), (100e-6, 300e-6, False), (2 * SHORT, 10e-6, False)],
)
def test_what_is_faster_is_kept(asleep: float, awake: float, spins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    p = Patience()
    assert p.spin == 0
    waits(p, TRIAL, asleep, awake)
    assert (p.spin > 0) == (asleep < SHORT)  # tried where it can pay
    waits(p, TRIAL, asleep, awake)
    for _ in range(HOLD - TRIAL):
        assert (p.spin > 0) == spins
        waits(p, 1, asleep, awake)


def test_the_choice_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    p = Patience()
    waits(p, 2 * TRIAL, 100e-6, 50e-6)
    assert p.spin > 0
    waits(p, HOLD + 2 * TRIAL, 100e-6, 400e-6)  # others need the processor now
    assert p.spin == 0
    waits(p, HOLD + 2 * TRIAL, 100e-6, 50e-6)
    assert p.spin > 0


def test_one_processor_is_never_spent_on_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    p = Patience()
    waits(p, 3 * HOLD, 100e-6, 1e-6)
    assert p.spin == 0


@pytest.mark.parametrize("n", [1, 300])
def test_asking_gives_what_sleeping_gives(url: str, n: int) -> None:
    results = []
    for spin in (0.0, 0.01):
        envs = RemoteVectorEnv("InvalidAction-v1", n, url)
        assert envs.client._conn is not None
        patience = envs.client._conn.patience
        obs, info = envs.reset(seed=5)
        said = [obs.tobytes()]
        for _ in range(120):
            patience.spin = spin
            obs, r, *_, info = envs.step(info["action_mask"].argmax(axis=1))
            said.append(obs.tobytes() + r.tobytes())
        envs.close()
        results.append(said)
    assert results[0] == results[1]
    assert len(set(results[0])) > 50
    assert np.frombuffer(results[0][0], np.float32).size == 80 * n
