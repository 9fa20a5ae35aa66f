"""The tests themselves draw nothing that cannot be drawn again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

DRAWS = """
import random
import numpy as np
from gymnasium import spaces

def test_draws(rng):
    some = [spaces.Discrete(1 << 40), spaces.Box(0, 1, (3,)), spaces.MultiDiscrete([99] * 9)]
    print("drawn", [s.sample() for s in some], random.random(), np.random.rand(), rng.random())
    assert False
"""


def drawn(folder: Path, seed: str) -> tuple[str, str]:
    """What a test draws, and what it says about its seed."""
    env = {**os.environ, "CLUSTERGYM_TEST_SEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
    ]
    out = subprocess.run([*command, str(folder)], env=env, capture_output=True, text=True, timeout=100).stdout
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith(("seed ", "drawn "))}
    return lines["drawn"], lines["seed"]


def test_everything_that_tests_draw_comes_from_the_seed_that_a_failure_prints(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_draws.py").write_text(DRAWS)
    first, said = drawn(tmp_path, "5")
    assert "CLUSTERGYM_TEST_SEED=5" in said
    assert drawn(tmp_path, "5")[0] == first
    assert drawn(tmp_path, "6")[0] != first
