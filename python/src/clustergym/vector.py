"""n remote environments as a :class:`gymnasium.vector.VectorEnv`: one round trip steps them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ._copies import guard, twin_of
from ._files import resolve
from ._session import Call, fields_of, request_head
from .client import Client, Stats
from .codec import Array
from .envs import (
    RemoteEnv,
    advised,
    batch_action,
    blob_of,
    frames,
    hidden_spec,
    metric_names,
    new_spec,
    open_fields,
    opened,
    shown_as,
    step_limit,
)
from .errors import ClusterGymError, ProtocolError, RemoteError, error_from_faults
from .infos import blank_info, spread_info, vector_info
from .spaces import Batch, parse_space

__all__ = ["RemoteVectorEnv"]

_MODES = {
    AutoresetMode.NEXT_STEP: "next_step",
    AutoresetMode.SAME_STEP: "same_step",
    AutoresetMode.DISABLED: "disabled",
}


class RemoteVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """n environments on a server, stepped together.

    Behaves as Gymnasium's own vector environments do, in all three autoreset modes and in the infos: every ``key``, and the
    keys are always the same, comes with a ``_key`` that says which rows have it. In SAME_STEP the true last observation and
    info are in ``final_obs`` and ``final_info``; ``options={"reset_mask": …}`` resets some of the environments. Environment i
    of ``reset(seed=s)`` runs on seed s + i.

    With ``recv="any"`` environments need not wait for each other: :meth:`send` actions for some, :meth:`recv` the first
    ``batch`` that have finished.

    Args:
        env_id: as ``"JobSelect-v2"``.
        num_envs: how many.
        autoreset_mode: when an environment whose episode has ended begins the next one.
        recv: ``"all"``, or ``"any"`` for :meth:`send` and :meth:`recv`.
        batch: with ``recv="any"``: how many :meth:`recv` returns.
        copy: False returns read-only arrays without copying. If the server shares its memory, they change with the next
            step or reset, as those of Gymnasium's vector environments do.
        max_episode_steps: what ``gymnasium.make_vec`` hands over: the limit that the server keeps, or a later one, which it
            never reaches.

    The other arguments, attributes and errors are those of :class:`~clustergym.RemoteEnv`.
    """

    metadata: dict[str, Any] = RemoteEnv.metadata
    spec = hidden_spec

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        url: str | None = None,
        token: str | None = None,
        *,
        client: Client | None = None,
        timeout: float = 60.0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        obs: str | None = None,
        mask: Sequence[str] = ("info",),
        invalid: str = "noop",
        penalty: float | None = None,
        info: str | Sequence[str] = "metrics",
        recv: str = "all",
        batch: int | None = None,
        copy: bool = True,
        max_episode_steps: int | None = None,
        kwargs: Mapping[str, Any] | None = None,
        client_options: Mapping[str, Any] | None = None,
        **env_kwargs: Any,
    ) -> None:
        self.closed = True  # until it is open, so that a failed __init__ leaves nothing to close
        mode = autoreset_mode if isinstance(autoreset_mode, AutoresetMode) else AutoresetMode(autoreset_mode)
        fields = open_fields(obs, mask, invalid, penalty, info, _MODES[mode], kwargs, env_kwargs, render_mode)
        if recv != "all":
            fields["recv"], fields["batch"] = recv, batch or num_envs
        self._init = dict(
            env_id=env_id, num_envs=num_envs, url=url, token=token, client=client, timeout=timeout, autoreset_mode=mode,
            render_mode=render_mode, obs=obs, mask=mask, invalid=invalid, penalty=penalty, info=info, recv=recv,
            batch=batch, copy=copy, kwargs=fields["kwargs"], client_options=client_options,
        )  # fmt: skip
        self._own = client is None
        self.client = client or Client(url, token, timeout, **(client_options or {}))
        try:
            self._private = self.client.private
            self._init["kwargs"] = fields["kwargs"] = resolve(fields["kwargs"], self._private)
            self.handle = opened(self.client, env_id, num_envs, fields, type(self).__name__, share=recv == "all")
            self.single_observation_space = parse_space(self.handle.obs_space)
            self.single_action_space = parse_space(self.handle.act_space)
            limit = step_limit(self.handle)
            if max_episode_steps is not None and (limit is None or max_episode_steps < limit):
                raise ValueError(
                    f"max_episode_steps is {max_episode_steps}: the server truncates episodes of {env_id} "
                    f"{f'after {limit} steps' if limit else 'at no number of steps'}, and the environment's argument "
                    "max_steps alone, where it has one, changes that of a batch"
                )
        except BaseException:
            if self._own:
                self.client.close()
            raise
        self.num_envs = num_envs
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**shown_as(type(self).metadata, self.handle), "autoreset_mode": mode}
        self.autoreset_mode = mode  # TorchRL looks for it here, as in Gymnasium's own vector environments
        self.render_mode = render_mode
        self.copy = copy
        self.metric_names = metric_names(self.handle)
        self.info = fields["info"]
        self._blank = blank_info(self.info, self.metric_names, invalid)
        # A map of returns and lengths comes with the ends of episodes only, as that of Gymnasium's RecordEpisodeStatistics:
        # TorchRL takes no maps among the infos of a batch.
        self._blank.pop("episode", None)
        self._batch = Batch(self.single_observation_space, num_envs)
        self._partial: dict[int, Batch] = {num_envs: self._batch}
        self._plain = isinstance(self.single_action_space, (gym.spaces.Discrete, gym.spaces.MultiDiscrete))
        self._action_shape = (num_envs, *(self.single_action_space.shape or ()))
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._obs: Any = None  # the last observations, read-only; a partial reset returns them too
        self._mask: Array | None = None
        self._sent: list[Call] = []
        self.closed = False
        spec = new_spec(self.handle, env_id, "clustergym.envs:RemoteEnv", {"env_id": env_id})
        spec.vector_entry_point = "clustergym.vector:RemoteVectorEnv"
        self.spec = spec

    @property
    def stats(self) -> Stats:
        """Counts, bytes and latencies of the session."""
        conn, stats = self.client._conn, self.client.stats
        if conn is not None:
            stats.bytes_in, stats.bytes_out = conn.bytes_in, conn.bytes_out
        return stats

    # Resetting.

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every environment, or in those of ``options["reset_mask"]`` (bool [num_envs]).

        Args:
            seed: None, s for s, s+1, …, or one seed (or None) per environment.
            options: for all environments; besides ``reset_mask`` the environment's own.
        """
        self._check_open()
        if seed is None or isinstance(seed, (int, np.integer)):
            seed = None if seed is None else int(seed)
            super().reset(seed=seed)
            seeds: Any = seed
        else:
            seeds = [None if s is None else int(s) for s in seed]
            if len(seeds) != self.num_envs:
                raise ValueError(f"{len(seeds)} seeds, want one for each of {self.num_envs} environments")
        which: Array | None = None
        if options is not None and "reset_mask" in options:
            options = dict(options)
            which = options.pop("reset_mask")
            if not isinstance(which, np.ndarray) or which.dtype != np.bool_ or which.shape != (self.num_envs,):
                raise ValueError(f"options['reset_mask'] must be an array of bool [{self.num_envs}], got {which!r}")
            if not which.any():
                raise ValueError("options['reset_mask'] names no environment")
            if isinstance(seeds, list):
                seeds = [s for s, asked in zip(seeds, which) if asked]
            if which.all():
                which = None
        reply = self.handle.result(self.handle.begin_reset(seeds, which, options))
        try:
            result = self._reset_some(reply, which) if which is not None else (self._all(reply), self._infos(reply))
        except ProtocolError:
            self.handle.kept = None
            raise
        self._raise_faults(reply, "reset", result)
        self.handle.kept = None  # last, so that the same call after an interrupt before this gets the same reply
        return result

    def _raise_faults(self, reply: Mapping[str, Any], op: str, result: Any) -> None:
        if "fault" in reply:
            error = error_from_faults(reply["fault"], op, result)
            self.handle.kept = None
            raise error

    def _reset_some(self, reply: Mapping[str, Any], which: Array) -> tuple[Any, dict[str, Any]]:
        rows = np.flatnonzero(which)
        obs = reply.get("obs")
        part = self._rows_batch(len(rows))
        part.check(obs)
        if self._obs is None:
            self._obs = self._zeros()
        self._obs = _replace(self._obs, obs, rows)
        infos = spread_info(reply.get("info"), rows, self.num_envs, self._blank)
        mask = infos.get("action_mask")
        if mask is not None and self._mask is not None:
            self._mask = self._mask.copy()
            self._mask[rows] = mask[rows]
        elif mask is not None:
            self._mask = mask.copy()
        return self._batch.all(self._obs, True), infos

    def _rows_batch(self, n: int) -> Batch:
        found = self._partial.get(n)
        if found is None:
            found = self._partial[n] = Batch(self.single_observation_space, n)
        return found

    def _zeros(self) -> Any:
        return gym.vector.utils.create_empty_array(self.single_observation_space, self.num_envs)

    def _all(self, reply: Mapping[str, Any]) -> Any:
        obs = reply.get("obs")
        returned = self._batch.all(obs, self.copy)
        self._obs = obs
        return returned

    def _infos(self, reply: Mapping[str, Any]) -> dict[str, Any]:
        info = reply.get("info")
        self._mask = None
        if info:
            self._mask = info.get("action_mask")
        if self._mask is None and type(self._obs) is dict:
            self._mask = self._obs.get("action_mask")
        return vector_info(info, self.num_envs, None, self._blank)

    # Stepping.

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes one action in every environment; returns observations, rewards (float64 [num_envs]), terminations and
        truncations (bool [num_envs]) and infos."""
        self._begin_step(actions)
        result = self._step_result(None)
        self.handle.kept = None
        return result

    def step_async(self, actions: Any) -> None:
        """Sends the actions and returns at once; :meth:`step_wait` has the result."""
        self._begin_step(actions)
        self.handle.apart = True

    def _begin_step(self, actions: Any) -> None:
        if self.closed:
            self._check_open()
        handle = self.handle
        if handle.apart and handle.kept is not None and handle.kept.generation == self.client.generation:
            raise ClusterGymError("step_async: the last step was not waited for")
        handle.begin_step(self._actions(actions, self.num_envs))

    def _actions(self, actions: Any, n: int) -> Any:
        if self._plain and type(actions) is np.ndarray and actions.dtype.kind in "iu" and n == self.num_envs:
            if actions.shape == self._action_shape:
                return actions
        return batch_action(self.single_action_space, actions, n)

    def step_wait(self, timeout: float | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for the step that :meth:`step_async` began, timeout seconds at most (None: the client's). If that time is
        over, or the wait is interrupted, it can be called again."""
        result = self._step_result(timeout)
        self.handle.kept = None
        return result

    def _step_result(self, timeout: float | None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        handle = self.handle
        call = handle.kept
        if call is None or call.op != "step":
            raise ClusterGymError("step_wait: there is no step to wait for")
        handle.apart = False
        reply = handle.result(call, timeout)
        n = self.num_envs
        try:
            obs = self._all(reply)
            infos = self._infos(reply)
            fin = reply.get("fin")
            if fin and self._same_step:
                self._add_final(infos, fin, n)
            result = (obs, *self._flags(reply, n), infos)
        except ProtocolError:
            handle.kept = None
            raise
        self._raise_faults(reply, "step", result)
        return result

    def _flags(self, reply: Mapping[str, Any], n: int) -> tuple[Array, Array, Array]:
        try:
            r, te, tr = reply["r"], reply["te"], reply["tr"]
            if not r.shape == te.shape == tr.shape == (n,):
                raise ProtocolError(f"step: r, te, tr have shapes {r.shape}, {te.shape}, {tr.shape}, want ({n},)")
        except (KeyError, AttributeError) as e:
            raise ProtocolError(f"step: the reply lacks {e}") from e
        if self.copy:
            return r.copy(), te.copy(), tr.copy()
        return r, te, tr

    def _add_final(self, infos: dict[str, Any], fin: Mapping[str, Any], n: int) -> None:
        try:
            rows = np.asarray(fin["ids"])
            obs = fin["obs"]
        except KeyError as e:
            raise ProtocolError(f"step: fin lacks {e}") from e
        part = self._rows_batch(len(rows))
        part.check(obs)
        final = np.full(n, None, dtype=object)
        mask = np.zeros(n, np.bool_)
        mask[rows] = True
        for i, row in enumerate(rows):
            final[row] = part.one(obs, i, True)
        infos["final_obs"], infos["_final_obs"] = final, mask
        infos["final_info"] = spread_info(fin.get("info"), rows, n, self._blank)
        infos["_final_info"] = mask.copy()

    # Stepping asynchronously.

    def send(self, actions: Any, ids: Sequence[int] | Array | None = None) -> None:
        """Sends actions without waiting (``recv="any"``).

        Args:
            actions: one per environment of ids, in their order.
            ids: indices of the environments that step; None = all.
        """
        self._check_open()
        rows = None if ids is None else np.asarray(ids, dtype=np.int32)
        n = self.num_envs if rows is None else len(rows)
        call = self.handle.begin_step(self._actions(actions, n), "send", rows)
        if call not in self._sent:
            self._sent.append(call)
        self.handle.kept = None
        if len(self._sent) > 2:
            # Replies to sends are read on the way; a refusal is raised here at the latest.
            self._check_sent(1, None)

    def _check_sent(self, most: int, timeout: float | None) -> None:
        """Waits for replies to the oldest sends."""
        while self._sent and most > 0:
            call = self._sent[0]
            try:
                if call.generation == self.client.generation:
                    self.client.result(call, self.client.timeout if timeout is None else timeout)
            except RemoteError:
                self._sent.remove(call)
                raise
            self._sent.remove(call)
            most -= 1

    def recv(self, timeout: float | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """The first ``batch`` environments that have finished a step, in the order in which they did.

        ``infos["env_id"]`` (int [batch]) names them; everything else is in their order. If this times out or is interrupted,
        it can be called again.
        """
        self._check_open()
        handle = self.handle
        fields = {"h": handle.ensure()}
        call = handle.begin("recv", request_head("recv", 1), fields_of(fields))
        self._check_sent(len(self._sent), timeout)
        reply = handle.result(call, timeout)
        try:
            ids = np.asarray(reply.get("ids"))
            n = len(ids)
            obs = self._rows_batch(n).all(reply.get("obs"), self.copy)
            infos = vector_info(reply.get("info"), n, None, self._blank)
            infos["env_id"] = ids.astype(np.int64)
            fin = reply.get("fin")
            if fin and self._same_step:
                # fin names its rows by environment; here they get the positions of their environments in this batch.
                place = {int(env): i for i, env in enumerate(ids)}
                self._add_final(infos, {**fin, "ids": [place[int(env)] for env in fin["ids"]]}, n)
            result = (obs, *self._flags(reply, n), infos)
        except ProtocolError:
            handle.kept = None
            raise
        self._raise_faults(reply, "recv", result)
        handle.kept = None
        return result

    # The rest.

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are legal now, bool [num_envs, actions]."""
        self._check_open()
        mask = self._mask
        if mask is None:
            mask = self.handle.request("masks").get("mask")
        if not isinstance(mask, np.ndarray):
            raise ClusterGymError(f"{self.handle.env} has no action masks")
        return mask.astype(np.bool_)

    def render(self) -> tuple[Any, ...] | None:
        """One picture or text for each environment, as :meth:`RemoteEnv.render` returns it, or None without a render mode."""
        self._check_open()
        if self.render_mode is None:
            gym.logger.warn('render() needs a render mode, "rgb_array" or "ansi": make the environments with it')
            return None
        return tuple(frames(self.handle, range(self.num_envs), self.render_mode))

    def snapshot(self, ids: Sequence[int] | None = None) -> bytes:
        """The whole state of the environments (or of some), random streams included, as one blob."""
        self._check_open()
        return blob_of(self.handle.request("snapshot", {"ids": list(ids)} if ids is not None else {}))

    def restore(self, blob: bytes, ids: Sequence[int] | None = None) -> tuple[Any, dict[str, Any]]:
        """Continues from a snapshot of as many environments; returns what was current then, as a reset does."""
        self._check_open()
        fields: dict[str, Any] = {"blob": blob} if ids is None else {"ids": list(ids), "blob": blob}
        reply = self.handle.request("restore", fields)
        if ids is None:
            return self._all(reply), self._infos(reply)
        rows, obs = np.asarray(ids), reply.get("obs")
        self._rows_batch(len(rows)).check(obs)
        self._obs = _replace(self._zeros() if self._obs is None else self._obs, obs, rows)
        self._mask = None
        return self._batch.all(self._obs, True), spread_info(reply.get("info"), rows, self.num_envs, self._blank)

    def remote_call(self, method: str, args: Mapping[str, Any] | None = None, ids: Sequence[int] | None = None) -> Any:
        """Calls a method of the environments (or of some): ``set_task``, ``get_task``, ``sample_tasks``, ``metrics``,
        ``heuristic``; returns a list."""
        self._check_open()
        fields: dict[str, Any] = {"method": method, "args": dict(args or {})}
        if ids is not None:
            fields["ids"] = list(ids)
        return self.handle.request("call", fields).get("ret")

    def advise(
        self, policy: str, *, budget: int | str | None = None, ids: Sequence[int] | None = None
    ) -> npt.NDArray[np.int64]:
        """The actions that a policy would take now in all environments, or in those of ids: int64, one for each, ready for
        :meth:`step`. Asking changes nothing. See :meth:`clustergym.RemoteEnv.advise`.

        With autoreset ``next_step``, an environment whose episode has ended has nothing to decide and answers 0, which its
        next step ignores."""
        self._check_open()
        return advised(self.handle, policy, budget, ids)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments, and their session if they have one of their own."""
        if self._own:
            self.client.close()
        else:
            self.handle.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ClusterGymError(f"{self._init['env_id']} is closed")

    def __del__(self) -> None:
        # This must not wait. A client of its own ends its session when it is garbage-collected.
        self.closed = True

    def __copy__(self) -> RemoteVectorEnv:
        twin: RemoteVectorEnv = twin_of(self)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> RemoteVectorEnv:
        twin: RemoteVectorEnv = twin_of(self)
        memo[id(self)] = twin
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._init)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


guard(RemoteVectorEnv)


def _replace(old: Any, new: Any, rows: Array) -> Any:
    """A copy of a batch with some rows replaced."""
    if isinstance(old, dict):
        return {key: _replace(old[key], new[key], rows) for key in old}
    if isinstance(old, tuple):
        if isinstance(new, tuple) or not rows.size:
            return tuple(_replace(o, n, rows) for o, n in zip(old, new))
        raise ProtocolError("a partial reset of observations that are no arrays")
    out = old.copy()
    out[rows] = new
    return out
