#!/usr/bin/env python3
"""Starts of jobs in generated queues: reckon's fifo and easy_backfill against Slurm's own controller.

referee.py RECKON [--queues N] [--seed N]

Starts slurmctld and a slurmd for each node on this machine, in a folder of their own, and submits N queues of each rule, each to a
partition of three nodes. Jobs take whole nodes, so that which node does not matter. Only queues count in which the order of starts
stays the same when each job takes up to three seconds longer than it says, and when each limit is up to three seconds longer: others,
such as a job whose limit ends with the reservation to the second, are not decided by the rule but by when Slurm looks.

Slurm's sched/builtin is fifo; sched/backfill with bf_job_part_count_reserve=1 is easy_backfill (slurm.conf(5)). Slurm
handles nodes that are still COMPLETING apart (cg_node_bitmap in plugins/sched/backfill/backfill.c), and whether a cycle of backfill
falls into that second is chance. So a queue in another order is played again, REPLAYS times at most. One that never comes out in the
same order counts as another order.

Exit codes: 0 the same order, 1 another order, 77 slurmctld, slurmd or root is missing (said on standard error).
"""
import argparse
import pathlib
import random
import sys
import tempfile
import time

from decided_queues import Reckon, play
from slurm import Slurm, skip_unless_there

NODES, JOBS, UNIT, SLACK = 3, 9, 6, 3  # of a queue; seconds
AT_ONCE = 13  # partitions
REPLAYS = 3
SCHEDULERS = {"fifo": ("sched/builtin", "sched_interval=1"),
              "easy_backfill": ("sched/backfill",
                                "bf_interval=1,bf_resolution=1,bf_job_part_count_reserve=1,sched_interval=1")}


def draw_jobs(draw):
    return [{"gpus": 8 * draw.randint(1, NODES), "seconds": UNIT * draw.randint(1, 3), "limit_seconds": 60 * draw.randint(1, 6)}
            for _ in range(JOBS)]


def start_slurm(folder, policy):
    scheduler, parameters = SCHEDULERS[policy]
    return Slurm(folder, {f"q{q}": [f"q{q}n{n}" for n in range(NODES)] for q in range(AT_ONCE)},
                 f"SchedulerType={scheduler}\nSchedulerParameters={parameters}", state="DOWN")


def starts_of(slurm, queues):
    """By queue and job, in seconds of the clock."""
    ids = []
    for q, jobs in enumerate(queues):
        ids.append([slurm.call("sbatch", "--parsable", f"--partition=q{q}", "--exclusive", f"--nodes={job['gpus'] // 8}",
                               f"--time={job['limit_seconds'] // 60}", "--output=/dev/null", "--chdir=/",
                               f"--wrap=sleep {job['seconds']}").strip() for job in jobs])
    for q in range(len(queues)):
        slurm.call("scontrol", "update", f"PartitionName=q{q}", "State=UP")
    deadline = time.monotonic() + JOBS * (3 * UNIT + 10)
    while time.monotonic() < deadline and slurm.call("squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING").strip():
        time.sleep(1)
    starts = dict(line.split("|") for line in
                  slurm.call("squeue", "--noheader", "--states=all", "--format=%i|%S").split())
    for q in range(len(queues)):
        slurm.call("scontrol", "update", f"PartitionName=q{q}", "State=DOWN")
    return [[time.mktime(time.strptime(starts[job], "%Y-%m-%dT%H:%M:%S")) for job in of] for of in ids]


def compare(program, policy, count, draw, folder):
    """Queues in which Slurm started jobs in another order, each time that they were played."""
    reckon = Reckon(program, folder, f"{{policy: {policy}}}", NODES)
    queues = [reckon.decided_queue(draw, lambda: draw_jobs(draw), SLACK) for _ in range(count)]
    with start_slurm(folder, policy) as slurm:
        return play(policy, queues, lambda some: starts_of(slurm, some), AT_ONCE, REPLAYS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reckon", type=pathlib.Path)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    skip_unless_there()
    draw, wrong = random.Random(options.seed), 0
    half = options.queues // 2
    for policy, count in (("fifo", options.queues - half), ("easy_backfill", half)):
        with tempfile.TemporaryDirectory(prefix="reckon-slurm-") as folder:
            wrong += compare(options.reckon.resolve(), policy, count, draw, pathlib.Path(folder))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
