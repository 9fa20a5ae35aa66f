"""What all tests share: a server of their own, one printed seed for everything random, and time limits on everything."""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.utils import seeding

import clustergym

# A background job of a script ignores SIGINT; so would the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that hangs shows where, and ends the run.
TIME_LIMIT = 120.0


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    faulthandler.dump_traceback_later(TIME_LIMIT, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLUSTERGYM_URL", "CLUSTERGYM_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A server that runs as long as the tests."""
    with clustergym.LocalServer(timeout=60) as server:
        yield server.url


@pytest.fixture(autouse=True)
def rng(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> np.random.Generator:
    """The test's random stream. Whatever draws without a seed of its own (spaces, NumPy, Python) is seeded from it too."""
    seed = int(os.environ.get("CLUSTERGYM_TEST_SEED", "1"))
    print(f"seed {seed}: CLUSTERGYM_TEST_SEED={seed} repeats this run")  # pytest shows it if the test fails
    stream = np.random.default_rng([seed, zlib.crc32(request.node.name.encode())])
    make = seeding.np_random

    def seeded(given: int | None = None) -> Any:
        return make(int(stream.integers(1 << 32)) if given is None else given)

    monkeypatch.setattr(seeding, "np_random", seeded)
    random.seed(int(stream.integers(1 << 32)))
    np.random.seed(int(stream.integers(1 << 32)))
    return stream


@pytest.fixture
def client(url: str) -> Iterator[clustergym.Client]:
    with clustergym.Client(url, timeout=20) as c:
        yield c
