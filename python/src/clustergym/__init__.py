"""ClusterGym from Python: environments of GPU-cluster scheduling behind Gymnasium's interface.

    >>> import gymnasium, clustergym
    >>> env = gymnasium.make("clustergym/JobSelect-v2")
    >>> envs = gymnasium.make_vec("clustergym/JobSelect-v2", num_envs=64)

The environments run in ``gymctl serve``: one that this process starts itself, or one named by ``url=`` or
``$CLUSTERGYM_URL``. :class:`Client` implements the protocol and needs only NumPy; everything else needs Gymnasium.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._secrets import secret
from ._version import __version__
from .checkpoint import Policy, load
from .client import Client, Stats
from .decision import decide
from .errors import (
    BadAction,
    BadFrame,
    BadHandle,
    BadKwargs,
    BadRequest,
    BadSeed,
    Busy,
    Capacity,
    ClusterGymError,
    ConnectionLost,
    Draining,
    DrainWarning,
    EnvFault,
    Forbidden,
    GymctlError,
    InternalError,
    NeedsReset,
    NotPending,
    ProtocolError,
    ProtoMismatch,
    RemoteError,
    ReplyTimeout,
    SchedulerError,
    ServerDied,
    ServerNotFound,
    ServerStartError,
    SessionExpired,
    SnapshotMismatch,
    StepTimeout,
    TakenOver,
    TooLarge,
    Unauthorized,
    Unfinished,
    UnknownEnv,
    UnknownKwargs,
    UnknownOp,
    Unsupported,
)
from .handle import Handle
from .scheduler import Scheduler, move, resize, start, stop, try_start, wait
from .server import LocalServer, find_gymctl
from .simulation import Run, Simulation, simulate
from .table import Table

if TYPE_CHECKING:
    from .comparison import compare
    from .envs import RemoteEnv
    from .evaluation import evaluate
    from .registration import ENVIRONMENTS, register
    from .vector import RemoteVectorEnv

__all__ = [
    "ENVIRONMENTS",
    "BadAction",
    "BadFrame",
    "BadHandle",
    "BadKwargs",
    "BadRequest",
    "BadSeed",
    "Busy",
    "Capacity",
    "Client",
    "ClusterGymError",
    "ConnectionLost",
    "DrainWarning",
    "Draining",
    "EnvFault",
    "Forbidden",
    "GymctlError",
    "Handle",
    "InternalError",
    "LocalServer",
    "NeedsReset",
    "NotPending",
    "Policy",
    "ProtoMismatch",
    "ProtocolError",
    "RemoteEnv",
    "RemoteError",
    "RemoteVectorEnv",
    "ReplyTimeout",
    "Run",
    "Scheduler",
    "SchedulerError",
    "ServerDied",
    "ServerNotFound",
    "ServerStartError",
    "SessionExpired",
    "Simulation",
    "SnapshotMismatch",
    "Stats",
    "StepTimeout",
    "Table",
    "TakenOver",
    "TooLarge",
    "Unauthorized",
    "Unfinished",
    "UnknownEnv",
    "UnknownKwargs",
    "UnknownOp",
    "Unsupported",
    "__version__",
    "compare",
    "decide",
    "evaluate",
    "find_gymctl",
    "load",
    "move",
    "register",
    "resize",
    "secret",
    "simulate",
    "start",
    "stop",
    "try_start",
    "wait",
]

# Names that need Gymnasium, looked up when first used.
_LAZY = {
    "ENVIRONMENTS": ".registration",
    "compare": ".comparison",
    "RemoteEnv": ".envs",
    "RemoteVectorEnv": ".vector",
    "evaluate": ".evaluation",
    "register": ".registration",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(module, __name__), name)
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] != "gymnasium":
            raise
        text = f"clustergym.{name} needs Gymnasium: pip install 'clustergym[gymnasium]'; Client and Handle do without"
        raise ModuleNotFoundError(text, name=e.name) from None


def _register_if_possible() -> None:
    # Gymnasium is an extra: without it the client alone still works.
    try:
        from .registration import register as register_all
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] != "gymnasium":
            raise
        return
    register_all()


_register_if_possible()
