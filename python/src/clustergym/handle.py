"""Open environments of a session, with the protocol's own names and without Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._memory import Region
from .client import fields_of, request_head
from .codec import Array, array_prefix, encode
from .errors import ClusterGymError, ProtocolError

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Handle"]

_ONE_INDEX = ("index",)


class Handle:
    """n environments of one id, opened in a client's session.

    If the client had to begin a new session (after a fork, in another process, after a loss that could not be resumed), the
    next call opens the environments again. They then need a reset, and raise NeedsReset until they get one.

    Args:
        client: the session.
        env: the environment's id, as ``"JobSelect-v1"``.
        n: how many.
        fields: further fields of the protocol's ``open``: kwargs, autoreset, obs, mask, invalid, info, ….
        share: read large observations from the memory of a server that shares it with this process. The observations of a
            reply are then valid until the next request that changes them, which must not be posted before they are read.

    Attributes:
        obs_space, act_space: the spaces of one environment, as the protocol describes them.
        spec: id, version, max_episode_steps, reward_threshold, reward_range, scenario_sha.
        meta: the field ``meta`` of the server's reply (docs/wire.md).
        tasks: the parameters of its task family, None if it has none.
    """

    def __init__(
        self, client: Client, env: str, n: int = 1, fields: Mapping[str, Any] | None = None, share: bool = False
    ) -> None:
        self.client = client
        self.env = env
        self.n = n
        self.outstanding = 0
        self.last = 0  # id of the last reply
        self.h = 0
        self._generation = -1
        self._fields = {key: value for key, value in (fields or {}).items() if value is not None}
        self._share = share
        self._region: Region | None = None
        self._closed = False
        self._step_key: tuple[Any, ...] | None = None
        self._step_head = self._step_start = b""
        self.ensure()

    def ensure(self) -> int:
        """The handle's number. Opens the handle first if this session has not yet."""
        if self._generation == self.client.generation and self.client._conn is not None:
            return self.h
        if self._closed:
            raise ClusterGymError(f"{self.env} is closed")
        self.client._ensure()
        generation = self.client.generation
        if self._generation == generation:
            return self.h
        share = {"shm": True} if self._share and self.client.shares_memory else {}
        reply = self.client.request("open", {"env": self.env, "n": self.n, **self._fields, **share})
        h = reply.get("h")
        if not isinstance(h, int):
            raise ProtocolError(f"open: handle is {h!r}, want an integer")
        self.obs_space, self.act_space = reply.get("obs_space"), reply.get("act_space")
        spec, meta = reply.get("spec"), reply.get("meta")
        self.spec: dict[str, Any] = spec if isinstance(spec, dict) else {}
        self.meta: dict[str, Any] = meta if isinstance(meta, dict) else {}
        self.tasks = reply.get("tasks")
        shm = reply.get("shm")
        self._region = Region(shm, self.n, self.obs_space) if share and isinstance(shm, dict) else None
        self.h, self.outstanding, self.last = h, 0, 0
        self._generation = generation
        self._step_key = None
        self.client._handles[h] = self
        return h

    def request(self, op: str, fields: Mapping[str, Any] | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Sends a request for these environments and waits for its reply."""
        return self._whole(self.client.request(op, fields, timeout, self))

    def post_reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        which: Array | None = None,
        options: Any = None,
    ) -> int:
        """Posts a reset of all environments, or of those for which ``which`` is true; wait for it with :meth:`wait`."""
        fields: dict[str, Any] = {}
        if seed is not None:
            fields["seed"] = seed
        if which is not None:
            fields["which"] = which
        if options:
            fields["options"] = options
        return self.client.post("reset", fields, self)

    def post_step(self, actions: Any, op: str = "step", ids: Array | None = None) -> int:
        """Posts a step.

        Args:
            actions: an array of one action per environment, or a map of such arrays.
            op: ``"step"``, or ``"send"`` for environments opened with ``recv="any"``.
            ids: the environments that step, in the order of actions; None = all.
        """
        if self._generation != self.client.generation or self.client._conn is None:
            self.ensure()
        if ids is None and type(actions) is np.ndarray:
            # Every step has the same bytes, except for the actions.
            if self._step_key is None or self._step_key != (op, actions.dtype, actions.shape):
                start = fields_of({"h": self.h}) + encode("a") + array_prefix(actions.dtype, actions.shape)
                self._step_key = (op, actions.dtype, actions.shape)
                self._step_start, self._step_head = start, request_head(op, 2)
            return self.client.post_packed(op, self._step_head, self._step_start + actions.tobytes(), self)
        fields = {"h": self.h, "a": actions}
        if ids is not None:
            fields["ids"] = ids
        return self.client.post_packed(op, request_head(op, len(fields)), fields_of(fields), self)

    def post_index(self, action: int) -> int:
        """Posts a step of one environment with a single discrete action."""
        if self._generation != self.client.generation or self.client._conn is None:
            self.ensure()
        if self._step_key != _ONE_INDEX:
            self._step_key = _ONE_INDEX
            self._step_start = fields_of({"h": self.h}) + encode("a") + array_prefix(np.dtype(np.int64), (1,))
            self._step_head = request_head("step", 2)
        data = action.to_bytes(8, "little", signed=True)
        return self.client.post_packed("step", self._step_head, self._step_start + data, self)

    def wait(self, rid: int, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the reply to a posted request."""
        return self._whole(self.client.wait(rid, timeout))

    def _whole(self, reply: dict[str, Any]) -> dict[str, Any]:
        """The reply with its observations, which may be in shared memory."""
        if self._region is not None and "obs" in reply:
            reply["obs"] = self._region.take(reply["obs"], reply.get("ids"))
        return reply

    def close(self) -> None:
        """Closes the environments on the server. Harmless if called twice, or if the connection is gone."""
        if self._closed:
            return
        self._closed = True
        client = self.client
        if client.closed or client._conn is None or client.generation != self._generation:
            return
        try:
            client.request("close", {"h": self.h}, timeout=min(5.0, client.timeout))
        except Exception:
            pass  # the end of the session closes them too

    def __getstate__(self) -> dict[str, Any]:
        return {
            "client": self.client, "env": self.env, "n": self.n, "fields": self._fields,
            "share": self._share, "closed": self._closed,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.client, self.env, self.n = state["client"], state["env"], state["n"]
        self._fields, self._share, self._closed = state["fields"], state["share"], state["closed"]
        self._region = None
        self.outstanding = self.last = self.h = 0
        self._generation = -1
        self._step_key = None
        self._step_head = self._step_start = b""
        self.obs_space = self.act_space = self.tasks = None
        self.spec, self.meta = {}, {}
        if not self._closed:
            self.ensure()
