"""Policies of Stable-Baselines3 as ONNX models, which ``gymctl eval --policy-onnx`` and every ONNX runtime play.

    >>> import clustergym.onnx
    >>> clustergym.onnx.export(model, "policy.onnx")
    $ gymctl eval --policy-onnx policy.onnx --name mine

What is inside: the scaling of observations (``VecNormalize``, images as SB3 scales them), the network, the mask of legal actions
for ``MaskablePPO``, and the choice of the action that ``model.predict(obs, deterministic=True)`` makes. ``VecNormalize`` belongs
to the model's environment: a model that has lost it, by ``PPO.load(path)`` in place of ``PPO.load(path, env=env)``, is refused
without ``transform=``; so is one that learned behind other wrappers that change observations or actions. Exports need PyTorch,
and ``onnxscript`` for the newer of its two exporters.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

try:
    from gymnasium import spaces
except ImportError as e:
    raise ImportError("clustergym.onnx needs Gymnasium and PyTorch: pip install 'clustergym[onnx]'") from e

from ._playing import LOST, aside, between, forgotten
from .errors import ClusterGymError

__all__ = ["OPSET", "OPSET_LEGACY", "export"]

OPSET = 20
"""The version of operators that PyTorch's newer exporter writes here."""
OPSET_LEGACY = 17
"""The version that its older one writes, which needs no ``onnxscript``."""


def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    env_id: str | None = None,
    batch: int = 0,
    legacy: bool | None = None,
    transform: Any = None,
) -> Path:
    """Writes the deterministic policy of a ``PPO``, ``A2C``, ``DQN`` or ``MaskablePPO`` model to an ONNX file.

    Inputs: ``obs`` [N, ...], or one input for each field of a Dict observation by the field's name, and for ``MaskablePPO``
    ``action_mask`` [N, actions] of bool. Outputs: ``action`` (int64 [N], [N, factors] of a MultiDiscrete space, float32
    [N, numbers] of a Box space), ``logits`` or ``q``, and ``value`` of actor-critic models.

    Args:
        model: a model of Stable-Baselines3 or sb3-contrib. It is not changed.
        path: the file to write.
        env_id: the environment that the model is for, as ``"JobSelect-v2"``, written into the file; by default that of the
            model's own clustergym environment, if it still has one. gymctl refuses models of other environments.
        batch: inputs of exactly this many rows; 0 = any number.
        legacy: whether to use PyTorch's older exporter; by default where ``onnxscript`` is not installed.
        transform: a ``VecNormalize``, or the file that its ``save`` has written (a pickle: open none of strangers), in place of
            what is around the model's own environment; False for nothing.

    Returns:
        The path.

    Raises:
        TypeError: for a model of another algorithm, or wrappers or an observation or action space that have no form here.
        ClusterGymError: the model has lost its VecNormalize.
    """
    import torch

    target = Path(path)
    policy = _greedy(model, transform)
    modes = [(m, m.training) for m in policy.modules()]
    rows = batch or 2  # 1 would be taken for a constant
    args, names, dynamic = [], [], {}
    for name, space in policy.inputs.items():
        kind = torch.bool if name == _MASK else _dtype(space)
        args.append(torch.ones((rows, *space.shape), dtype=kind, device=model.device))
        names.append(name)
        dynamic[name] = {0: "N"}
    if legacy is None:
        legacy = importlib.util.find_spec("onnxscript") is None
    options: dict[str, Any] = {"input_names": names, "output_names": policy.outputs}
    if legacy:
        options |= {"opset_version": OPSET_LEGACY, "dynamo": False}
        if not batch:
            options["dynamic_axes"] = dynamic | {name: {0: "N"} for name in policy.outputs}
    else:
        options |= {"opset_version": OPSET, "dynamo": True, "external_data": False, "verbose": False}
        if not batch:
            options["dynamic_shapes"] = (tuple({0: torch.export.Dim("N", min=1)} for _ in names),)
    log = logging.getLogger("torch.onnx")
    level = log.level
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporters, about themselves
        log.setLevel(logging.ERROR)
        try:
            torch.onnx.export(policy.eval(), tuple(args), str(target), **options)
        finally:
            log.setLevel(level)
            for m, training in modes:
                m.training = training
    meta = {"clustergym.env": env_id or _env_of(model), "clustergym.agent": type(model).__name__}
    with open(target, "ab") as f:
        for key, value in meta.items():
            if value:
                f.write(_property(key, value))
    return target


_MASK = "action_mask"


def _dtype(space: Any) -> Any:
    import torch

    return torch.uint8 if space.dtype == "uint8" else torch.float32


def _property(key: str, value: str) -> bytes:
    """An entry of a model's metadata. Messages of Protocol Buffers can be joined end to end."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2]) + _varint(len(data)) + data

    return field(14, field(1, key.encode()) + field(2, value.encode()))


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def _env_of(model: Any) -> str:
    """The id of the clustergym environment that a model was made with, "" if there is none."""
    env = model.get_env()
    while env is not None:
        inner = getattr(env, "vector_env", None)
        for e in (inner, *getattr(env, "envs", [])[:1]):
            spec = getattr(e, "spec", None) or getattr(getattr(e, "unwrapped", None), "spec", None)
            name = str(getattr(spec, "id", "") or getattr(getattr(e, "unwrapped", None), "env_id", ""))
            if name:
                return name.rpartition("/")[2]
        env = getattr(env, "venv", None)
    return ""


# Wrappers that are looked at, and those of them that change the form of observations alone, or the mask, which is an input.
_LIBRARIES = ("gymnasium.", "stable_baselines3.", "sb3_contrib.")
_SHAPES_ONLY = ("ActionMasker", "DtypeObservation", "FlattenObservation", "ReshapeObservation", "VecExtractDictObs")


def _scaling(model: Any, transform: Any) -> Any:
    """The VecNormalize that normalises a model's observations, or None."""
    if transform is None:
        if forgotten(model):
            raise ClusterGymError(LOST)
        outer, inner = between(model)
        scales = [w for w in outer if hasattr(type(w), "normalize_obs")]
        turns = [w for w in outer if hasattr(type(w), "transpose_observations")]
        rest = [w for w in outer if w not in scales and w not in turns] + [w for w in inner if not aside(w)]
        for wrapper in (*rest, *scales[1:]):
            name = type(wrapper).__name__
            if not type(wrapper).__module__.startswith(_LIBRARIES):
                warnings.warn(
                    f"the model learned behind {name}, which is left out: the file takes what {name} gives",
                    stacklevel=4,
                )
            elif name not in _SHAPES_ONLY:
                raise TypeError(
                    f"the model learned behind {name}, which has no form here (transform=False leaves it out): "
                    "clustergym.compare plays the model with it"
                )
        return scales[0] if scales else None
    if transform is False:
        return None
    if isinstance(transform, (str, os.PathLike)):
        with open(os.path.expanduser(transform), "rb") as f:
            transform = pickle.load(f)
    if not callable(getattr(transform, "normalize_obs", None)):
        raise TypeError(f"transform is a {type(transform).__name__}, want a VecNormalize, its file or False")
    return transform


def _greedy(model: Any, transform: Any) -> Any:
    """The module that is exported: the model's policy, and what is around it."""
    # PyTorch is imported when it is needed, so the class is in here.
    import torch
    from stable_baselines3.common.preprocessing import preprocess_obs
    from stable_baselines3.common.vec_env import VecTransposeImage, unwrap_vec_wrapper

    kind = type(model).__name__
    if kind not in ("PPO", "A2C", "DQN", "MaskablePPO"):
        raise TypeError(f"a model of {kind} has no form here, want PPO, A2C, DQN or MaskablePPO")
    policy = model.policy
    env = model.get_env()
    turned = unwrap_vec_wrapper(env, VecTransposeImage) if env is not None else None
    space, actions = policy.observation_space, policy.action_space
    outer = turned.venv.observation_space if turned is not None else space
    scale = _scaling(model, transform)
    if not isinstance(actions, (spaces.Discrete, spaces.MultiDiscrete, spaces.Box)):
        raise TypeError(f"actions of {actions} have no form here, want Discrete, MultiDiscrete or Box")
    if getattr(policy, "squash_output", False) or getattr(policy, "use_sde", False):
        raise TypeError("a policy with squash_output or use_sde has no form here")
    for name, s in (outer.spaces if isinstance(outer, spaces.Dict) else {"obs": outer}).items():
        if not isinstance(s, spaces.Box) or s.dtype not in ("float32", "uint8"):
            raise TypeError(f"an observation {name} of {s} has no form here, want a Box of float32 or uint8")
        if name == _MASK:
            raise TypeError(f"an observation called {_MASK} is taken for the legal actions: leave mask='obs' out")
    masked = kind == "MaskablePPO"
    critic = kind != "DQN"

    def constant(x: Any) -> Any:
        return torch.as_tensor(x, dtype=torch.float32, device=model.device)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.policy = policy
            fields = dict(outer.spaces) if isinstance(outer, spaces.Dict) else {"obs": outer}
            self.inputs = dict(fields)
            self.fields = list(fields)
            if masked:
                n = int(actions.n) if isinstance(actions, spaces.Discrete) else int(actions.nvec.sum())
                self.inputs[_MASK] = spaces.MultiBinary(n)
            head = ["q"] if not critic else ["logits"] if not isinstance(actions, spaces.Box) else ["mean"]
            self.outputs = ["action", *head, *(["value"] if critic else [])]
            self.single = not isinstance(outer, spaces.Dict)
            images = getattr(turned, "image_space_keys", None) or (["obs"] if turned and self.single else [])
            self.images = set(images)

        def scaled(self, name: str, x: Any) -> Any:
            """What VecNormalize does with an observation."""
            if scale is None or not scale.norm_obs:
                return x
            if self.single:
                rms = scale.obs_rms
            elif name in scale.norm_obs_keys:
                rms = scale.obs_rms[name]
            else:
                return x
            mean, deviation = constant(rms.mean), constant((rms.var + scale.epsilon) ** 0.5)
            return torch.clamp((x - mean) / deviation, -scale.clip_obs, scale.clip_obs)

        def seen(self, given: Any) -> Any:
            obs = {}
            for name, x in zip(self.fields, given):
                if name in self.images:
                    x = x.permute(0, 3, 1, 2)
                obs[name] = self.scaled(name, x)
            return obs["obs"] if self.single else obs

        def forward(self, *given: Any) -> Any:
            obs = self.seen(given[: len(self.fields)])
            mask = given[-1] if masked else None
            if not critic:
                net = self.policy.q_net
                x = preprocess_obs(obs, space, normalize_images=net.normalize_images)
                q = net.q_net(net.features_extractor(x))
                return torch.argmax(q, dim=1), q
            features = self.policy.extract_features(obs)
            if self.policy.share_features_extractor:
                pi, vf = self.policy.mlp_extractor(features)
            else:
                pi = self.policy.mlp_extractor.forward_actor(features[0])
                vf = self.policy.mlp_extractor.forward_critic(features[1])
            head, value = self.policy.action_net(pi), self.policy.value_net(vf).squeeze(1)
            if isinstance(actions, spaces.Box):
                numbers = torch.maximum(head, constant(actions.low.ravel()))
                return torch.minimum(numbers, constant(actions.high.ravel())), head, value
            choice = head if mask is None else torch.where(mask, head, torch.full_like(head, -1e8))
            if isinstance(actions, spaces.Discrete):
                return torch.argmax(choice, dim=1), head, value
            parts = torch.split(choice, [int(n) for n in actions.nvec], dim=1)
            return torch.stack([torch.argmax(p, dim=1) for p in parts], dim=1), head, value

    return Module()
