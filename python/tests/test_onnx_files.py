"""Policies that gymctl exported, in the hands of ONNX's own checker and of ONNX Runtime.

``make python`` has the Go tests write them, with observations and what the networks themselves compute, into the folder that
$CLUSTERGYM_ONNX_CASES names: random networks of every kind, and the network of every preset.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CASES = os.environ.get("CLUSTERGYM_ONNX_CASES", "")

if not CASES:
    pytest.skip("make python writes the models", allow_module_level=True)

onnx: Any = pytest.importorskip("onnx")
onnxruntime: Any = pytest.importorskip("onnxruntime")

FOLDERS = sorted(f.name for f in Path(CASES).iterdir())


def test_there_are_models_of_networks_and_of_presets() -> None:
    assert sum(name.startswith("drawn-") for name in FOLDERS) >= 50
    assert sum(name.startswith("preset-") for name in FOLDERS) >= 20


@pytest.mark.parametrize("name", FOLDERS)
def test_onnx_runtime_computes_what_the_network_does(name: str) -> None:
    folder = Path(CASES) / name
    onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    rows = int((folder / "rows").read_text())
    feed = {"obs": np.fromfile(folder / "obs", "<f4").reshape(rows, -1)}
    if "action_mask" in {i.name for i in session.get_inputs()}:
        feed["action_mask"] = np.fromfile(folder / "mask", np.uint8).reshape(rows, -1) != 0
    names = [o.name for o in session.get_outputs()]
    got = dict(zip(names, session.run(names, feed)))
    for file in folder.glob("out.*"):
        want = np.fromfile(file, "<f4")
        scale = max(1.0, float(np.abs(want).max()))
        assert np.abs(got[file.name[4:]].ravel() - want).max() <= 1e-5 * scale, file.name
    if (folder / "probabilities").exists():
        logits = np.where(feed["action_mask"], got["logits"].astype(float), -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = (weights / weights.sum(axis=1, keepdims=True)).ravel()
        assert np.abs(probabilities - np.fromfile(folder / "probabilities", "<f4")).max() <= 1e-5
    if (folder / "action").exists():
        assert np.array_equal(got["action"].ravel(), np.fromfile(folder / "action", "<i8"))
