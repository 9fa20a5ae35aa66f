"""An interrupt at any point of a call loses no reply, matches none to another request, and plays no step twice.

The points are counted, not drawn: a call is interrupted at the first place where Python looks for signals, then at the
second, and so on. Python looks at the start of a function, after a call and after a jump back.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import Client, RemoteEnv, RemoteVectorEnv
from test_envs import equal

PACKAGE = os.path.dirname(clustergym.__file__)

# A connection that is dialled while the interrupt comes is left to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Interrupt:
    """Raises KeyboardInterrupt at the k-th place in the package where this thread's Python looks for signals.

    Attributes:
        at: where that was, empty if there were fewer.
    """

    def __init__(self, k: int) -> None:
        self.left, self.at = k, ""
        self.before: dict[FrameType, str] = {}  # the instruction that a frame executed last

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if os.path.dirname(frame.f_code.co_filename) != PACKAGE:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = self.before.get(frame, "RESUME")
            self.before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith(("CALL", "RESUME", "JUMP_ABSOLUTE")) or "BACKWARD" in before:
                self.left -= 1
                if self.left == 0:
                    self.at = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} ({frame.f_code.co_name})"
                    sys.settrace(None)
                    raise KeyboardInterrupt
        return self._trace

    def __enter__(self) -> Interrupt:
        self._outer = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind: Any, *_: object) -> bool:
        sys.settrace(self._outer)
        return kind is KeyboardInterrupt and bool(self.at)


def every_point(call: Callable[[], Any]) -> Iterator[Interrupt]:
    """Interrupts call at its first instruction, at its second one, and so on, until it ends by itself."""
    k = 0
    while True:
        k += 1
        with Interrupt(k) as interrupt:
            call()
        if not interrupt.at:
            assert k > 100, "the call is not traced"
            return
        yield interrupt


def finished(env: RemoteEnv | RemoteVectorEnv, interrupt: Interrupt) -> bool:
    """Whether the interrupted call had given up its reply already: only its return was left."""
    return env.handle.kept is None


@pytest.mark.parametrize("env_id", ["InvalidAction-v1", "Nav2D-v1"])
def test_a_step_interrupted_anywhere_happens_once(url: str, env_id: str) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20) as disturbed:
        a, b = (RemoteEnv(env_id, client=c) for c in (straight, disturbed))
        if env_id == "InvalidAction-v1":
            first, second, third = 1, 2, 3
        else:
            rng = np.random.default_rng(7)
            first, second, third = (rng.uniform(-0.1, 0.1, a.action_space.shape).astype(np.float32) for _ in range(3))
        want = [a.reset(seed=5), a.step(first), a.step(second), a.step(third)]
        wrong = []
        b.reset(seed=5)
        b.step(first)
        for interrupt in every_point(lambda: b.step(second)):
            if not equal([b.step(second), b.step(third)], want[2:]):
                wrong.append(interrupt.at)
            b.reset(seed=5)
            b.step(first)
        assert wrong == []
