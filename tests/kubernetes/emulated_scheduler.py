#!/usr/bin/env python3
"""Which orders of starts kube-scheduler's rule decides, and which its timing.

emulated_scheduler.py RECKON [--queues N] [--seed N] [--attempt MILLISECONDS]...

Plays the queues of scheduler_referee.py on an emulation of kube-scheduler's three queues, in virtual time: one scheduler for ten queues, for
five, and for each queue alone. Read from pkg/scheduler/internal/queue/scheduling_queue.go and queuesort/priority_sort.go of 1.20.2:

- activeQ: the higher priority first, of equals whose Timestamp is older. An attempt takes `--attempt`, half as long to half as long again.
- A pod that finds no room gets a new Timestamp and goes to unschedulableQ; to podBackoffQ if pods were moved since its attempt began.
- The end of any bound pod moves all of unschedulableQ: to activeQ, or to podBackoffQ who failed less than 1 s ago (podMaxBackoffSeconds 1).
- podBackoffQ is emptied once a second of those whose second is over.

Exit codes: 0 each queue alone starts in the order of `reckon simulate`, 1 another order.
"""
import argparse
import heapq
import itertools
import pathlib
import random
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/slurm"))
sys.path.insert(0, str(ROOT / "tests/kubernetes"))
from decided_queues import Reckon  # noqa: E402
from scheduler_referee import AT_ONCE, BEFORE, JOBS, SLACK, draw_jobs  # noqa: E402

GPUS, BACKOFF, FLUSH = 8, 1.0, 1.0
SUBMIT = 0.02  # seconds between two pods that are created
NOTICE = (0.2, 1.5)  # from the end of a pod until the scheduler hears of it


class Scheduler:
    """One kube-scheduler for some queues, each of pods of one node."""

    def __init__(self, queues, attempt, draw):
        self.queues, self.attempt, self.draw = queues, attempt, draw
        self.events, self.order, self.now = [], itertools.count(), 0.0
        self.active, self.unschedulable, self.backoff = set(), set(), set()
        self.stamp, self.start, self.free = {}, {}, [0] * len(queues)
        self.cycle, self.moved, self.busy = 0, -1, False

    def push(self, at, what, *about):
        heapq.heappush(self.events, (at, next(self.order), what, about))

    def run(self):
        """Starts by queue and pod, in whole seconds, as the API server keeps them."""
        pods = [(q, k) for q in range(len(self.queues)) for k in range(JOBS)]
        for i, pod in enumerate(pods):
            self.push(i * SUBMIT, self.added, pod)
        for q in range(len(self.queues)):
            self.push(BEFORE + self.draw.uniform(*NOTICE), self.ended, q, GPUS)
        self.push(FLUSH, self.flush)
        while len(self.start) < len(pods):
            self.now, _, what, about = heapq.heappop(self.events)
            what(*about)
            self.try_next()
        return [[int(self.start[q, k]) for k in range(JOBS)] for q in range(len(self.queues))]

    def job(self, pod):
        return self.queues[pod[0]][pod[1]]

    def added(self, pod):
        self.stamp[pod] = self.now
        self.active.add(pod)

    def try_next(self):
        if self.busy or not self.active:
            return
        pod = min(self.active, key=lambda p: (-self.job(p)["priority"], self.stamp[p]))
        self.active.discard(pod)
        self.busy, self.cycle = True, self.cycle + 1
        self.push(self.now + self.attempt * self.draw.uniform(0.5, 1.5), self.tried, pod, self.cycle)

    def tried(self, pod, cycle):
        self.busy = False
        queue, job = pod[0], self.job(pod)
        if job["gpus"] <= self.free[queue]:
            self.free[queue] -= job["gpus"]
            self.start[pod] = self.now
            self.push(self.now + job["seconds"] + self.draw.uniform(*NOTICE), self.ended, queue, job["gpus"])
            return
        self.stamp[pod] = self.now
        (self.backoff if self.moved >= cycle else self.unschedulable).add(pod)

    def ended(self, queue, gpus):
        self.free[queue] += gpus
        self.moved = self.cycle
        for pod in self.unschedulable:
            (self.backoff if self.stamp[pod] + BACKOFF > self.now else self.active).add(pod)
        self.unschedulable.clear()

    def flush(self):
        over = {pod for pod in self.backoff if self.stamp[pod] + BACKOFF <= self.now}
        self.backoff -= over
        self.active |= over
        self.push(self.now + FLUSH, self.flush)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reckon", type=pathlib.Path)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--attempt", type=float, action="append", help="ms; default: 1, 5, 10, 20")
    options = parser.parse_args()
    draw, wrong = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="reckon-scheduler-") as folder:
        reckon = Reckon(options.reckon.resolve(), pathlib.Path(folder), "{policy: kubernetes, kubernetes: {preemptionPolicy: Never}}", 1)
        queues = [reckon.decided_queue(draw, lambda: draw_jobs(draw), SLACK) for _ in range(options.queues)]
    for attempt in options.attempt or (1, 5, 10, 20):
        same = {}
        for beside in (AT_ONCE, AT_ONCE // 2, 1):
            same[beside] = 0
            for first in range(0, len(queues), beside):
                some = queues[first:first + beside]
                played = Scheduler([jobs for jobs, _ in some], attempt / 1000, random.Random(first)).run()
                same[beside] += sum(all(s[a] < s[b] for a, b in before) for (_, before), s in zip(some, played))
        print(f"{attempt:g} ms an attempt: " + ", ".join(f"{count} of {len(queues)} in the same order " + ("alone" if n == 1 else f"{n} at a time")
                                                         for n, count in same.items()), flush=True)
        wrong += attempt <= 10 and same[1] < len(queues)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
