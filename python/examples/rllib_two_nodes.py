"""RLlib on two Ray nodes with a server on each: env runners use the server of their node.

    python rllib_two_nodes.py --env JobSelect-v1 --steps 20000 --envs 8

Both nodes are processes of this machine, as in Ray's own tests. On a real cluster only ray.init() differs: NodeServers
starts a server on every node, and no step ever crosses the network.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import paired
import ray
from ray.cluster_utils import Cluster
from rllib_ppo import add_arguments, configure, learn

from clustergym.rllib import NodeServers


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    args = paired.parse(parser, argv)
    cluster = Cluster()
    try:
        # One env runner fits on a node beside the driver, so that the two are on different nodes.
        for _ in range(2):
            cluster.add_node(num_cpus=1, include_dashboard=False)
        ray.init(address=cluster.address, log_to_driver=False)
        with NodeServers() as servers:
            seen, _ = learn(configure(args, urls=servers.urls), args)
            return {"env": args.env, "servers": sorted(servers.urls.values()), "first": seen[0], "last": seen[-1]}
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    print(json.dumps(main()))
