"""A server of one's own: found, started, ended; and servers with tokens, TLS and a drain."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import clustergym
from clustergym import Client, LocalServer, RemoteEnv, server
from fake import FakeServer


def listening(url: str) -> bool:
    host, port = url.removeprefix("ws://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def gone_within(url: str, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not listening(url):
            return True
        time.sleep(0.05)
    return False


def script(code: str) -> subprocess.Popen[str]:
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(clustergym.__file__).parents[1]),
        "CLUSTERGYM_GYMCTL": clustergym.find_gymctl(),
    }
    return subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_missing_binary_is_named_with_all_places_that_were_searched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLUSTERGYM_GYMCTL", str(tmp_path / "none"))
    with pytest.raises(clustergym.ServerNotFound, match="CLUSTERGYM_GYMCTL names"):
        clustergym.find_gymctl()
    monkeypatch.delenv("CLUSTERGYM_GYMCTL")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(server, "__file__", str(tmp_path / "server.py"))
    with pytest.raises(clustergym.ServerNotFound, match=r"(?s)CLUSTERGYM_GYMCTL.*bin.*PATH.*url="):
        clustergym.find_gymctl()
    on_path = tmp_path / ("gymctl.exe" if os.name == "nt" else "gymctl")
    on_path.write_text("")
    on_path.chmod(0o755)
    assert clustergym.find_gymctl() == str(on_path)
    inside = tmp_path / "bin" / on_path.name
    inside.parent.mkdir()
    inside.write_text("")
    assert clustergym.find_gymctl() == str(inside), "the package's own comes before the PATH's"


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(clustergym.ServerStartError, match="no-such-flag"):
        LocalServer(["--no-such-flag"], timeout=20)
    with pytest.raises(clustergym.ServerStartError, match="cannot start"):
        LocalServer(gymctl=str(tmp_path / "none"))
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\necho waiting >&2\nexec sleep 60\n")
    sleeper.chmod(0o755)
    begin = time.monotonic()
    with pytest.raises(clustergym.ServerStartError, match=r"(?s)within 0\.5 s.*waiting"):
        LocalServer(gymctl=str(sleeper), timeout=0.5)
    assert time.monotonic() - begin < 10


def test_a_server_ends_with_close() -> None:
    with LocalServer(timeout=60) as s:
        assert s.running
        assert listening(s.url)
        RemoteEnv("ProbeAction-v1", s.url).close()
    assert not s.running
    assert not listening(s.url)
    s.close()


def test_all_environments_of_a_process_share_one_server_which_ends_with_it() -> None:
    p = script(
        "import clustergym, gymnasium\n"
        "a = gymnasium.make('clustergym/CartPole-v1'); b = gymnasium.make_vec('clustergym/CartPole-v1', 2)\n"
        "a.reset(seed=1); b.reset(seed=1)\n"
        "assert a.unwrapped.client.url == b.client.url\n"
        "print(clustergym.server._shared.url, flush=True)"
    )
    begin = time.monotonic()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    assert err == ""
    assert not listening(out.strip())
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("how", ["kill", "exit", "exception"])
def test_the_server_ends_with_its_process_however_that_ends(how: str) -> None:
    last = {"kill": "sys.stdin.read()", "exit": "os._exit(3)", "exception": "raise SystemExit(4)"}[how]
    p = script(
        "import os, sys, clustergym\n"
        "env = clustergym.RemoteEnv('CartPole-v1'); env.reset(seed=1)\n"
        f"print(clustergym.server._shared.url, flush=True); {last}"
    )
    assert p.stdout is not None
    url = p.stdout.readline().strip()
    if how == "kill":
        assert listening(url)
        p.send_signal(signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
    p.communicate(timeout=60)
    assert gone_within(url, 15)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_uses_its_parents_server_and_does_not_keep_it_alive() -> None:
    p = script(
        "import os, sys, time, warnings, clustergym\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "clustergym.RemoteEnv('CartPole-v1').close(); url = clustergym.server._shared.url\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    env = clustergym.RemoteEnv('CartPole-v1'); env.reset(seed=1)\n"
        "    assert clustergym.server._shared.url == url\n"
        "    os.write(1, (url + '\\n').encode()); time.sleep(20); os._exit(0)\n"
        "sys.stdin.readline(); os._exit(0)\n"
    )
    assert p.stdin is not None
    assert p.stdout is not None
    url = p.stdout.readline().strip()
    assert listening(url)
    p.stdin.write("\n")
    p.stdin.flush()
    assert gone_within(url, 15), "the child holds the pipe that says the parent lives"
    p.stdout.close()
    assert p.stderr is not None
    p.stderr.close()
    p.stdin.close()
    p.wait(20)


# Tokens.


def test_tokens_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("env s3cret-of-the-players\nread only-metrics-please\n")
    tokens.chmod(0o600)
    with LocalServer(["--token-file", str(tokens)], timeout=60) as s:
        for wrong in ("wrong", "s3cret-of-the-players "[:-2]):
            with pytest.raises(clustergym.Unauthorized) as e:
                Client(s.url, token=wrong, timeout=10)
            assert wrong not in str(e.value)
        with pytest.raises(clustergym.Unauthorized):
            Client(s.url, timeout=10)
        env = gym.make("clustergym/CartPole-v1", url=s.url, token="s3cret-of-the-players")
        env.reset(seed=1)
        assert "s3cret" not in repr(env.unwrapped.client)  # type: ignore[attr-defined]
        env.close()
        monkeypatch.setenv("CLUSTERGYM_TOKEN", "s3cret-of-the-players")
        Client(s.url, timeout=10).close()


# TLS.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a server's certificate for 127.0.0.1 and a client's, made with the openssl program."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")

    def run(*args: str) -> None:
        subprocess.run([openssl, *args], cwd=folder, check=True, capture_output=True)  # type: ignore[list-item]

    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    run("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    for name, extra in (("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")):
        run("req", *ec, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / f"{name}.ext").write_text(extra + "\nauthorityKeyIdentifier=keyid\n")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip
    return folder


def test_tls_checks_the_server_and_carries_everything(certificates: Path) -> None:
    c = certificates
    with LocalServer(["--tls-cert", str(c / "server.pem"), "--tls-key", str(c / "server.key")], timeout=60) as s:
        url = s.url.replace("ws://", "wss://")
        with pytest.raises(clustergym.ConnectionLost, match="TLS"):
            Client(url, timeout=10)
        with pytest.raises(clustergym.ClusterGymError):
            Client(s.url, timeout=10)
        env = RemoteEnv("CartPole-v1", url, client_options={"ca": c / "ca.pem", "keepalive": 0.1})
        plain = RemoteEnv("CartPole-v1", url, client_options={"ca": c / "ca.pem"})
        first = env.reset(seed=1)
        assert np.array_equal(first[0], plain.reset(seed=1)[0])
        for i in range(50):
            a, b = env.step(i % 2), plain.step(i % 2)
            assert np.array_equal(a[0], b[0])
            if a[2]:
                env.reset()
                plain.reset()
        time.sleep(1.5)  # the keep-alive thread looks at it meanwhile
        env.reset(seed=2)
        big = clustergym.RemoteVectorEnv("InvalidAction-v1", 2048, client=env.client)
        big.reset(seed=1)
        big.step(big.action_space.sample())
        env.close()
        plain.close()


def test_mutual_tls_asks_for_the_clients_certificate(certificates: Path) -> None:
    c = certificates
    args = ["--tls-cert", str(c / "server.pem"), "--tls-key", str(c / "server.key"), "--client-ca", str(c / "ca.pem")]
    with LocalServer(args, timeout=60) as s:
        url = s.url.replace("ws://", "wss://")
        with pytest.raises(clustergym.ClusterGymError):
            Client(url, timeout=10, ca=c / "ca.pem")
        with Client(url, timeout=10, ca=c / "ca.pem", cert=c / "client.pem", key=c / "client.key") as client:
            client.request("ping")


# Limits and ends.


def test_a_full_server_says_so() -> None:
    with LocalServer(["--max-sessions", "1", "--max-envs", "8", "--max-handles", "2"], timeout=60) as s:
        with Client(s.url, timeout=10) as c:
            with pytest.raises(clustergym.Capacity):
                Client(s.url, timeout=10)
            with pytest.raises(clustergym.RemoteError, match="8"):
                clustergym.RemoteVectorEnv("CartPole-v1", 9, client=c)
            envs = [RemoteEnv("CartPole-v1", client=c) for _ in range(2)]
            with pytest.raises(clustergym.Capacity):
                RemoteEnv("CartPole-v1", client=c)
            envs[0].close()
            RemoteEnv("CartPole-v1", client=c).close()
        end = time.monotonic() + 10
        while True:
            try:
                Client(s.url, timeout=10).close()
                break
            except clustergym.Capacity:
                assert time.monotonic() < end
                time.sleep(0.05)


@pytest.mark.skipif(os.name == "nt", reason="no signals to drain by")
def test_a_draining_server_finishes_what_is_open_and_opens_nothing() -> None:
    with LocalServer(["--drain-timeout", "20s"], timeout=60) as s:
        c = Client(s.url, timeout=10)
        env = RemoteEnv("CartPole-v1", client=c)
        env.reset(seed=1)
        os.kill(s.pid, signal.SIGTERM)
        with pytest.warns(clustergym.DrainWarning):
            end = time.monotonic() + 10
            while not c.draining and time.monotonic() < end:
                env.reset(seed=1)
                env.step(0)
        assert c.draining
        with pytest.raises(clustergym.Draining):
            RemoteEnv("CartPole-v1", client=c)
        with pytest.raises(clustergym.ClusterGymError):
            Client(s.url, timeout=2)
        env.step(0)
        c.close()
        end = time.monotonic() + 10
        while s.running and time.monotonic() < end:
            time.sleep(0.05)
        assert not s.running


# The own server, its end and its token.


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets a test have the process's own server to itself."""
    monkeypatch.setattr(server, "_shared", None)
    yield
    if server._shared is not None:
        server._shared.close()


def end(kind: signal.Signals) -> int:
    """Ends the own server and returns its process id."""
    assert server._shared is not None
    pid = server._shared.pid
    os.kill(pid, kind)
    return pid


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
@pytest.mark.parametrize(
    ("kind", "how"),
    [(signal.SIGKILL, "killed by SIGKILL"), (signal.SIGTERM, "exit code"), (signal.SIGSEGV, "SEGV|code 2")],
)
def test_the_end_of_the_own_server_is_noticed_and_a_reset_starts_another(
    own: None, kind: signal.Signals, how: str
) -> None:
    env = RemoteEnv("CartPole-v1", timeout=60)
    first = env.reset(seed=1)
    pid = end(kind)
    begin = time.monotonic()
    with pytest.raises(clustergym.ServerDied, match=rf"(step|reset): (.|\n)*({how})"), warnings.catch_warnings():
        warnings.simplefilter("ignore", clustergym.DrainWarning)
        for _ in range(1000):  # it drains first after SIGTERM
            env.step(0)
            env.reset()
            time.sleep(0.01)
    assert time.monotonic() - begin < 30, "as long as the time limit of a wait"
    with pytest.raises(clustergym.NeedsReset):
        env.step(0)
    assert np.array_equal(env.reset(seed=1)[0], first[0])
    assert server._shared is not None
    assert server._shared.pid != pid
    env.close()


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_a_wait_ends_when_the_own_server_does(own: None) -> None:
    env = RemoteEnv("CartPole-v1", timeout=60)
    env.reset(seed=1)
    assert server._shared is not None
    os.kill(server._shared.pid, signal.SIGSTOP)
    os.waitpid(server._shared.pid, os.WUNTRACED)  # from here on it cannot answer
    timer = threading.Timer(0.5, end, [signal.SIGKILL])
    timer.start()
    begin = time.monotonic()
    with pytest.raises(clustergym.ServerDied, match="SIGKILL"):
        env.step(0)
    assert time.monotonic() - begin < 30
    timer.join()
    env.reset(seed=1)
    env.close()


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_an_end_that_the_keep_alive_thread_notices_is_told_by_the_next_call(own: None) -> None:
    env = RemoteEnv("CartPole-v1", timeout=60, client_options={"keepalive": 0.1})
    env.reset(seed=1)
    end(signal.SIGKILL)
    until = time.monotonic() + 60
    while env.client._unsaid is None and time.monotonic() < until:
        time.sleep(0.05)
    with pytest.raises(clustergym.ServerDied, match="SIGKILL"):
        env.reset()
    env.reset(seed=1)
    env.close()


@pytest.mark.skipif(os.name == "nt", reason="the stub is a script")
def test_the_error_has_the_last_lines_of_a_server_that_ends_by_itself(
    own: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub = tmp_path / "gymctl"
    stub.write_text(
        f"#!{sys.executable}\n"
        f"import json, os, sys\nsys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\n"
        "from fake import FakeServer, answer\n"
        "def serve(peer):\n"
        "    while True:\n"
        "        request = peer.recv()\n"
        "        if request['op'] == 'step':\n"
        "            for i in range(9): print('line', i, file=sys.stderr)\n"
        "            print('panic: out of luck', file=sys.stderr, flush=True); os._exit(7)\n"
        "        answer(peer, request)\n"
        "server = FakeServer(serve)\n"
        "path = sys.argv[sys.argv.index('--token-file') + 1]\n"
        "open(os.environ['SEEN'], 'w').write(f'{os.stat(path).st_mode & 0o777:o} ' + open(path).read())\n"
        "print(json.dumps({'addr': server.url[5:]}), flush=True)\n"
        "sys.stdin.read()\n"
    )
    stub.chmod(0o755)
    monkeypatch.setenv("CLUSTERGYM_GYMCTL", str(stub))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    env = RemoteEnv("X-v1", timeout=60)
    env.reset()
    with pytest.raises(clustergym.ServerDied, match=r"(?s)exit code 7.*line 8.*panic: out of luck") as e:
        env.step(0)
    assert "line 0" not in str(e.value)
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)
    env.close()
    mode, role, token = (tmp_path / "seen").read_text().split()
    assert (mode, role) == ("600", "env")
    assert len(token) >= 32


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_notices_the_end_of_its_parents_server() -> None:
    p = script(
        "import os, signal, sys, time, warnings, clustergym\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "clustergym.RemoteEnv('CartPole-v1').close(); pid = clustergym.server._shared.pid\n"
        "r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    env = clustergym.RemoteEnv('CartPole-v1', timeout=60); env.reset(seed=1)\n"
        "    os.write(w, b'x'); sys.stdin.readline()\n"
        "    begin = time.monotonic()\n"
        "    try: env.step(0)\n"
        "    except clustergym.ServerDied as e: print('died', time.monotonic() - begin < 30, flush=True)\n"
        "    env.reset(seed=1); env.step(0); env.close()\n"
        "    print('again', clustergym.server._shared.pid != pid, flush=True); sys.exit()\n"
        "os.read(r, 1); os.kill(pid, signal.SIGKILL)\n"  # and leaves it unreaped, a zombie whose number still exists
        "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)\n"
        "print('killed', flush=True); os.wait()\n"
    )
    assert p.stdin is not None
    assert p.stdout is not None
    assert p.stdout.readline() == "killed\n"
    out, err = p.communicate("\n", timeout=100)
    assert out.splitlines() == ["died True", "again True"], err


def test_the_own_server_asks_for_a_token_that_nobody_sees(
    own: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = gym.make("clustergym/CartPole-v1")
    assert server._shared is not None
    token = server._shared._token
    assert token is not None
    assert len(token) >= 32
    with pytest.raises(clustergym.Unauthorized):
        Client(server._shared.url, timeout=20)
    assert list(tmp_path.glob("*token*")) == []
    if sys.platform == "linux":
        pid = server._shared.pid
        assert token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert token.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    assert env.spec is not None
    raw: RemoteEnv = env.unwrapped  # type: ignore[assignment]
    shown = [repr(env), str(env), repr(env.spec), env.spec.to_json(), env.spec.pprint(disable_print=True) or ""]
    shown += [repr(raw.client), repr(server._shared), repr(raw.handle)]
    for text in [*map(str.encode, shown), pickle.dumps(env.spec), pickle.dumps(raw), pickle.dumps(raw.client)]:
        assert token.encode() not in text
    os.kill(server._shared.pid, signal.SIGTERM)
    with pytest.raises(clustergym.ClusterGymError) as e, warnings.catch_warnings():
        warnings.simplefilter("ignore", clustergym.DrainWarning)
        env.reset(seed=1)
        while True:
            env.unwrapped.reset()
    assert token not in str(e.value)
    env.close()


# Tokens of the user.

SECRET = "s3cret-of-the-players"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that asks for SECRET."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"env {SECRET}\n")
    tokens.chmod(0o600)
    with LocalServer(["--token-file", str(tokens)], timeout=60) as s:
        yield s.url


def texts(spec: EnvSpec) -> list[bytes]:
    """Everything that shows a spec."""
    return [
        repr(spec).encode(),
        spec.to_json().encode(),
        str(spec.pprint(disable_print=True)).encode(),
        pickle.dumps(spec),
    ]


def test_a_spec_shows_no_token_and_still_makes_the_environment(guarded: str) -> None:
    env = gym.make("clustergym/CartPole-v1", url=guarded, token=SECRET)
    raw = RemoteEnv("CartPole-v1", guarded, SECRET)
    envs = gym.make_vec("clustergym/CartPole-v1", num_envs=2, url=guarded, token=SECRET)
    wrapped = gym.wrappers.TimeLimit(env, 7)
    specs = [env.spec, env.unwrapped.spec, raw.spec, envs.spec, wrapped.spec]
    for spec in specs:
        assert spec is not None
        for text in texts(spec):
            assert SECRET.encode() not in text
    for one in (env.spec, raw.spec, wrapped.spec, EnvSpec.from_json(env.spec.to_json()), copy.deepcopy(env.spec)):  # type: ignore[union-attr]
        assert one is not None
        again = one.make()
        assert again.spec == one
        again.reset(seed=1)
        again.close()
    again_vec = gym.make_vec(envs.spec)  # type: ignore[arg-type]
    again_vec.reset(seed=1)
    assert again_vec.num_envs == 2
    again_vec.close()
    for thing in (env, envs, wrapped, raw):
        thing.close()


def test_a_hidden_token_opens_the_server_and_shows_nowhere(guarded: str) -> None:
    hidden = clustergym.secret(SECRET)
    assert SECRET not in hidden
    assert clustergym.secret(hidden) == hidden == clustergym.secret(SECRET)
    assert clustergym.secret("another") != hidden
    client = Client(guarded, hidden, timeout=20)
    assert SECRET.encode() not in pickle.dumps(client)
    client.close()
    for mode in ("sync", "async"):
        envs = gym.make_vec(
            "clustergym/CartPole-v1", num_envs=2, vectorization_mode=mode, url=guarded, token=hidden,
            vector_kwargs={"context": "fork"} if mode == "async" and hasattr(os, "fork") else {},
        )  # fmt: skip
        envs.reset(seed=1)
        assert envs.spec is not None
        for text in texts(envs.spec):
            assert SECRET.encode() not in text
        envs.close()


def test_headers_are_hidden_too() -> None:
    with FakeServer() as fake:
        env = RemoteEnv("X-v1", fake.url, client_options={"headers": {"X-Key": "my-own-key"}})
        assert env.spec is not None
        for text in texts(env.spec):
            assert b"my-own-key" not in text
        again = env.spec.make()
        assert [peer.headers["x-key"] for peer in fake.peers] == ["my-own-key"] * 2
        again.close()
        env.close()


def test_gymnasiums_checker_recreates_an_environment_with_a_token(guarded: str) -> None:
    env = gym.make("clustergym/CartPole-v1", url=guarded, token=SECRET, disable_env_checker=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped)
    env.close()


def test_another_process_takes_the_token_from_its_environment(guarded: str) -> None:
    env = gym.make("clustergym/CartPole-v1", url=guarded, token=SECRET)
    assert env.spec is not None
    code = f"import gymnasium, clustergym; gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json({env.spec.to_json()!r}))"
    for given in (None, SECRET):
        environ = {**os.environ, "PYTHONPATH": str(Path(clustergym.__file__).parents[1])}
        if given is not None:
            environ["CLUSTERGYM_TOKEN"] = given
        p = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=100)
        assert (p.returncode == 0) == (given is not None), p.stderr
        assert given is not None or "CLUSTERGYM_TOKEN" in p.stderr
    env.close()


def test_no_error_shows_the_token(guarded: str) -> None:
    for arguments, kind in [
        ({"info": 5}, ValueError),  # a TypeError: Gymnasium would add all arguments to its message
        ({"client_options": {"nonsense": 1}}, ValueError),
        ({"kwargs": {"window": 1}, "window": 2}, ValueError),
        ({"nonsense": 1}, clustergym.BadKwargs),
        ({"url": f"ws://user:{SECRET}@127.0.0.1:1"}, ValueError),
        ({"url": f"ftp://user:{SECRET}@127.0.0.1:1"}, ValueError),
        ({"token": f"{SECRET}\r\nX-More: 1"}, ValueError),
        ({"token": f"{SECRET}-wrong"}, clustergym.Unauthorized),
    ]:
        with pytest.raises(kind) as e:
            gym.make("clustergym/CartPole-v1", **{"url": guarded, "token": SECRET, **arguments})  # type: ignore[arg-type]
        assert SECRET not in str(e.value)
