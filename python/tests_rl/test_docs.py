"""docs/guides/python.md, docs/guides/serve.md and docs/guides/many-machines.md: their code runs, their manifests are
valid, their flags exist."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from clustergym import Client, LocalServer, RemoteEnv, Unauthorized, find_gymctl

ROOT = Path(__file__).parent.parent.parent
PYTHON, DEPLOY, CLUSTER = (ROOT / "docs" / "guides" / name for name in ("python.md", "serve.md", "many-machines.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def manifests(page: Path = DEPLOY) -> list[dict[str, Any]]:
    return [doc for text in blocks(page, "yaml") for doc in yaml.safe_load_all(text)]


def kind(name: str) -> dict[str, Any]:
    found = [m for m in manifests() if m.get("kind") == name]
    assert len(found) == 1, f"{len(found)} manifests of kind {name}"
    return found[0]


def seconds(duration: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", duration).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def test_the_code_of_the_python_page_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The reader's own files, and a run of gymctl train whose observations are those of the page's environment.
    monkeypatch.delenv("CLUSTERGYM_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    rows = [f"{30 * i},{60 + 97 * i % 5000},{1 + i % 4}" for i in range(800)]
    Path("jobs.csv").write_text("\n".join(["submit_time,duration,num_gpu", *rows]) + "\n")
    Path("mycluster.yaml").write_text("racks:\n  - nodes:\n      - {count: 4, gpus: 8}\n")
    small = {"window": 32, "warm": 0}
    Path("run.yaml").write_text(yaml.safe_dump({
        "name": "mine", "env": small, "ppo": {"steps": 32, "epochs": 1, "network": {"hidden": [8]}},
        "train": {"steps": 256, "envs": 2, "eval_every": 256, "checkpoint_every": 256}, "eval": {"validation": 1},
    }))  # fmt: skip
    command = [find_gymctl(), "train", "-c", "run.yaml", "--no-eval", "--json", "--run-dir", "runs/mine"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    names: dict[str, Any] = {}
    code = blocks(PYTHON, "python")
    assert len(code) >= 8
    for number, text in enumerate(code, 1):
        exec(compile(text, f"docs/guides/python.md, block {number}", "exec"), names)


def test_code_that_is_not_run_is_read() -> None:
    for page in (DEPLOY, CLUSTER):
        for text in blocks(page, "python"):
            compile(text, str(page), "exec")


def test_every_flag_of_the_pages_is_one_of_the_command_beside_it() -> None:
    help_of = {
        verb: subprocess.run([find_gymctl(), verb, "--help"], capture_output=True, text=True, timeout=30, check=False)
        for verb in ("serve", "eval")
    }
    flags = {verb: set(re.findall(r"--[a-z][a-z-]+", h.stdout + h.stderr)) for verb, h in help_of.items()}
    assert len(flags["serve"]) > 15, help_of["serve"].stdout
    used: set[str] = set()
    for text in blocks(DEPLOY, "yaml") + blocks(DEPLOY, "ini") + blocks(DEPLOY, "sh"):
        if re.search(r"gymctl serve|\bserve\b", text):
            lines = [line for line in text.splitlines() if not line.startswith(("openssl", "kubectl", "  -"))]
            used |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines))) - {"--steps"}
    prose = re.sub(r"^```.*?^```$", "", DEPLOY.read_text(), flags=re.MULTILINE | re.DOTALL)
    used |= set(re.findall(r"`(--[a-z][a-z-]+)", prose))
    used -= {"--help"}
    assert len(used) >= 10
    assert used <= flags["serve"], used - flags["serve"]
    usage = (ROOT / "python" / "examples" / "evaluate_sb3.py").read_text()
    evals = set(
        re.findall(r"--[a-z-]+", next(line for line in usage.splitlines() if line.strip().startswith("gymctl eval")))
    )
    assert {"--serve", "--external"} <= evals <= flags["eval"], evals - flags["eval"]


@pytest.mark.parametrize("version", ["1.33", "1.37"])
@pytest.mark.parametrize("page", [DEPLOY, CLUSTER], ids=lambda page: page.name)
def test_manifests_are_what_kubernetes_takes(page: Path, version: str) -> None:
    found = [m for m in manifests(page) if "kind" in m]
    assert len(found) >= 4
    for manifest in found:
        kubernetes_validate.validate(manifest, version, strict=True)


def commands_of_the_cluster_page() -> list[list[str]]:
    """The commands of gymctl in docs/guides/many-machines.md, in shell and in manifests, from their verbs on."""
    shell = [t for language in ("sh", "bash") for t in blocks(CLUSTER, language)]
    lines = [line for text in shell for line in text.replace("\\\n", " ").splitlines()]
    found = [
        re.split(r"[&;'<>|]", m)[0].split()
        for line in lines
        for m in re.findall(r"(?<!kubectl create )\bgymctl (?!token)([a-z].*)", line)
    ]
    for manifest in manifests(CLUSTER):
        pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
        found += [c["args"] for c in pod.get("containers", [])]
    return found


def test_every_flag_of_the_cluster_page_is_one_of_its_verb() -> None:
    found = commands_of_the_cluster_page()
    seen = set()
    for words in found:
        verb = words[:2] if words[0] == "experiment" else words[:1]
        seen.add(verb[0])
        said = subprocess.run([find_gymctl(), *verb, "--help"], capture_output=True, text=True, timeout=30, check=False)
        flags = set(re.findall(r"--[a-z][a-z-]+", said.stdout.split("Usage:")[1]))
        used = {w.split("=")[0] for w in words if w.startswith("--")}
        # Manifests of ranks begin with flags, after the verb.
        assert used <= flags, (words, used - flags)
    assert {"worker", "experiment", "train"} <= seen
    assert len(found) >= 15


def test_manifests_of_the_cluster_page_fit_together() -> None:
    by = {(m["kind"], m["metadata"]["name"]): m for m in manifests(CLUSTER)}
    service, job, crew = by["Service", "topdrl"], by["Job", "topdrl"], by["Deployment", "topdrl-workers"]
    (coordinator,) = job["spec"]["template"]["spec"]["containers"]
    (worker,) = crew["spec"]["template"]["spec"]["containers"]
    port = coordinator["ports"][0]["containerPort"]
    assert f"--listen=0.0.0.0:{port}" in coordinator["args"]
    assert worker["args"][1] == f"nats://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert service["spec"]["selector"] == job["spec"]["template"]["metadata"]["labels"]
    ranks, names = by["Job", "ranks"], by["Service", "ranks"]
    pod = ranks["spec"]["template"]["spec"]
    (rank,) = pod["containers"]
    n = ranks["spec"]["completions"]
    assert n == ranks["spec"]["parallelism"]
    assert {f"--world={n}", f"--set=ppo.replicas={n}"} <= set(rank["args"])
    assert pod["subdomain"] == names["metadata"]["name"]
    assert f"--rendezvous=ranks-0.{pod['subdomain']}:{names['spec']['ports'][0]['port']}" in rank["args"]
    assert names["spec"]["selector"] == {"job-name": "ranks"}
    for container in (coordinator, worker, rank):
        mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
        assert {"/tmp", "/etc/gymctl"} <= mounts.keys()
        assert "--token-file=/etc/gymctl/token" in container["args"]


def test_the_first_commands_of_the_cluster_page_work_with_and_without_its_certificates(tmp_path: Path) -> None:
    begin, worker, *_ = blocks(CLUSTER, "sh")
    (certificates,) = (b for b in blocks(CLUSTER, "sh") if b.startswith("openssl"))
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    (tmp_path / "gymctl").symlink_to(find_gymctl())
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-e", "-c", certificates], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    for tls in (False, True):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        first, second = (text.replace(":7777", f":{port}").strip() for text in (begin, worker))
        first += f" --only quality/ --out {'safe' if tls else 'plain'}"
        if tls:
            first += " --tls-cert head.pem --tls-key head.key"
            second = second.replace("nats://", "tls://") + " --tls-ca ca.pem"
        coordinator = subprocess.Popen(["sh", "-e", "-c", first], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
        try:
            subprocess.run(["sh", "-e", "-c", second], cwd=tmp_path, env=env, check=True, timeout=120)
            assert coordinator.wait(60) == 0
        finally:
            coordinator.kill()
            coordinator.wait()
    assert (tmp_path / "plain" / "results.csv").read_bytes() == (tmp_path / "safe" / "results.csv").read_bytes()


def test_paths_and_metrics_of_the_page_are_the_server_s(url: str) -> None:
    at = url.replace("ws://", "http://")

    def get(path: str) -> str:
        with urllib.request.urlopen(at + path, timeout=30) as answer:
            return str(answer.read().decode())

    paths = re.findall(r"^\| `(/[a-z0-9/]+)` ", DEPLOY.read_text(), re.MULTILINE)
    assert len(paths) == 5
    for path in paths:
        assert get(path), path
    Client(url).close()  # some metrics are there from the first session on
    named = set(re.findall(r"clustergym_[a-z_]+", DEPLOY.read_text()))
    assert len(named) >= 5
    exported = get("/metrics")
    assert not {name for name in named if f"# TYPE {name} " not in exported}


def test_the_deployment_has_what_it_needs() -> None:
    deployment, service = kind("Deployment"), kind("Service")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    args = dict(a[2:].split("=") for a in container["args"][1:])
    port = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert args["addr"].endswith(f":{port['gym']}")
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "gym"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "gym"}
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    (volume,) = pod["volumes"]
    assert args["token-file"] == f"{mounts[volume['name']]}/tokens"
    assert volume["secret"]["secretName"] in DEPLOY.read_text().split("kubectl create secret generic ")[1].split()[0]
    assert pod["terminationGracePeriodSeconds"] > seconds(args["drain-timeout"])
    affinity = service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    assert affinity > seconds(args["resume-window"])
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["ports"][0]["targetPort"] in port


def test_the_sidecar_listens_where_the_trainer_looks() -> None:
    pod = kind("Job")["spec"]["template"]["spec"]
    (gym,), (trainer,) = pod["initContainers"], pod["containers"]
    assert gym["restartPolicy"] == "Always"
    address = gym["args"][gym["args"].index("--addr") + 1]
    assert {"name": "CLUSTERGYM_URL", "value": f"ws://{address}"} in trainer["env"]
    assert (ROOT / "python" / "examples" / trainer["command"][1]).is_file()


def test_the_unit_waits_longer_than_the_server_drains(tmp_path: Path) -> None:
    (unit,) = blocks(DEPLOY, "ini")
    drain = re.search(r"--drain-timeout (\w+)", unit)
    stop = re.search(r"TimeoutStopSec=(\w+)", unit)
    assert drain
    assert stop
    assert seconds(stop[1]) > seconds(drain[1])
    loaded = set(re.findall(r"LoadCredential=(\w+):", unit))
    assert set(re.findall(r"%d/(\w+)", unit)) == loaded


def test_the_certificates_of_the_page_let_in_who_has_one(tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    tokens, certificates = (b for b in blocks(DEPLOY, "sh") if b.startswith(("( umask", "openssl")))
    for text in (tokens, certificates):
        subprocess.run(["sh", "-e", "-c", text], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    roles = dict(line.split() for line in (tmp_path / "tokens").read_text().splitlines())
    assert sorted(roles) == ["admin", "env", "read"]
    pem = {name: str(tmp_path / name) for name in ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")}
    tls = ["--tls-cert", pem["server.pem"], "--tls-key", pem["server.key"]]

    with LocalServer([*tls, "--token-file", str(tmp_path / "tokens")]) as server:
        at = server.url.replace("ws://", "wss://")
        env = RemoteEnv("CartPole-v1", at, roles["env"], client_options={"ca": pem["ca.pem"]})
        env.reset(seed=1)
        env.close()
        with pytest.raises(Unauthorized):
            Client(at, "wrong", ca=pem["ca.pem"])
        with pytest.raises(Exception, match=r"(?i)certificate"):
            Client(at, roles["env"], resume=False)

    with LocalServer([*tls, "--client-ca", pem["ca.pem"]]) as server:
        at = server.url.replace("ws://", "wss://")
        options = {"ca": pem["ca.pem"], "cert": pem["client.pem"], "key": pem["client.key"]}
        env = RemoteEnv("CartPole-v1", at, client_options=options)
        env.reset(seed=1)
        env.close()
        with pytest.raises(Exception):  # noqa: B017 - the handshake ends in one of several ways
            Client(at, ca=pem["ca.pem"], resume=False, timeout=5)
