"""The rules of eval.greedy in Python are those of gymctl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clustergym

RULES = ["share", "argmax", "sample"]


class Fixed:
    """A generator that draws what it is told to."""

    def __init__(self, *draws: float) -> None:
        self.draws = draws

    def random(self, n: int) -> Any:
        assert n == len(self.draws)
        return np.array(self.draws)


def test_it_chooses_as_gymctl_does() -> None:
    """go test ./agents -run TestTheChoicesThatPythonRepeats writes the file."""
    kept = json.loads((Path(__file__).parent / "choices.json").read_text())
    print(f"seed {kept['seed']}")
    assert len(kept["cases"]) == 200
    for case in kept["cases"]:
        logits, legal = np.array(case["logits"], np.float32), np.array(case["legal"])
        for rule in RULES:
            got = clustergym.decide(logits, legal, rule, noop=case["noop"], rng=Fixed(case["draw"]))
            assert got == case["want"][rule], (rule, case)


def test_by_hand() -> None:
    logits = np.log([0.45, 0.3, 0.25]) + 7
    assert clustergym.decide(logits, noop=0) == 1
    assert clustergym.decide(logits) == 0
    assert clustergym.decide(logits, noop=-1) == 0
    assert clustergym.decide(logits, rule="argmax", noop=0) == 0
    assert clustergym.decide(logits, [True, True, False], noop=0) == 0
    assert clustergym.decide(logits, [False, False, True], noop=0) == 2
    assert clustergym.decide(logits, [True, False, False], noop=0) == 0
    assert clustergym.decide([-np.inf, 3, 2.5], noop=2) == 1
    assert clustergym.decide([-np.inf, -np.inf, 2.5], noop=2) == 2
    assert clustergym.decide([1, 3, -np.inf], noop=2) == 1
    assert clustergym.decide([-np.inf, -np.inf], [False, True], "argmax") == 1
    assert [clustergym.decide(logits, rule="sample", rng=Fixed(u)) for u in (0.44, 0.46, 0.74, 0.76)] == [0, 1, 1, 2]


@pytest.mark.parametrize("rule", RULES)
def test_a_batch_is_its_rows(rule: str) -> None:
    rng = np.random.default_rng(7)
    logits, draws = rng.normal(size=(50, 6)), rng.random(50)
    masks = rng.random((50, 6)) < 0.7
    masks[:, 3] = True
    got = clustergym.decide(logits, masks, rule, noop=2, rng=Fixed(*draws))
    assert got.dtype == np.int64
    rows = zip(logits, masks, draws)
    assert got.tolist() == [clustergym.decide(x, m, rule, noop=2, rng=Fixed(u)) for x, m, u in rows]
    assert masks[np.arange(50), got].all()


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("rule is 'best', want one of share, argmax, sample", {"logits": [1, 2], "rule": "best"}),
        ("logits have shape", {"logits": 1.0}),
        ("mask has shape", {"logits": [1, 2], "mask": [True]}),
        ("noop is 2, want one of 2 actions", {"logits": [1, 2], "noop": 2}),
        ("no legal action", {"logits": [[1, 2], [1, 2]], "mask": [[1, 0], [0, 0]]}),
        ("a logit is NaN", {"logits": [1, np.nan]}),
        ("a logit is infinite", {"logits": [1, np.inf], "rule": "sample"}),
    ],
)
def test_what_cannot_be_decided_is_refused(message: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        clustergym.decide(**arguments)


def test_the_action_that_does_nothing_is_known(url: str) -> None:
    env = clustergym.RemoteEnv("JobSelect-v1", url, kwargs={"window": 16, "warm": 0})
    assert env.handle.meta["noop"] == env.action_space.n - 1  # type: ignore[attr-defined]
    env.close()
