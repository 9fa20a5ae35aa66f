"""A rank of torch.distributed's gloo that sums vectors, for gymctl speed ranks. Rank 0 prints the times."""

import datetime
import json
import sys
import time

import torch
import torch.distributed as dist


def main() -> None:
    rank, world, port = (int(x) for x in sys.argv[1:4])
    work = [tuple(int(x) for x in part.split("x")) for part in sys.argv[4].split(",")]
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=world,
        timeout=datetime.timedelta(seconds=120),
    )
    for floats, times in work:
        x = torch.full((floats,), 1e-3 * (rank + 1))
        for _ in range(max(5, times // 10)):
            dist.all_reduce(x)
            x.mul_(1 / world)
        took = []
        for _ in range(times):
            begin = time.perf_counter_ns()
            dist.all_reduce(x)
            took.append((time.perf_counter_ns() - begin) / 1e3)
            x.mul_(1 / world)
        if rank == 0:
            took.sort()
            print(
                json.dumps({"floats": floats, "p50_us": took[times // 2], "p90_us": took[times * 9 // 10]}),
                flush=True,
            )
    dist.barrier()
    if rank == 0:
        print(json.dumps({"version": torch.__version__}), flush=True)
    dist.destroy_process_group()


main()
