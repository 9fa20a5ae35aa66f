"""An interrupt at any point of a call loses no reply, matches none to another request, and plays no step twice.

The points are counted, not drawn: a call is interrupted at the first place where Python looks for signals, then at the
second, and so on. Python looks at the start of a function, after a call and after a jump back.
"""

from __future__ import annotations

import dis
import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import pytest

import clustergym
from clustergym import Client, RemoteEnv, RemoteVectorEnv
from test_envs import equal

PACKAGE = os.path.dirname(clustergym.__file__)
SESSION = ("_session.py", "handle.py", "transport.py", "_dial.py")  # where the state of a session is

# A connection that is dialled while the interrupt comes is left to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()


class Interrupt:
    """Raises KeyboardInterrupt at the k-th place in the package where this thread's Python looks for signals.

    Attributes:
        at: where that was, empty if there were fewer.
    """

    def __init__(self, k: int, files: tuple[str, ...] = ()) -> None:
        self.left, self.at, self.files = k, "", files
        self.thread = threading.get_ident()
        self.before: dict[FrameType, str] = {}  # the instruction that a frame executed last

    def wants(self, code: CodeType) -> bool:
        folder, file = os.path.split(code.co_filename)
        if file == "_dial.py" and code.co_name in ("recv", "_left", "gettimeout"):
            return False  # called for each byte of a header
        return folder == PACKAGE and (not self.files or file in self.files)

    def instruction(self, frame: FrameType, offset: int) -> None:
        """Called before each instruction."""
        code = frame.f_code
        before = self.before.get(frame, "RESUME")
        self.before[frame] = dis.opname[code.co_code[offset]]
        looked = before.startswith(("CALL", "RESUME", "JUMP_ABSOLUTE")) or "BACKWARD" in before
        if looked and "INTRINSIC" not in before:
            self.left -= 1
            if self.left == 0:
                self.at = f"{os.path.basename(code.co_filename)}:{frame.f_lineno} ({code.co_name})"
                self.stop()
                raise KeyboardInterrupt

    def __exit__(self, kind: Any, *_: object) -> bool:
        self.stop()
        self.before.clear()
        return kind is KeyboardInterrupt and bool(self.at)

    if sys.version_info >= (3, 12):
        TOOL = 4

        def __enter__(self) -> Interrupt:
            monitoring = sys.monitoring
            monitoring.use_tool_id(self.TOOL, "interrupts")
            monitoring.register_callback(self.TOOL, monitoring.events.INSTRUCTION, self._executes)
            self.watched = [code for code in codes() if self.wants(code)]
            for code in self.watched:
                monitoring.set_local_events(self.TOOL, code, monitoring.events.INSTRUCTION)
            return self

        def _executes(self, code: CodeType, offset: int) -> None:
            if threading.get_ident() == self.thread and not self.at:
                self.instruction(sys._getframe(1), offset)

        def stop(self) -> None:
            if sys.monitoring.get_tool(self.TOOL):
                for code in self.watched:
                    sys.monitoring.set_local_events(self.TOOL, code, 0)
                sys.monitoring.free_tool_id(self.TOOL)

    else:

        def __enter__(self) -> Interrupt:
            self.outer = sys.gettrace()
            sys.settrace(self._trace)
            return self

        def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
            if not self.wants(frame.f_code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            if event == "opcode":
                self.instruction(frame, frame.f_lasti)
            return self._trace

        def stop(self) -> None:
            sys.settrace(self.outer)


@functools.cache
def codes() -> list[CodeType]:
    """The code of all functions of the package."""
    found: dict[CodeType, None] = {}
    todo = [f.__code__ for f in gc.get_objects() if type(f) is FunctionType]
    while todo:
        code = todo.pop()
        if code not in found and os.path.dirname(code.co_filename) == PACKAGE:
            found[code] = None
            todo += [c for c in code.co_consts if type(c) is CodeType]
    return list(found)


def every_point(call: Callable[[], Any], files: tuple[str, ...] = ()) -> Iterator[Interrupt]:
    """Interrupts call at its first point (in these files, or in all), at its second, and so on, until it ends by itself."""
    k = 0
    while True:
        k += 1
        with Interrupt(k, files) as interrupt:
            call()
        if not interrupt.at:
            assert k > 25, "the call is not traced"
            return
        yield interrupt


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


def test_a_reset_interrupted_anywhere_skips_no_episode(url: str) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20) as disturbed:
        a, b = (RemoteEnv("InvalidAction-v1", client=c) for c in (straight, disturbed))
        want = [a.reset(seed=5), a.reset(), a.reset(), a.step(1)]
        wrong = []
        b.reset(seed=5)
        for interrupt in every_point(lambda: b.reset()):
            if not equal([b.reset(), b.reset(), b.step(1)], want[1:]):
                wrong.append(interrupt.at)
            b.reset(seed=5)
        assert wrong == []


def test_a_reset_after_an_interrupted_step_begins_anew(url: str) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20) as disturbed:
        a, b = (RemoteEnv("InvalidAction-v1", client=c) for c in (straight, disturbed))
        want = [a.reset(seed=5), a.step(1), a.step(2)]
        wrong = []
        b.reset(seed=9)
        for interrupt in every_point(lambda: b.step(2)):
            if not equal([b.reset(seed=5), b.step(1), b.step(2)], want):
                wrong.append(interrupt.at)
        assert wrong == []


def test_another_step_after_an_interrupted_one_is_refused_or_the_first(url: str) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20) as disturbed:
        a, b = (RemoteEnv("InvalidAction-v1", client=c) for c in (straight, disturbed))
        first = a.reset(seed=5)
        only = a.step(3)  # if the interrupted step was never sent
        a.reset(seed=5)
        done = a.step(2)
        wrong, kinds = [], set()
        assert equal(b.reset(seed=5), first)
        for interrupt in every_point(lambda: b.step(2)):
            try:
                if not equal(b.step(3), only):
                    wrong.append(interrupt.at)
                kinds.add("never sent")
            except clustergym.Unfinished:
                if not equal(b.step(2), done):
                    wrong.append(interrupt.at)
                kinds.add("sent")
            b.reset(seed=5)
        assert wrong == []
        assert kinds == {"sent", "never sent"}


def test_snapshots_are_restored_once(url: str) -> None:
    with Client(url, timeout=20) as c:
        env = RemoteEnv("InvalidAction-v1", client=c)
        env.reset(seed=5)
        blob, want = env.snapshot(), env.step(1)
        wrong = []
        for interrupt in every_point(lambda: env.restore(blob)):
            env.restore(blob)
            if not equal(env.step(1), want):
                wrong.append(interrupt.at)
        assert wrong == []


@pytest.mark.parametrize("n", [3, 400])  # in messages, and in shared memory where that exists
def test_steps_of_many_environments_happen_once(url: str, n: int) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20, shared_memory=n > 3) as disturbed:
        a, b = (RemoteVectorEnv("InvalidAction-v1", n, client=c) for c in (straight, disturbed))
        actions = np.random.default_rng(3).integers(0, 5, (3, n))
        want = [a.reset(seed=5), *(a.step(row) for row in actions)]
        wrong = []

        def again() -> None:
            b.reset(seed=5)
            b.step(actions[0])

        again()
        for interrupt in every_point(lambda: b.step(actions[1])):
            if not equal([b.step(row) for row in actions[1:]], want[2:]):
                wrong.append(interrupt.at)
            again()
        again()
        for interrupt in every_point(lambda: b.step_async(actions[1])):
            got = b.step(actions[1])  # the same request again
            if not equal([got, b.step(actions[2])], want[2:]):
                wrong.append(interrupt.at)
            again()
        for interrupt in every_point(lambda: b.step_wait()):
            if not equal([b.step_wait(), b.step(actions[2])], want[2:]):
                wrong.append(interrupt.at)
            again()
            b.step_async(actions[1])
        half = np.arange(n) % 2 == 0
        b.reset(seed=5)
        want = [a.reset(seed=5), a.reset(options={"reset_mask": half}), a.step(actions[0])]
        for interrupt in every_point(lambda: b.reset(options={"reset_mask": half})):
            if not equal([b.reset(options={"reset_mask": half}), b.step(actions[0])], want[1:]):
                wrong.append(interrupt.at)
            b.reset(seed=5)
        assert wrong == []


def test_environments_that_do_not_wait_for_each_other_lose_no_rows(url: str) -> None:
    def rows(result: Any) -> Any:
        """What a recv returned, in the order of the environments: which of them came together is a matter of time."""
        order = np.argsort(result[4]["env_id"])
        return [result[0][order], *(part[order] for part in result[1:4]), result[4]["env_id"][order]]

    with Client(url, timeout=20) as straight, Client(url, timeout=20) as disturbed:
        a, b = (RemoteVectorEnv("InvalidAction-v1", 4, client=c, recv="any", batch=4) for c in (straight, disturbed))
        actions = np.array([1, 2, 3, 4])
        a.reset(seed=5)
        want = []
        for _ in range(2):
            a.send(actions)
            want.append(rows(a.recv()))
        wrong = []

        def again() -> None:
            b.reset(seed=5)
            b.send(actions)

        b.reset(seed=5)
        for interrupt in every_point(lambda: b.send(actions)):
            if len(b._sent) == 0 or b.handle.kept is not None:
                b.send(actions)
            got = [rows(b.recv())]
            b.send(actions)
            if not equal([*got, rows(b.recv())], want):
                wrong.append(interrupt.at)
            b.reset(seed=5)
        b.recv()
        again()
        for interrupt in every_point(lambda: b.recv()):
            got = [rows(b.recv())]
            b.send(actions)
            if not equal([*got, rows(b.recv())], want):
                wrong.append(interrupt.at)
            again()
        assert wrong == []


def test_a_posted_request_can_be_waited_for_after_an_interrupt(url: str) -> None:
    with Client(url, timeout=20) as c:
        wrong, posted = [], [c.post("ping", {"t": 0})]
        for n, interrupt in enumerate(every_point(lambda: c.wait(posted[-1]))):
            if c.wait(posted[-1])["t"] != n:
                wrong.append(interrupt.at)
            posted.append(c.post("ping", {"t": n + 1}))
        assert wrong == []


def test_requests_after_an_interrupted_one_get_their_own_replies(url: str) -> None:
    with Client(url, timeout=20) as c:
        wrong = []
        for n, interrupt in enumerate(every_point(lambda: c.request("ping", {"t": -1}))):
            if c.request("ping", {"t": n})["t"] != n:
                wrong.append(interrupt.at)
        assert wrong == []
        assert len(c._pending) <= 1
        assert len(c._replies) <= 1


def test_a_session_interrupted_while_it_opens_is_opened_by_the_next_call(url: str) -> None:
    """Dialling, hello, and opening again what a lost session had."""
    with Client(url, timeout=20) as c:
        env = RemoteEnv("InvalidAction-v1", client=c)
        want = env.reset(seed=5)
        wrong = []

        def lose() -> None:
            if c._conn is not None:
                c._conn.say_goodbye()
            c._forget_session()

        lose()
        for interrupt in every_point(lambda: env.reset(seed=5), SESSION):
            if not equal(env.reset(seed=5), want):
                wrong.append(interrupt.at)
            lose()
        assert wrong == []


def test_a_resume_interrupted_anywhere_is_made_by_the_next_call(url: str) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20) as disturbed:
        a, b = (RemoteEnv("InvalidAction-v1", client=c) for c in (straight, disturbed))
        want = [a.reset(seed=5), a.step(1), a.step(2), a.step(3)]
        wrong = []

        def again() -> None:
            b.reset(seed=5)
            b.step(1)
            assert disturbed._conn is not None
            disturbed._conn.close()  # the server notices and keeps the session

        again()
        for interrupt in every_point(lambda: b.step(2), SESSION):
            if not equal([b.step(2), b.step(3)], want[2:]):
                wrong.append(interrupt.at)
            again()
        assert wrong == []


def test_environments_opened_for_nobody_are_closed(url: str) -> None:
    with Client(url, timeout=20) as c:
        count = 0
        for _ in every_point(lambda: RemoteEnv("InvalidAction-v1", client=c).close(), SESSION[:2]):
            count += 1
        assert count > 100
        c.request("ping")
        c.request("ping")  # the first one closed what was left
        handles = c.limits["handles"]
        kept = [RemoteEnv("InvalidAction-v1", client=c) for _ in range(handles // 2)]
        assert len(kept) == handles // 2


def test_without_resume_an_interrupt_leaves_the_right_reply_or_an_error(url: str) -> None:
    with Client(url, timeout=20) as straight, Client(url, timeout=20, resume=False) as disturbed:
        a, b = (RemoteEnv("InvalidAction-v1", client=c) for c in (straight, disturbed))
        want = [a.reset(seed=5), a.step(1), a.step(2)]
        wrong, lost = [], 0
        b.reset(seed=5)
        b.step(1)
        for interrupt in every_point(lambda: b.step(2)):
            try:
                if not equal(b.step(2), want[2]):
                    wrong.append(interrupt.at)
            except clustergym.ConnectionLost:
                lost += 1
            b.reset(seed=5)
            b.step(1)
        assert wrong == []
        assert lost < 60, "only an interrupt of reading or writing itself ends the session"
