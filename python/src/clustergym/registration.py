"""The environments in Gymnasium's registry, so that ``gymnasium.make("clustergym/JobSelect-v2")`` finds them."""

from __future__ import annotations

from gymnasium.envs.registration import register as _register
from gymnasium.envs.registration import registry

from .envs import NAMESPACE

__all__ = ["ENVIRONMENTS", "STEP_LIMITS", "register"]

#: The ids that a server knows, each with the mean return that counts as solved (None if there is none). They are listed
#: here because registering must not start a server; a test compares them with ``gymctl envs --json``.
ENVIRONMENTS: dict[str, float | None] = {
    "Acrobot-v1": -100,
    "Bandit-v1": 80,
    "CartPole-v1": 475,
    "DAGPlace-v1": None,
    "DelayOffer-v1": None,
    "DelayOffer-v2": None,
    "GPUPick-v1": None,
    "GPUPick-v2": None,
    "InvalidAction-v1": 90,
    "JobSelect-v1": None,
    "JobSelect-v2": None,
    "MountainCar-v0": -110,
    "Nav2D-v1": -20,
    "PolicyMix-v1": None,
    "PolicyMix-v2": None,
    "ProbeAction-v1": 0.95,
    "ProbeConstant-v1": 1,
    "ProbeContext-v1": 0.95,
    "ProbeDeadStep-v1": 0.45,
    "ProbeDiscount-v1": 1,
    "ProbeMaskedAction-v1": 0.65,
    "ProbeMaskedContext-v1": 0.95,
    "ProbeMaskedTarget-v1": 0.95,
    "ProbeObservation-v1": None,
    "ProbeTruncation-v1": None,
    "QueueRank-v1": None,
    "QueueRank-v2": None,
    "RLScheduler-v1": None,
    "RLTune-v1": None,
    "WorkerPlace-v1": None,
    "WorkerPlace-v2": None,
}


#: After how many steps an episode is truncated, of environments in which no argument changes that. A test compares them too.
STEP_LIMITS: dict[str, int] = {
    "Acrobot-v1": 500,
    "CartPole-v1": 500,
    "InvalidAction-v1": 100,
    "MountainCar-v0": 200,
    "Nav2D-v1": 100,
    "ProbeTruncation-v1": 10,
}


def register() -> None:
    """Registers all environments under ``clustergym/``, except those that are registered already.

    Importing :mod:`clustergym` does this; so does ``gymnasium.make("clustergym:clustergym/JobSelect-v2")``, and a
    Gymnasium that loads the entry points of its group ``gymnasium.envs``.

    The server truncates episodes. ``max_episode_steps`` of a registered spec says when, if no argument changes it;
    ``gymnasium.make`` then adds a ``TimeLimit`` that truncates in the same step. ``env.spec`` says it of every environment.
    """
    for env_id, threshold in ENVIRONMENTS.items():
        name = f"{NAMESPACE}/{env_id}"
        if name in registry:
            continue
        _register(
            id=name,
            entry_point="clustergym.envs:RemoteEnv",
            vector_entry_point="clustergym.vector:RemoteVectorEnv",
            reward_threshold=threshold,
            max_episode_steps=STEP_LIMITS.get(env_id),
            kwargs={"env_id": env_id},
        )
