"""Workers of ``gymctl`` on a Ray cluster: they do the cells, trials, seeds and windows of a command that listens.

::

    gymctl experiment run topdrl --listen :7777 --token-file token      # on a machine that the nodes reach

    import ray
    from clustergym.ray import workers

    ray.init(address="auto")
    with workers(16, "nats://head:7777", token_file="token") as crew:
        crew.wait()

or, without a line of Python, ``python -m clustergym.ray nats://head:7777 --workers 16 --token-file token``.

The nodes need Ray and nothing else: this process's ``gymctl`` is sent to them, which also makes all workers the build that
the coordinator asks for.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    import ray
    from ray import cloudpickle
    from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError
except ImportError as e:
    raise ImportError("clustergym.ray needs Ray: pip install ray") from e

__all__ = ["Workers", "workers"]

_RESTARTS = 5  # of one worker on one node, after crashes
_KEPT = 40  # lines of what a worker says
_ENDED = ("done", "failed")


def workers(
    n: int,
    url: str,
    *,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
    slots: int = 1,
    cpus: float | None = None,
    resources: Mapping[str, float] | None = None,
    job: str | None = None,
    data: str | None = None,
    args: Sequence[str] = (),
    gymctl: str | None = None,
) -> Workers:
    """Starts ``gymctl worker URL`` n times as actors of the Ray cluster that this process is connected to.

    Ray spreads them over its nodes. If a node dies, its workers start again on other nodes as soon as there is room; what
    they were doing, the coordinator gives to somebody else. A worker whose program crashes is started again on its node.

    Args:
        n: how many.
        url: what the coordinator printed, as ``"nats://head:7777"`` or ``"tls://head:7777"``. Nodes must reach it.
        token: the token of the coordinator. It travels in Ray's own messages, which are in clear text unless Ray has TLS.
        token_file: the file that holds it, in place of token; read here.
        tls_ca: certificates to trust, in PEM; read here.
        slots: tasks that each does at the same time.
        cpus: what each takes of Ray's CPUs, and how many goroutines it may use; None = slots.
        resources: other resources of Ray that each takes.
        job: name of the job on a queue that several share.
        data: folder of recorded workloads, the same on every node; needed if the command has ``--data``.
        args: more arguments of ``gymctl worker``.
        gymctl: the binary, None = that of :func:`clustergym.find_gymctl`.

    Raises:
        ValueError: n, slots or cpus is below 1, or both token and token_file are given.
        ServerNotFound: there is no binary.
    """
    if n < 1 or slots < 1:
        raise ValueError(f"workers: got n={n} and slots={slots}, want 1 or more of both")
    cpus = float(slots) if cpus is None else cpus
    if cpus < 1:
        raise ValueError(f"workers: got cpus={cpus:g}, want 1 or more")
    if token is not None and token_file is not None:
        raise ValueError("workers: give token or token_file, not both")
    if gymctl is None:
        from clustergym.server import find_gymctl

        gymctl = find_gymctl()
    command = ["worker", url, "--slots", str(slots), "--workers", str(int(cpus)), "--until-eof"]
    for flag, value in (("--job", job), ("--data", data)):
        if value is not None:
            command += [flag, value]
    files: dict[str, bytes] = {}
    if token is not None:
        files["--token-file"] = f"{token}\n".encode()
    if token_file is not None:
        files["--token-file"] = Path(token_file).read_bytes()
    if tls_ca is not None:
        files["--tls-ca"] = Path(tls_ca).read_bytes()
    program = Path(gymctl).read_bytes()
    made = [hashlib.sha256(program).hexdigest(), platform.system(), platform.machine()]
    options = {
        "num_cpus": cpus,
        "resources": dict(resources or {}),
        "max_restarts": -1,
        "scheduling_strategy": "SPREAD",
    }
    if __name__ != "__main__":
        # Nodes get the actor's code itself: they need not have this package.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        actor = ray.remote(_Worker).options(**options)
        # Only nodes that lack the program fetch it. Pickled, the reference outlives this function, for actors that start
        # again on another node.
        sent = cloudpickle.dumps(ray.put(program))
        return Workers([actor.remote(made, sent, [*command, *args], files, _RESTARTS) for _ in range(n)])
    finally:
        if __name__ != "__main__":
            cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


class Workers:
    """The workers that :func:`workers` has started. They end with :meth:`stop`, with the ``with`` statement that holds
    this object, and with the driver."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = list(actors)

    def status(self, timeout: float = 3.0) -> list[dict[str, Any]]:
        """How each worker is, in the order in which they were started.

        Returns:
            A map each: ``state`` is ``"working"``, ``"done"`` (the coordinator said that nothing is left), ``"failed"``, or
            ``"waiting"`` for a node or for Ray to start it again. All but those who wait have ``node`` (Ray's id), ``host``,
            ``pid`` of ``gymctl``, ``restarts`` (of the program on this node) and ``said``, the last lines that it logged.
        """
        asked = [actor.status.remote() for actor in self._actors]
        if not asked:
            return []
        ray.wait(asked, num_returns=len(asked), timeout=timeout)
        return [_answer(a) for a in asked]

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the workers have ended, because all work is done or because they failed.

        Workers that still wait for a node when all others are done do not count.

        Returns:
            Whether they ended within timeout (in seconds).

        Raises:
            RuntimeError: they have failed, all of them; the message has what one of them said.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            now = self.status(10.0)  # who answers late must not look like one without a node
            if not any(w["state"] == "working" for w in now) and any(w["state"] in _ENDED for w in now):
                if not any(w["state"] == "done" for w in now):
                    last = next(w for w in now if w["state"] == "failed")
                    raise RuntimeError("the workers failed: " + "; ".join(last["said"][-3:]))
                return True
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(0.5)

    def stop(self, grace: float = 10.0) -> None:
        """Ends the workers; what they were doing goes back to the coordinator. Harmless if called twice.

        Args:
            grace: seconds that a worker has to save its work.
        """
        # One that waits for a node would never answer.
        asked = [a.stop.remote(grace) for a, s in zip(self._actors, self.status(5.0)) if s["state"] != "waiting"]
        if asked:
            ray.wait(asked, num_returns=len(asked), timeout=grace + 5)
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _answer(asked: Any) -> dict[str, Any]:
    """What a worker has answered, if it has."""
    try:
        answer: dict[str, Any] = ray.get(asked, timeout=0)
    except (GetTimeoutError, RayActorError, ObjectLostError) as e:
        return {"state": "waiting", "said": [] if isinstance(e, GetTimeoutError) else [str(e)]}
    return answer


class _Worker:
    """Runs on a node and owns a worker there. It uses nothing of this package, which the node may lack.

    Args:
        made: digest of the program, and the system and processor that it is for.
        program: a pickled reference to the program's bytes.
        args: its arguments.
        files: contents of files that it needs, by the flag that names them.
        restarts: how often it is started again after crashes.
    """

    def __init__(
        self,
        made: Sequence[str],
        program: bytes,
        args: Sequence[str],
        files: Mapping[str, bytes],
        restarts: int,
    ) -> None:
        self._said: collections.deque[str] = collections.deque(maxlen=_KEPT)
        self._state, self._restarts = "working", 0
        self._process: subprocess.Popen[str] | None = None
        self._stopping = threading.Event()
        digest, *wanted = made
        here = [platform.system(), platform.machine()]
        if here != wanted:
            self._state = "failed"
            self._said.append(f"this node is {' '.join(here)}, the program of the driver is for {' '.join(wanted)}")
            return
        # Only this user reads what is here, and it goes with the actor.
        self._folder = tempfile.TemporaryDirectory(prefix="clustergym-worker-")
        command = [self._install(digest, program), *args]
        for flag, content in files.items():
            path = os.path.join(self._folder.name, flag.strip("-"))
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(content)
            command += [flag, path]
        threading.Thread(target=self._supervise, args=(command, restarts), daemon=True).start()

    def _install(self, digest: str, program: bytes) -> str:
        """The program on this node. Workers of the same user share it."""
        user = os.getuid() if hasattr(os, "getuid") else os.getlogin()
        folder = os.path.join(tempfile.gettempdir(), f"clustergym-{user}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
            folder = self._folder.name  # somebody else's, who could put another program there
        path = os.path.join(folder, f"gymctl-{digest}")
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() == digest:
                return path
        fd, part = tempfile.mkstemp(dir=folder)
        with open(fd, "wb") as file:
            file.write(ray.get(cloudpickle.loads(program)))
        os.chmod(part, 0o700)
        os.replace(part, path)
        return path

    def _supervise(self, command: Sequence[str], restarts: int) -> None:
        """Runs the program until it is done, and again if it crashes."""
        while not self._stopping.is_set():
            try:
                # It ends with its standard input, thus with this process, however that ends.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
                )
            except OSError as e:
                self._said.append(f"cannot start {command[0]}: {e}")
                self._state = "failed"
                return
            assert self._process.stderr is not None
            for line in self._process.stderr:
                self._said.append(line.rstrip())
            code = self._process.wait()
            if code == 0 or self._stopping.is_set():
                self._state = "done"
                return
            self._said.append(f"gymctl ended with {code}")
            # A mistake, such as a wrong token, stays one.
            if code == 2 or self._restarts == restarts:
                self._state = "failed"
                return
            self._restarts += 1
            self._stopping.wait(self._restarts)
        self._state = "done"

    def status(self) -> dict[str, Any]:
        return {
            "state": self._state,
            "node": ray.get_runtime_context().get_node_id(),
            "host": platform.node(),
            "pid": self._process.pid if self._process is not None else 0,
            "restarts": self._restarts,
            "said": list(self._said),
        }

    def stop(self, grace: float) -> None:
        self._stopping.set()
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(args: Sequence[str] | None = None) -> int:
    """``python -m clustergym.ray URL --workers N``: workers on the Ray cluster of ``$RAY_ADDRESS``, until all is done."""
    parser = argparse.ArgumentParser(
        prog="python -m clustergym.ray",
        description="Starts workers of gymctl on a Ray cluster and waits until all is done.",
    )
    parser.add_argument("url", help="what the coordinator printed, as nats://head:7777")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="how many (1)")
    parser.add_argument("--slots", type=int, default=1, metavar="N", help="tasks that each does at the same time (1)")
    parser.add_argument("--cpus", type=float, metavar="N", help="what each takes of Ray's CPUs (as many as slots)")
    parser.add_argument("--token-file", metavar="FILE", help="file with the coordinator's token")
    parser.add_argument("--tls-ca", metavar="FILE", help="certificates to trust")
    parser.add_argument("--job", metavar="NAME", help="name of the job on a queue that several share")
    parser.add_argument("--data", metavar="DIR", help="folder of recorded workloads, the same on every node")
    parser.add_argument("--address", default=os.environ.get("RAY_ADDRESS", "auto"), help="of the Ray cluster (auto)")
    given = parser.parse_args(args)
    ray.init(address=given.address, log_to_driver=False, configure_logging=False)
    chosen = {name: getattr(given, name) for name in ("slots", "cpus", "token_file", "tls_ca", "job", "data")}
    try:
        with workers(given.workers, given.url, **chosen) as crew:
            before = ""
            while not crew.wait(5.0):
                states = collections.Counter(w["state"] for w in crew.status())
                now = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
                if now != before:
                    print(now, file=sys.stderr)
                before = now
    except (RuntimeError, ValueError, OSError) as e:
        print(f"clustergym.ray: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
