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
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from decided_queues import Reckon, play

NODES, JOBS, UNIT, SLACK = 3, 9, 6, 3  # of a queue; seconds
AT_ONCE = 13  # partitions
REPLAYS = 3
SCHEDULERS = {"fifo": ("sched/builtin", "sched_interval=1"),
              "easy_backfill": ("sched/backfill",
                                "bf_interval=1,bf_resolution=1,bf_job_part_count_reserve=1,sched_interval=1")}


def draw_jobs(draw):
    return [{"gpus": 8 * draw.randint(1, NODES), "seconds": UNIT * draw.randint(1, 3), "limit_seconds": 60 * draw.randint(1, 6)}
            for _ in range(JOBS)]


class Slurm:
    """A controller and its nodes; ends with what it started."""

    def __init__(self, folder, policy):
        self.folder, self.processes = folder, []
        host = socket.gethostname().split(".")[0]
        scheduler, parameters = SCHEDULERS[policy]
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            port = any_port.getsockname()[1]
        lines = [f"ClusterName=referee\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\n"
                 f"CredType=cred/none\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\n"
                 f"SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/%n.pid\nSlurmctldPort={port}\n"
                 "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
                 f"SchedulerType={scheduler}\nSchedulerParameters={parameters}\nPriorityType=priority/basic\n"
                 "AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n"
                 "SlurmdParameters=config_overrides\nMpiDefault=none\nReturnToService=2\nKillWait=1"]
        for q in range(AT_ONCE):
            names = [f"q{q}n{n}" for n in range(NODES)]
            for n, name in enumerate(names):
                lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1 + q * NODES + n} CPUs=1 State=UNKNOWN")
            lines.append(f"PartitionName=q{q} Nodes={','.join(names)} MaxTime=UNLIMITED State=DOWN")
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.spawn("slurmctld", "-c", "-D")
        time.sleep(2)
        for q in range(AT_ONCE):
            for n in range(NODES):
                self.spawn("slurmd", "-D", "-N", f"q{q}n{n}")
        for _ in range(60):
            states = self.call("sinfo", "--Node", "--noheader", "--format=%T").split()
            if states and all(s == "idle" for s in states):
                return
            time.sleep(1)
        raise RuntimeError(f"nodes did not come up: {sorted(set(states))}")

    def spawn(self, *words):
        with open(self.folder / f"{words[-1]}.log", "wb") as log:
            self.processes.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=log))

    def call(self, *words):
        return subprocess.run(words, env=self.environment, check=True, capture_output=True, text=True).stdout

    def run(self, queues):
        """Starts by queue and job, in seconds of the clock."""
        ids = []
        for q, jobs in enumerate(queues):
            ids.append([self.call("sbatch", "--parsable", f"--partition=q{q}", "--exclusive", f"--nodes={job['gpus'] // 8}",
                                  f"--time={job['limit_seconds'] // 60}", "--output=/dev/null", "--chdir=/",
                                  f"--wrap=sleep {job['seconds']}").strip() for job in jobs])
        for q in range(len(queues)):
            self.call("scontrol", "update", f"PartitionName=q{q}", "State=UP")
        deadline = time.monotonic() + JOBS * (3 * UNIT + 10)
        while time.monotonic() < deadline and self.call("squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING").strip():
            time.sleep(1)
        starts = dict(line.split("|") for line in
                      self.call("squeue", "--noheader", "--states=all", "--format=%i|%S").split())
        for q in range(len(queues)):
            self.call("scontrol", "update", f"PartitionName=q{q}", "State=DOWN")
        return [[time.mktime(time.strptime(starts[job], "%Y-%m-%dT%H:%M:%S")) for job in of] for of in ids]

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def compare(program, policy, count, draw, folder):
    """Queues in which Slurm started jobs in another order, each time that they were played."""
    reckon = Reckon(program, folder, f"{{policy: {policy}}}", NODES)
    queues = [reckon.decided_queue(draw, lambda: draw_jobs(draw), SLACK) for _ in range(count)]
    slurm = Slurm(folder, policy)
    try:
        return play(policy, queues, slurm.run, AT_ONCE, REPLAYS)
    finally:
        slurm.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reckon", type=pathlib.Path)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    missing = [name for name in ("slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        print(f"{', '.join(missing)} not installed (Debian: slurmctld, slurmd, slurm-client)" if missing
              else "root is needed to start slurmctld and slurmd", file=sys.stderr)
        return 77
    draw, wrong = random.Random(options.seed), 0
    half = options.queues // 2
    for policy, count in (("fifo", options.queues - half), ("easy_backfill", half)):
        with tempfile.TemporaryDirectory(prefix="reckon-slurm-") as folder:
            wrong += compare(options.reckon.resolve(), policy, count, draw, pathlib.Path(folder))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
