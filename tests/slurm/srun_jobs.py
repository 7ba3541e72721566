#!/usr/bin/env python3
"""Jobs under a real Slurm: tasks of `srun reckon-worker` join one job, and the script of `reckon export megatron --as slurm`
brings a notice to the training processes and starts again.

srun_jobs.py RECKON RECKON_WORKER SCENARIOS

Two nodes on this machine, with 8 GPUs each that nobody has. Megatron-LM is played by a torchrun of two processes a node, which ends
them a second after a SIGTERM of its own, as torchrun does after 30. Exit codes: 0, 1 (said on standard error), 77 without Slurm.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from slurm import Slurm, skip_unless_there

# Addresses as names, so that who looks up the name of rank 0's node finds it.
NODES = ["127.0.0.1", "127.0.0.2"]
JOB = """
name: under-slurm
workload:
  model: mlp_mnist
  dataset: {samples: 60000, bytes_per_sample: 785B}
  train: {steps: 1500}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored, workers: 2}
  checkpoint: {interval: 1s}
cluster:
  provider: on_premises
  pools:
    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 2}
"""
# As docs/worker.md has it.
SCRIPT = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --requeue --open-mode=append
export RECKON_SECRET_FILE={secret}
code=0
srun {worker} job.yaml --threads 1 --out run || code=$?
[ "$code" -ne 75 ] || scontrol requeue "$SLURM_JOB_ID"
exit "$code"
"""
TORCHRUN = r"""#!/bin/bash
rank() {
  trap 'sleep 2; echo "saved by rank $1 of node $SLURM_NODEID" >> "$CHECKPOINTS/saved"; exit 0' TERM
  : > "$CHECKPOINTS/there-$SLURM_NODEID-$1"
  while :; do sleep 0.1; done
}
[ -e "$CHECKPOINTS/saved" ] && { echo "goes on" >> "$CHECKPOINTS/again"; exit 0; }
rank 0 & rank 1 &
end() {  # its ranks have a second
  sleep 1
  kill -9 $(jobs -p)
  exit 1
}
trap end TERM
wait
"""


def wait_for(what, there, seconds=120):
    until = time.monotonic() + seconds
    while not there():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.2)


def runs(slurm, job):
    return bool(slurm.call("squeue", "--noheader", f"--jobs={job}", "--states=PENDING,RUNNING,COMPLETING").strip())


def restarts_of(slurm, job):
    text = slurm.call("scontrol", "show", "job", job)
    return int(text.split("Restarts=")[1].split()[0])


def code_of(slurm, job):
    return slurm.call("scontrol", "show", "job", job).split("ExitCode=")[1].split()[0]


def requeued_soon(slurm, job):
    """A requeued job waits for two minutes before it may start, unless it is told to."""
    wait_for("the job is requeued", lambda: restarts_of(slurm, job) == 1)
    wait_for("its first start is over", lambda: "JobState=PENDING" in slurm.call("scontrol", "show", "job", job))
    slurm.call("scontrol", "update", f"JobId={job}", "StartTime=now")


def test_own_worker(slurm, folder, reckon, worker):
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    subprocess.run([reckon, "run", "job.yaml", "--out", "straight"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    secret = folder / "job.secret"
    secret.write_text(os.urandom(32).hex() + "\n", encoding="utf-8")
    secret.chmod(0o600)
    (folder / "job.sh").write_text(SCRIPT.format(secret=secret, worker=worker), encoding="utf-8")
    job = slurm.call("sbatch", "--parsable", "--partition=all", f"--chdir={folder}", f"--output={folder}/worker.log", "job.sh", cwd=folder).strip()
    try:
        wait_for("a checkpoint", lambda: any((folder / "run" / "checkpoints").glob("step-*/rank-0.safetensors")))
        slurm.call("scancel", "--signal=TERM", f"{job}.0")
        requeued_soon(slurm, job)
        wait_for("the job ends", lambda: not runs(slurm, job))
        assert code_of(slurm, job) == "0:0", f"ended with {code_of(slurm, job)}"
        records = [json.loads(line) for line in (folder / "run" / "measurements.jsonl").read_text(encoding="utf-8").splitlines()]
        starts = [(r["attempt"], r["first_step"]) for r in records if r["record"] == "run"]
        assert [attempt for attempt, _ in starts] == [0, 1] and starts[1][1] > 0, starts
        weights = [(folder / name / "model.safetensors").read_bytes() for name in ("run", "straight")]
        assert weights[0] == weights[1], "other weights than those of a run that nobody disturbed"
    except BaseException:
        sys.stderr.write((folder / "worker.log").read_text(encoding="utf-8"))
        raise


def test_megatron_script(slurm, folder, reckon, scenarios):
    script = subprocess.run([reckon, "export", "megatron", scenarios / "llama3-8b-zero3.yaml", "--as", "slurm"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    (folder / "megatron.sh").write_text(script, encoding="utf-8")
    torchrun = folder / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text(TORCHRUN, encoding="utf-8")
    torchrun.chmod(0o755)
    slurm.environment["PATH"] = f"{torchrun.parent}:{os.environ['PATH']}"
    job = slurm.call("sbatch", "--parsable", "--partition=all", f"--chdir={folder}", f"--output={folder}/megatron.log", "megatron.sh",
                     cwd=folder).strip()
    checkpoints = folder / "checkpoints"
    try:
        wait_for("two processes on each node", lambda: len(list(checkpoints.glob("there-*"))) == 4)
        slurm.call("scancel", "--batch", "--signal=USR1", job)  # as --signal=B:USR1 does
        requeued_soon(slurm, job)
        saved = (checkpoints / "saved").read_text(encoding="utf-8").splitlines()
        assert len(saved) == 4, saved
        wait_for("the job ends", lambda: not runs(slurm, job))
        assert (checkpoints / "again").read_text(encoding="utf-8") == "goes on\n" * 2
        assert code_of(slurm, job) == "0:0", f"ended with {code_of(slurm, job)}"
    except BaseException:
        sys.stderr.write((folder / "megatron.log").read_text(encoding="utf-8"))
        raise


def main():
    skip_unless_there()
    reckon, worker, scenarios = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    with tempfile.TemporaryDirectory(prefix="reckon-srun-") as name:
        folder = pathlib.Path(name)
        with Slurm(folder, {"all": NODES}, "SchedulerType=sched/backfill\nSchedulerParameters=sched_interval=1", gpus=8) as slurm:
            test_own_worker(slurm, folder, reckon, worker)
            test_megatron_script(slurm, folder, reckon, scenarios)
    return 0


if __name__ == "__main__":
    sys.exit(main())
