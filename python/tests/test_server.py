"""A server of one's own: found, started, ended; and servers with tokens, TLS and a drain."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest

import clustergym
from clustergym import Client, LocalServer, RemoteEnv, server


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
        assert first[0]["pole_angle"] == plain.reset(seed=1)[0]["pole_angle"]
        for i in range(50):
            a, b = env.step(i % 2), plain.step(i % 2)
            assert a[0]["pole_angle"] == b[0]["pole_angle"]
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
