#!/usr/bin/env python3
"""torch_jobs.py RECKON - real PyTorch jobs (train.py) of two processes over Gloo under `reckon run`: data parallel, and with
the optimizer's state cut over the ranks. Each is run to its end, and once more with a rank killed on the way: its steps,
losses and checkpoints are in the records, both ranks end with the same weights, the killed run with the bits of the
other, and `reckon calibrate` takes the run as evidence. Without PyTorch the test is SKIPPED (77).
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 400
SCENARIO = """\
name: {name}
workload:
  container:
    image: none
    command: [{python}, {program}, {kind}, "{steps}"]
  model:
    layers: [{{input: "64"}}, {{linear: 512}}, {{activation: relu}}, {{linear: 512}}, {{activation: relu}}, {{linear: 1}},
             {{mean_squared_error: true}}]
  dataset: {{samples: 1M, bytes_per_sample: 260B}}
  train: {{steps: {steps}}}
  precision: fp32
  batch_per_accelerator: 64
  optimizer: {{kind: {optimizer}}}
  strategy: {strategy}
  checkpoint: {{interval: none}}
cluster:
  provider: on_premises
  pools:
    - {{name: here, machine: {{vcpu: 1, memory: 4GiB, network: 10Gbps}}, nodes: 2}}
"""
KINDS = {"ddp": ("{kind: multi_worker_mirrored, workers: 2}", "sgd"),
         "zero": ("{kind: sharded, workers: 2, zero_stage: 1}", "adamw")}


def python_with_torch():
    """Debian's module belongs to Debian's Python, whatever else is first in PATH. None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        run = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
        if run.returncode == 0:
            return python
    return None


def fail(text):
    sys.exit(f"torch_jobs: {text}")


def records(directory):
    lines = (directory / "measurements.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def of(all_records, kind):
    return [r for r in all_records if r["record"] == kind]


def digests(directory):
    return [(directory / "job" / f"rank-{rank}.sha256").read_text() for rank in (0, 1)]


class Job:
    """`reckon run` of a kind in the background."""

    def __init__(self, reckon, python, folder, kind, name):
        strategy, optimizer = KINDS[kind]
        self.reckon, self.out = reckon, folder / name
        scenario = folder / f"{name}.yaml"
        scenario.write_text(SCENARIO.format(name=name, python=python, program=HERE / "train.py", kind=kind,
                                            steps=STEPS, strategy=strategy, optimizer=optimizer))
        self.environment = os.environ | {"XDG_DATA_HOME": str(folder / "history")}
        self.process = subprocess.Popen(
            [reckon, "run", str(scenario), "--out", str(self.out), "--format", "json", "--retry-delay", "1s"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment, cwd=folder)

    def kill_rank(self, rank, after):
        """kill -9 behind so many steps that were told."""
        until = time.monotonic() + 120
        while True:
            if self.process.poll() is not None or time.monotonic() > until:
                fail(f"{self.out.name} did not come to step {after}: {self.process.communicate()[1][-2000:]}")
            log = self.out / "measurements.jsonl"
            if log.is_file() and any(f'"step":{after},' in line for line in log.read_text().splitlines()):
                break
            time.sleep(0.02)
        for status in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                variables = status.read_bytes().split(b"\0")
            except OSError:
                continue
            if f"RANK={rank}".encode() in variables and f"RECKON_JOB_DIR={self.out}/job".encode() in variables:
                os.kill(int(status.parent.name), signal.SIGKILL)
                return
        fail(f"rank {rank} of {self.out.name} was not found")

    def end(self):
        out, err = self.process.communicate(timeout=600)
        if self.process.returncode != 0:
            fail(f"{self.out.name} ended with code {self.process.returncode}:\n{err[-3000:]}")
        return json.loads(out)


def check_whole(job, answer, losses_fall):
    found = records(job.out)
    steps = {}
    for record in of(found, "step"):
        steps[record["step"]] = record
    if sorted(steps) != list(range(STEPS)):
        fail(f"{job.out.name}: {len(steps)} of {STEPS} steps are in the records")
    if not losses_fall(steps[0]["loss"], steps[STEPS - 1]["loss"]):
        fail(f"{job.out.name}: loss {steps[0]['loss']} at the begin, {steps[STEPS - 1]['loss']} at the end")
    saved = [r for r in of(found, "checkpoint") if r["action"] == "save"]
    if not saved:
        fail(f"{job.out.name}: no checkpoint of the program is in the records")
    first, second = digests(job.out)
    if first != second:
        fail(f"{job.out.name}: the two ranks end with different weights")
    return found, first


def run_kind(reckon, python, folder, kind):
    learns = lambda first, last: last < 0.5 * first
    whole = Job(reckon, python, folder, kind, f"{kind}-whole")
    found, expected = check_whole(whole, whole.end(), learns)
    seconds = sorted(r["seconds"] for r in of(found, "step"))[STEPS // 2]
    killed = Job(reckon, python, folder, kind, f"{kind}-killed")
    killed.kill_rank(1, 180)
    found, ended = check_whole(killed, killed.end(), learns)
    if ended != expected:
        fail(f"{kind}: the run that lost a rank ends with other weights")
    losses = of(found, "interruption")
    if len(losses) != 1 or len(of(found, "run")) != 2:
        fail(f"{kind}: {len(losses)} interruptions and {len(of(found, 'run'))} starts are in the records")
    if losses[0]["lost_steps"] <= 0 or losses[0]["lost_steps"] > 60:
        fail(f"{kind}: {losses[0]['lost_steps']} steps were lost, and it saves every 50")
    calibrated = subprocess.run([reckon, "calibrate", str(whole.out), "--format", "json"], capture_output=True, text=True,
                                env=whole.environment, check=False)
    if calibrated.returncode not in (0, 1):
        fail(f"{kind}: calibrate ended with code {calibrated.returncode}: {calibrated.stderr[-2000:]}")
    rows = json.loads(calibrated.stdout)
    if "step" not in json.dumps(rows):
        fail(f"{kind}: calibrate has no row of the steps: {calibrated.stdout[:2000]}")
    print(f"{kind}: {STEPS} steps, median {1e3 * seconds:.2f} ms; killed at step 180, {losses[0]['lost_steps']} steps done "
          "again, the same weights")


def main(reckon):
    python = python_with_torch()
    if python is None:
        print("SKIPPED: PyTorch is not installed (scripts/install-deps frameworks)")
        sys.exit(77)
    reckon = str(pathlib.Path(reckon).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            run_kind(reckon, python, pathlib.Path(folder), kind)


if __name__ == "__main__":
    main(sys.argv[1])
