"""One remote environment as a :class:`gymnasium.Env`."""

from __future__ import annotations

import copy as copying
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec

from ._copies import guard, twin_of
from ._files import plain, resolve
from ._secrets import hide
from ._session import fields_of, request_head
from .client import Client, Stats
from .errors import BadKwargs, ClusterGymError, ProtocolError, TooLarge, UnknownKwargs, unknown_kwargs
from .handle import Handle
from .infos import blank_info, row_info
from .spaces import Batch, parse_space

__all__ = ["NAMESPACE", "RemoteEnv"]

#: The namespace of the environments' ids in Gymnasium's registry.
NAMESPACE = "clustergym"


def open_fields(
    obs: str | None,
    mask: Sequence[str],
    invalid: str,
    penalty: float | None,
    info: str | Sequence[str],
    autoreset: str,
    kwargs: Mapping[str, Any] | None,
    more: Mapping[str, Any],
    render_mode: str | None,
) -> dict[str, Any]:
    """The fields of the protocol's ``open`` that both kinds of environments share.

    Observations are flat unless something needs fields: a mask among them is one.
    """
    masks = [mask] if isinstance(mask, str) else list(mask)
    both = sorted(set(kwargs or {}) & set(more))
    if both:
        raise TypeError(f"given twice, in kwargs and by name: {', '.join(both)}")
    return {
        "kwargs": {**(kwargs or {}), **more},
        "autoreset": autoreset,
        "obs": obs or ("dict" if "obs" in masks else "flat"),
        "mask": masks,
        "invalid": invalid,
        "penalty": penalty,
        "info": info if isinstance(info, str) else list(info),
        "render_mode": render_mode,
    }


def opened(client: Client, env_id: str, n: int, fields: dict[str, Any], cls: str, share: bool = False) -> Handle:
    """The handle of n environments for the class of that name.

    Raises:
        UnknownKwargs: the environment has no argument of that name.
        ClusterGymError: it was refused for another reason.
    """
    try:
        return Handle(client, env_id, n, fields, share)
    except BadKwargs as e:
        unknown = unknown_kwargs(e, fields["kwargs"], cls)
        if unknown is None:
            raise
        raise unknown from None


def advised(handle: Handle, policy: str, budget: int | str | None, ids: Sequence[int] | None) -> npt.NDArray[np.int64]:
    """The actions that a policy would take, int64 [environments] or [environments, factors]."""
    args: dict[str, Any] = {"policy": policy}
    if budget is not None:
        args["budget"] = budget if isinstance(budget, str) else index(budget)
    fields: dict[str, Any] = {"method": "advise", "args": args}
    if ids is not None:
        fields["ids"] = list(ids)
    ret = handle.request("call", fields).get("ret")
    if not isinstance(ret, (list, np.ndarray)) or len(ret) != (handle.n if ids is None else len(fields["ids"])):
        raise ProtocolError("call: the advice is no list of one action for each environment")
    return np.asarray(ret, np.int64)


def new_spec(handle: Handle, env_id: str, entry_point: str, kwargs: dict[str, Any]) -> EnvSpec:
    """The spec that Gymnasium expects of an environment made without ``gymnasium.make``; its ``make`` makes another one."""
    threshold = handle.spec.get("reward_threshold")
    return EnvSpec(
        id=f"{NAMESPACE}/{env_id}",
        entry_point=entry_point,
        reward_threshold=float(threshold) if isinstance(threshold, (int, float)) else None,
        kwargs=kwargs,
    )


def step_limit(handle: Handle) -> int | None:
    """The number of steps after which the server truncates an episode, None if it does not."""
    limit = handle.spec.get("max_episode_steps")
    return limit if isinstance(limit, int) and limit > 0 else None


def metric_names(handle: Handle) -> tuple[str, ...]:
    """The infos that the environment calls metrics: figures of whole episodes."""
    infos = handle.meta.get("info")
    if not isinstance(infos, (list, tuple)):
        return ()
    return tuple(str(f["name"]) for f in infos if isinstance(f, dict) and f.get("metric") is True and "name" in f)


def _get_spec(self: Any) -> EnvSpec | None:
    """The spec. It shows references in place of the token and of headers' values (:func:`clustergym.secret`)."""
    spec: EnvSpec | None = self.__dict__.get("_spec")
    return spec


def _set_spec(self: Any, spec: EnvSpec | None) -> None:
    # gymnasium.make sets it too, with the arguments as they were given.
    if spec is not None:
        spec = copying.copy(spec)
        kwargs = hide(spec.kwargs)
        # Paths are absolute, so that its make works in another folder, and are text, so that it can be JSON.
        spec.kwargs = resolve(kwargs, True) if self.__dict__.get("_private") else plain(kwargs)
        if spec.max_episode_steps is None and "handle" in self.__dict__:
            # The server ends episodes then: it depends on the arguments, which a registered spec does not know.
            spec.max_episode_steps = step_limit(self.handle)
    self.__dict__["_spec"] = spec


hidden_spec = property(_get_spec, _set_spec)


class RemoteEnv(gym.Env[Any, Any]):
    """One environment on a server.

    Every argument that is not named here goes to the environment: ``RemoteEnv("JobSelect-v2", load=0.9)``. Arguments of
    the environment whose names are taken go into ``kwargs``. ``trace`` is the path of a file of jobs, or a map such as
    ``{"file": "jobs.csv", "sort": True}``; ``cluster`` is a name, the path of a YAML file, or its keys as a map.

    Observations are NumPy arrays of exactly the space's types, owned by the caller: one float32 vector, or a dict of fields.
    Rewards are ``float``, flags ``bool``. ``info`` has ``action_mask`` (int8, 1 = legal) if the actions are discrete, and
    with an episode's last step the environment's metrics, as ``jct_s``. All infos have the same keys: what a step does not
    have is 0, and -1 for ``seed``. A masked action is replaced or refused, as ``invalid`` says; an action outside the space
    always raises :class:`~clustergym.BadAction`.

    After the end of an episode call :meth:`reset`; a step raises :class:`~clustergym.NeedsReset`. ``reset(seed=s)`` begins
    the stream of episodes of seed s, ``reset()`` its next episode. Options are the environment's: ``split`` and ``window``
    name a piece of a workload, ``task`` a task.

    :func:`copy.copy` and :func:`copy.deepcopy` give an environment of its own in the same state, as a snapshot restored into
    another one; a pickle gives one that needs a reset.

    Args:
        env_id: as ``"JobSelect-v2"``.
        url: the server; None = ``$CLUSTERGYM_URL``, else a server that this process starts.
        token: None = ``$CLUSTERGYM_TOKEN``. ``spec`` shows a reference in its place.
        client: a session to share; url, token, timeout and client_options are then not used.
        timeout: seconds that any wait may last.
        render_mode: ``"rgb_array"``, ``"ansi"`` or None: see :meth:`render`.
        obs: ``"flat"`` or ``"dict"``; None = ``"dict"`` if mask has ``"obs"``, else ``"flat"``.
        mask: where action masks go: ``"info"``, ``"obs"``, both, or nowhere.
        invalid: what a masked action does: ``"noop"`` replaces it by the environment's "do nothing" (or the lowest legal
            action), ``"penalty"`` does so too and subtracts penalty from the reward, ``"error"`` refuses it.
        penalty: None = the server's 0.1.
        info: ``"metrics"``; ``"episode"``, with ``r`` (return) and ``l`` (length) under the key ``episode``, which Gymnasium's
            ``RecordEpisodeStatistics`` wants for itself; ``"none"``, ``"all"``, or a list of keys, which may have both words.
        copy: False returns read-only arrays without copying.
        kwargs: arguments of the environment.
        client_options: more arguments of :class:`~clustergym.Client`, as ``{"ca": "ca.pem"}``.

    Attributes:
        stats: the session's counts and latencies.
        handle: this environment in the protocol; ``handle.meta`` is its description.
        metric_names: the infos that come with an episode's last step.

    Raises:
        ClusterGymError: a subclass names the cause, here and from every method.
    """

    # Of all environments; an object has those of its own, as the server names them.
    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}
    spec = hidden_spec

    def __init__(
        self,
        env_id: str,
        url: str | None = None,
        token: str | None = None,
        *,
        client: Client | None = None,
        timeout: float = 60.0,
        render_mode: str | None = None,
        obs: str | None = None,
        mask: Sequence[str] = ("info",),
        invalid: str = "noop",
        penalty: float | None = None,
        info: str | Sequence[str] = "metrics",
        copy: bool = True,
        kwargs: Mapping[str, Any] | None = None,
        client_options: Mapping[str, Any] | None = None,
        **env_kwargs: Any,
    ) -> None:
        self._closed = True  # until it is open, so that a failed __init__ leaves nothing to close
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}, want None or one of {self.metadata['render_modes']}")
        try:
            fields = open_fields(obs, mask, invalid, penalty, info, "disabled", kwargs, env_kwargs, render_mode)
            self._init = dict(
                env_id=env_id, url=url, token=token, client=client, timeout=timeout, render_mode=render_mode, obs=obs,
                mask=mask, invalid=invalid, penalty=penalty, info=info, copy=copy, kwargs=fields["kwargs"],
                client_options=client_options,
            )  # fmt: skip
            self._own = client is None
            self.client = client or Client(url, token, timeout, **(client_options or {}))
            try:
                self._private = self.client.private
                self._init["kwargs"] = fields["kwargs"] = resolve(fields["kwargs"], self._private)
                self.handle = opened(self.client, env_id, 1, fields, type(self).__name__)
                self.observation_space = parse_space(self.handle.obs_space)
                self.action_space = parse_space(self.handle.act_space)
            except BaseException:
                if self._own:
                    self.client.close()
                raise
        except UnknownKwargs:
            raise  # its text has no arguments in it
        except TypeError as e:
            if token is None and not (client_options or {}).get("headers"):
                raise
            # gymnasium.make adds all arguments, the token among them, to the message of a TypeError, and of no other error.
            raise ValueError(str(e)) from e
        self.render_mode = render_mode
        self.metadata = shown_as(type(self).metadata, self.handle)
        self.copy = copy
        self.metric_names = metric_names(self.handle)
        self._batch = Batch(self.observation_space, 1)
        self._discrete = type(self.action_space) is gym.spaces.Discrete
        self._mask: npt.NDArray[Any] | None = None
        self._masked = tuple(fields["mask"])
        self._blank = blank_info(fields["info"], self.metric_names, invalid)
        self._closed = False
        given = {key: value for key, value in self._init.items() if value != _DEFAULTS.get(key, ...)}
        self.spec = new_spec(self.handle, env_id, "clustergym.envs:RemoteEnv", given)

    @property
    def stats(self) -> Stats:
        """Counts, bytes and latencies of the session."""
        conn, stats = self.client._conn, self.client.stats
        if conn is not None:
            stats.bytes_in, stats.bytes_out = conn.bytes_in, conn.bytes_out
        return stats

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; returns its first observation and info."""
        super().reset(seed=seed)
        self._check_open()
        handle = self.handle
        call = handle.begin_reset(None if seed is None else int(seed), None, options)
        result = self._first(handle.result(call))
        handle.kept = None  # last, so that the same call after an interrupt before this gets the same reply
        return result

    def _first(self, reply: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        obs = reply.get("obs")
        try:
            self._batch.check(obs)
        except ProtocolError:
            self.handle.kept = None
            raise
        info = reply.get("info")
        self._keep_mask(obs, info)
        return self._batch.one(obs, 0, self.copy), row_info(info, 0, self._blank)

    def _keep_mask(self, obs: Any, info: Any) -> None:
        where = info if info and "action_mask" in info else obs
        self._mask = where.get("action_mask") if type(where) is dict else None

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action; returns observation, reward, terminated, truncated and info."""
        if self._closed:
            self._check_open()
        handle = self.handle
        if self._discrete:
            try:
                choice = index(action)
            except TypeError:
                choice = int(batch_action(self.action_space, action, 1)[0])
            call = handle.begin_index(choice)
        else:
            call = handle.begin_step(batch_action(self.action_space, action, 1))
        reply = handle.result(call)
        try:
            obs, info = reply["obs"], reply.get("info")
            reward, terminated, truncated = reply["r"].item(), reply["te"].item(), reply["tr"].item()
            self._batch.check(obs)
        except ProtocolError:
            handle.kept = None
            raise
        except (KeyError, AttributeError, ValueError) as e:
            handle.kept = None
            raise ProtocolError(f"step: the reply lacks {e}, or has more than one row") from e
        self._keep_mask(obs, info)
        infos = row_info(info, 0, self._blank, terminated or truncated)
        result = self._batch.one(obs, 0, self.copy), reward, terminated, truncated, infos
        handle.kept = None  # last, as in reset
        return result

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are legal now, bool [actions]; for several factors one after the other."""
        self._check_open()
        mask = self._mask
        if mask is None:
            mask = self.handle.request("masks").get("mask")
        if not isinstance(mask, np.ndarray):
            raise ClusterGymError(f"{self.handle.env} has no action masks")
        legal: npt.NDArray[np.bool_] = mask[0].astype(np.bool_)
        return legal

    def render(self) -> Any:
        """A picture if render_mode is ``"rgb_array"``: uint8 [height, width, 3], 480 by 640; text if it is ``"ansi"``; else
        None. The server draws it. Rendering changes nothing."""
        self._check_open()
        if self.render_mode is None:
            gym.logger.warn('render() needs a render mode, "rgb_array" or "ansi": make the environment with it')
            return None
        return frames(self.handle, [0], self.render_mode)[0]

    def snapshot(self) -> bytes:
        """The environment's whole state, random streams included. It can be restored into any environment of the same
        id and arguments on the same server."""
        self._check_open()
        return blob_of(self.handle.request("snapshot", {"ids": [0]}))

    def restore(self, blob: bytes) -> tuple[Any, dict[str, Any]]:
        """Continues from a snapshot; returns the observation and info that were current then."""
        self._check_open()
        handle = self.handle
        fields = {"h": handle.ensure(), "blob": blob}
        call = handle.begin("restore", request_head("restore", 2), fields_of(fields), True)
        result = self._first(handle.result(call))
        handle.kept = None
        return result

    def remote_call(self, method: str, args: Mapping[str, Any] | None = None) -> Any:
        """Calls a method of the environment: ``set_task``, ``get_task``, ``sample_tasks``, ``metrics``, ``heuristic``."""
        self._check_open()
        ret = self.handle.request("call", {"method": method, "args": dict(args or {}), "ids": [0]}).get("ret")
        return ret[0] if isinstance(ret, (list, np.ndarray)) and len(ret) == 1 else ret

    def advise(self, policy: str, *, budget: int | str | None = None) -> Any:
        """The action that a policy would take in the present state. Asking changes nothing.

        Args:
            policy: one of ``handle.meta["advise"]``: a rule, as ``"sjf@slots"``, or one that looks ahead, as
                ``"rollout:sjf@slots"``.
            budget: of a policy that looks ahead: a number of rollouts, or a time as ``"30ms"``, with which answers depend
                on the machine; None = 128 rollouts, or the server's most if that is less.

        Returns:
            An int, or an int64 array if the action has several factors.

        Raises:
            NeedsReset: the episode has ended, or none has begun.
            RemoteError: the policy is unknown, cannot act here or is not enabled, or the budget is out of range.
        """
        self._check_open()
        action = advised(self.handle, policy, budget, [0])[0]
        return int(action) if self._discrete else action

    def close(self) -> None:
        """Closes the environment, and its session if it has one of its own. Harmless if called twice."""
        if self._closed:
            return
        self._closed = True
        if self._own:
            self.client.close()
        else:
            self.handle.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClusterGymError(f"{self._init['env_id']} is closed")

    def __del__(self) -> None:
        # This must not wait. A client of its own ends its session when it is garbage-collected.
        self._closed = True

    def __copy__(self) -> RemoteEnv:
        twin: RemoteEnv = twin_of(self)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> RemoteEnv:
        twin: RemoteEnv = twin_of(self)
        memo[id(self)] = twin
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._init)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


guard(RemoteEnv)

_DEFAULTS: dict[str, Any] = dict(
    url=None, token=None, client=None, timeout=60.0, render_mode=None, obs=None, mask=("info",), invalid="noop",
    penalty=None, info="metrics", copy=True, kwargs={}, client_options=None,
)  # fmt: skip


def batch_action(space: gym.Space[Any], action: Any, n: int) -> Any:
    """n actions as the protocol sends them: one action is wrapped into a batch of one.

    Raises:
        TypeError: floats for a space of integers.
        ValueError: another shape.
    """
    if isinstance(space, gym.spaces.Dict):
        return {key: batch_action(sub, action[key], n) for key, sub in space.spaces.items()}
    a = np.asarray(action)
    if isinstance(space, gym.spaces.Box):
        a = a.astype(space.dtype, copy=False)
    elif a.dtype.kind not in "iu":
        raise TypeError(f"action has type {a.dtype}, want integers for {space}")
    want = (n, *(space.shape or ()))
    if a.shape != want:
        if n == 1 and a.shape == want[1:]:
            return a.reshape(want)
        raise ValueError(f"action has shape {a.shape}, want {want[1:] if n == 1 else want}")
    return a


def shown_as(general: Mapping[str, Any], handle: Handle) -> dict[str, Any]:
    """Gymnasium's metadata of the environments of a handle: how the server can show them. general is of all environments."""
    metadata = dict(general)
    modes, fps = handle.meta.get("render_modes"), handle.meta.get("render_fps")
    if isinstance(modes, list):
        metadata["render_modes"] = [str(mode) for mode in modes]
    if isinstance(fps, (int, float)) and fps > 0:
        metadata["render_fps"] = fps
    return metadata


def frames(handle: Handle, ids: Sequence[int], mode: str) -> list[Any]:
    """The pictures of some of a handle's environments, one for each. Those that do not fit into one reply come in several."""
    try:
        reply = handle.request("render", {"ids": list(ids), "mode": mode})
    except TooLarge:
        if len(ids) == 1:
            raise
        half = len(ids) // 2
        return frames(handle, ids[:half], mode) + frames(handle, ids[half:], mode)
    shown = reply.get("render")
    if not isinstance(shown, (list, np.ndarray)) or len(shown) != len(ids):
        raise ProtocolError(f"render: want {len(ids)} frames, got {type(shown).__name__}")
    return [f.copy() if isinstance(f, np.ndarray) else f for f in shown]


def blob_of(reply: Mapping[str, Any]) -> bytes:
    """The snapshot in a reply."""
    blob = reply.get("blob")
    if not isinstance(blob, bytes):
        raise ProtocolError(f"snapshot: blob is {type(blob).__name__}, want bytes")
    return blob
