"""Open environments of a session, with the protocol's own names and without Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._memory import Region
from ._session import Call, Session, fields_of, request_head
from .codec import Array, array_prefix, encode
from .errors import ClusterGymError, ProtocolError, RemoteError, Unfinished

__all__ = ["Handle"]

_ONE_INDEX = ("index",)
# Operations that change environments: whether one happened must be known before the next.
_MOVES = frozenset(("reset", "step", "send", "recv", "restore"))


class Handle:
    """n environments of one id, opened in a client's session.

    If the client had to begin a new session (after a fork, in another process, after a loss that could not be resumed), the
    next call opens the environments again. They then need a reset, and raise NeedsReset until they get one.

    A call that was interrupted or timed out after its request was sent stays in ``kept``. The same call again returns its
    result, a reset of all environments drops it, and every other call raises Unfinished. So no step is lost or done twice.

    Args:
        client: the session.
        env: the environment's id, as ``"JobSelect-v2"``.
        n: how many.
        fields: further fields of the protocol's ``open``: kwargs, autoreset, obs, mask, invalid, info, ….
        share: read large observations from the memory of a server that shares it with this process. The observations of a
            reply are then valid until the next request that changes them, which must not be posted before they are read.

    Attributes:
        obs_space, act_space: the spaces of one environment, as the protocol describes them.
        spec: id, version, max_episode_steps, reward_threshold, reward_range, scenario_sha.
        meta: the field ``meta`` of the server's reply (docs/reference/wire.md).
        tasks: the parameters of its task family, None if it has none.
        kept: the request of :meth:`begin` whose result has not been used yet.
        apart: that this is on purpose, since sending and waiting are separate calls.
    """

    def __init__(
        self, client: Session, env: str, n: int = 1, fields: Mapping[str, Any] | None = None, share: bool = False
    ) -> None:
        self.client = client
        self.env = env
        self.n = n
        self.last = 0  # id of the last reply
        self.h = 0
        self.kept: Call | None = None
        self.apart = False
        self._opening: Call | None = None
        self._generation = -1
        self._fields = {key: value for key, value in (fields or {}).items() if value is not None}
        self._share = share
        self._region: Region | None = None
        self._closed = False
        self._step_key: tuple[Any, ...] | None = None
        self._step_head = self._step_start = b""
        try:
            self.ensure()
        except BaseException:
            if self._opening is not None:
                client.abandon(self._opening)
            raise

    @property
    def outstanding(self) -> int:
        """How many requests are unanswered."""
        return self.client.pending(self)

    def ensure(self) -> int:
        """The handle's number. Opens the handle first if this session has not yet."""
        client = self.client
        if client.holds(self._generation):
            return self.h
        if self._closed:
            raise ClusterGymError(f"{self.env} is closed")
        client.connect()
        generation = client.generation
        if self._generation == generation:
            return self.h
        if self._opening is None or self._opening.generation != generation:
            share = {"shm": True} if self._share and client.shares_memory else {}
            self._opening = client.call("open", {"env": self.env, "n": self.n, **self._fields, **share})
        opening = self._opening
        try:
            if opening.rid == 0:
                client.post_call(opening, client.timeout)
            reply = client.result(opening, client.timeout)
        except RemoteError:
            self._opening = None
            raise
        h = reply.get("h")
        if not isinstance(h, int):
            self._opening = None
            raise ProtocolError(f"open: handle is {h!r}, want an integer")
        self.obs_space, self.act_space = reply.get("obs_space"), reply.get("act_space")
        spec, meta = reply.get("spec"), reply.get("meta")
        self.spec: dict[str, Any] = spec if isinstance(spec, dict) else {}
        self.meta: dict[str, Any] = meta if isinstance(meta, dict) else {}
        self.tasks = reply.get("tasks")
        shm = reply.get("shm")
        self._region = Region(shm, self.n, self.obs_space) if self._share and isinstance(shm, dict) else None
        self.h, self.last = h, 0
        self._step_key = self.kept = None
        client.enter(h, self)
        self._generation = opening.generation
        self._opening = None
        return h

    def begin(self, op: str, head: bytes, tail: bytes, fresh: bool = False) -> Call:
        """Posts a request whose result must be used once. It stays in ``kept`` until the caller has done that and clears it.

        If an equal request is kept from an earlier call, that one takes its place. A fresh request makes an earlier one
        irrelevant.

        Raises:
            Unfinished: another request is kept.
        """
        client = self.client
        kept = self.kept
        if kept is not None:
            if kept.rid == 0 or kept.generation != client.generation:
                pass  # it was never sent, or went down with its session
            elif kept.op == op and kept.tail == tail and kept.head == head:
                self.apart = False
                return kept
            elif fresh and kept.op != "recv":  # whose rows would be lost
                client.abandon(kept)
            else:
                raise self._unfinished(op, kept)
        self.apart = False
        self.kept = call = Call(op, head, tail, self)
        try:
            client.post_call(call, client.timeout)
        except Exception:
            if call.rid == 0:
                self.kept = None
            raise
        return call

    def _unfinished(self, op: str, kept: Call) -> Unfinished:
        what = "it may be done already: call it again with the same arguments for its result, or reset everything"
        return Unfinished("needs_reset", f"an earlier {kept.op} was interrupted or timed out, and {what}", op=op)

    def result(self, call: Call, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the reply to a request of :meth:`begin`. The caller clears ``kept`` when it has used the reply."""
        client = self.client
        try:
            reply = client.result(call, client.timeout if timeout is None else timeout)
        except (RemoteError, ProtocolError):
            if call.reply is not None:  # the server has refused, and done nothing
                self.kept = None
            raise
        return self._whole(reply) if self._region is not None else reply

    def request(self, op: str, fields: Mapping[str, Any] | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Sends a request for these environments and waits for its reply."""
        fields = {"h": self.ensure(), **(fields or {})}
        if op not in _MOVES:
            kept = self.kept
            if kept is not None and not self.apart and kept.rid != 0 and kept.generation == self.client.generation:
                raise self._unfinished(op, kept)
            call = Call(op, request_head(op, len(fields)), fields_of(fields), self)
            return self.client.ask(call, timeout)
        fresh = op in ("reset", "restore") and fields.keys().isdisjoint(("ids", "which"))
        call = self.begin(op, request_head(op, len(fields)), fields_of(fields), fresh)
        reply = self.result(call, timeout)
        self.kept = None
        return reply

    def begin_reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        which: Array | None = None,
        options: Any = None,
    ) -> Call:
        """:meth:`begin` of a reset of all environments, or of those for which ``which`` is true."""
        fields: dict[str, Any] = {"h": self.ensure()}
        if seed is not None:
            fields["seed"] = seed
        if which is not None:
            fields["which"] = which
        if options:
            fields["options"] = options
        return self.begin("reset", request_head("reset", len(fields)), fields_of(fields), which is None)

    def begin_step(self, actions: Any, op: str = "step", ids: Array | None = None) -> Call:
        """:meth:`begin` of a step.

        Args:
            actions: an array of one action per environment, or a map of such arrays.
            op: ``"step"``, or ``"send"`` for environments opened with ``recv="any"``.
            ids: the environments that step, in the order of actions; None = all.
        """
        if not self.client.holds(self._generation):
            self.ensure()
        if ids is None and type(actions) is np.ndarray:
            # Every step has the same bytes, except for the actions.
            if self._step_key is None or self._step_key != (op, actions.dtype, actions.shape):
                self._step_key = None
                self._step_start = fields_of({"h": self.h}) + encode("a") + array_prefix(actions.dtype, actions.shape)
                self._step_head = request_head(op, 2)
                self._step_key = (op, actions.dtype, actions.shape)
            return self.begin(op, self._step_head, self._step_start + actions.tobytes())
        fields = {"h": self.h, "a": actions}
        if ids is not None:
            fields["ids"] = ids
        return self.begin(op, request_head(op, len(fields)), fields_of(fields))

    def begin_index(self, action: int) -> Call:
        """:meth:`begin` of a step of one environment with a single discrete action."""
        if not self.client.holds(self._generation):
            self.ensure()
        if self._step_key != _ONE_INDEX:
            self._step_key = None
            self._step_start = fields_of({"h": self.h}) + encode("a") + array_prefix(np.dtype(np.int64), (1,))
            self._step_head = request_head("step", 2)
            self._step_key = _ONE_INDEX
        return self.begin("step", self._step_head, self._step_start + action.to_bytes(8, "little", signed=True))

    def post_reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        which: Array | None = None,
        options: Any = None,
    ) -> int:
        """Posts a reset as :meth:`begin_reset` does, and returns its id for :meth:`wait`. Several may be under way."""
        return self._post(self.begin_reset(seed, which, options))

    def post_step(self, actions: Any, op: str = "step", ids: Array | None = None) -> int:
        """Posts a step as :meth:`begin_step` does, and returns its id for :meth:`wait`. Several may be under way."""
        return self._post(self.begin_step(actions, op, ids))

    def _post(self, call: Call) -> int:
        """Gives up a request to whoever waits for its id."""
        self.client.by_id(call)
        self.kept = None
        return call.rid

    def wait(self, rid: int, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the reply to a posted request."""
        return self._whole(self.client.wait(rid, timeout))

    def _whole(self, reply: dict[str, Any]) -> dict[str, Any]:
        """The reply with its observations, which may be in shared memory."""
        if self._region is not None and "obs" in reply:
            return {**reply, "obs": self._region.take(reply["obs"], reply.get("ids"))}
        return reply

    def close(self) -> None:
        """Closes the environments on the server. Harmless if called twice, or if the connection is gone."""
        if self._closed:
            return
        self._closed = True
        client = self.client
        if client.closed or not client.holds(self._generation):
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
        self.last = self.h = 0
        self.kept = self._opening = None
        self.apart = False
        self._generation = -1
        self._step_key = None
        self._step_head = self._step_start = b""
        self.obs_space = self.act_space = self.tasks = None
        self.spec, self.meta = {}, {}
        if not self._closed:
            self.ensure()
