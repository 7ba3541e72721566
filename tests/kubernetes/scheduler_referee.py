#!/usr/bin/env python3
"""Starts of pods in generated queues: reckon's policy kubernetes against kube-scheduler itself.

scheduler_referee.py RECKON [--queues N] [--seed N]

Starts a control plane of the Kubernetes kit (RECKON_KUBERNETES_KIT, or ../shared/kubernetes beside the checkout) with nodes that do not
exist, and submits N queues of pods, each to a node of eight GPUs of its own, so that which node does not matter. Pods have priorities
and evict nobody. They come while a pod that was bound to the node takes all of it. A kube-scheduler of our own schedules them, whose
podMaxBackoffSeconds is 1: a pod that found no room is tried again after 1 s, and not after up to 10 s in which whoever comes takes its
place.

Only queues count in which the order of starts stays the same when each pod takes up to SLACK seconds longer than it says. The end of
a pod of any queue lets kube-scheduler try all pods again, and who fails waits a second for its next turn. So queues disturb each other,
the more the busier the machine is. A queue in another order is therefore played again, REPLAYS times at most, each time with half as
many beside it and at last alone; one that never comes out in the same order counts as another order.

Exit codes: 0 the same order, 1 another order, 77 the kit is missing or not built (said on standard error).
"""
import argparse
import calendar
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/slurm"))
from decided_queues import Reckon, play  # noqa: E402

JOBS, UNIT, SLACK = 8, 12, 5  # of a queue; seconds
PRIORITIES = (0, 10, 20)
AT_ONCE, REPLAYS = 10, 4  # 10, 5, 2, 1 and 1: of more, a low priority has its turn while a high one backs off
BEFORE = 25  # seconds in which the pods of a play are submitted
SCHEDULER = "referee"


def draw_jobs(draw):
    return [{"gpus": draw.choice((2, 4, 6, 8)), "seconds": UNIT * draw.randint(1, 3), "priority": draw.choice(PRIORITIES)}
            for _ in range(JOBS)]


class Kubernetes:
    """A control plane and nodes of eight GPUs; ends with what it started."""

    def __init__(self, kit, binaries, folder):
        self.kit, self.run_dir, self.round = kit, folder / "cluster", 0
        up = subprocess.run([kit / "up", "--fake-nodes", str(AT_ONCE), "--run-dir", self.run_dir, "--port", "18443"], check=True,
                            capture_output=True, text=True).stdout
        words = dict(line.split("=", 1) for line in up.splitlines() if "=" in line)
        self.command = [words["KUBECTL"], "--kubeconfig", words["KUBECONFIG"]]
        (folder / "scheduler.json").write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1beta1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": words["KUBECONFIG"], "qps": 1000, "burst": 1000}, "leaderElection": {"leaderElect": False},
            "healthzBindAddress": "", "metricsBindAddress": "", "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1,
            "profiles": [{"schedulerName": SCHEDULER}]}), encoding="utf-8")
        self.log = open(folder / "scheduler.log", "ab")  # noqa: SIM115
        self.scheduler = subprocess.Popen([binaries / "kube-scheduler", "--config", folder / "scheduler.json", "--secure-port=0"],
                                          stdout=self.log, stderr=self.log)
        self.create([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"p{value}"}, "value": value,
                     "preemptionPolicy": "Never"} for value in PRIORITIES])

    def call(self, *words, text=None):
        return subprocess.run([*self.command, *words], check=True, capture_output=True, text=True, input=text).stdout

    def create(self, items):
        self.call("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def run(self, queues):
        """Starts by queue and pod, in seconds of the clock."""
        self.round += 1
        begun = time.monotonic()
        self.create([self.pod(f"r{self.round}-q{q}-first", q, 8, BEFORE, {"nodeName": f"fake-{q}"}) for q in range(len(queues))])
        self.create([self.pod(f"r{self.round}-q{q}-{k}", q, job["gpus"], job["seconds"],
                             {"priorityClassName": f"p{job['priority']}", "schedulerName": SCHEDULER})
                    for q, jobs in enumerate(queues) for k, job in enumerate(jobs)])
        if time.monotonic() - begun > BEFORE:
            raise SystemExit(f"{len(queues)} queues were submitted in more than {BEFORE} s: the machine is too busy")
        pods = self.wait_for_all()
        starts = {pod["metadata"]["name"]: condition["lastTransitionTime"] for pod in pods for condition in pod["status"].get("conditions", ())
                  if condition["type"] == "PodScheduled" and condition["status"] == "True"}
        self.call("delete", "pods", "--all", "--wait=true")
        return [[calendar.timegm(time.strptime(starts[f"r{self.round}-q{q}-{k}"], "%Y-%m-%dT%H:%M:%SZ")) for k in range(len(jobs))]
                for q, jobs in enumerate(queues)]

    @staticmethod
    def pod(name, queue, gpus, seconds, spec):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {"fake/run-seconds": str(seconds)}},
                "spec": {"nodeSelector": {"kubernetes.io/hostname": f"fake-{queue}"}, "restartPolicy": "Never",
                         "terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}], **spec}}

    def wait_for_all(self):
        """The pods, all of which have ended."""
        deadline = time.monotonic() + BEFORE + JOBS * (3 * UNIT + SLACK)
        while time.monotonic() < deadline:
            pods = json.loads(self.call("get", "pods", "-o", "json"))["items"]
            if all(pod["status"].get("phase") == "Succeeded" for pod in pods):
                return pods
            time.sleep(2)
        raise SystemExit("pods still wait; the end of the scheduler's log:\n"
                         + pathlib.Path(self.log.name).read_text(encoding="utf-8")[-2000:])

    def stop(self):
        self.scheduler.terminate()
        self.scheduler.wait()
        self.log.close()
        subprocess.run([self.kit / "down", "--run-dir", self.run_dir], check=False, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reckon", type=pathlib.Path)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    kit = pathlib.Path(os.environ.get("RECKON_KUBERNETES_KIT") or ROOT.parent / "shared/kubernetes")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kubernetes-1.20.2-debian/bin"
    if not (kit / "up").exists() or not (cache / "kube-scheduler").exists():
        print(f"no Kubernetes kit: {kit}/up" if not (kit / "up").exists() else f"the kit is not built: run {kit}/build", file=sys.stderr)
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started ends
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="reckon-scheduler-") as folder:
        folder = pathlib.Path(folder)
        reckon = Reckon(options.reckon.resolve(), folder, "{policy: kubernetes, kubernetes: {preemptionPolicy: Never}}", 1)
        queues = [reckon.decided_queue(draw, lambda: draw_jobs(draw), SLACK) for _ in range(options.queues)]
        cluster = Kubernetes(kit, cache, folder)
        try:
            return 1 if play("kubernetes", queues, cluster.run, AT_ONCE, REPLAYS, fewer_each_time=True) else 0
        finally:
            cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
