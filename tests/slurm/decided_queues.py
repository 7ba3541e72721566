"""Generated queues whose order of starts the rule alone decides, for referees that play them in real time."""
import csv
import os
import subprocess

SCENARIO = """name: referee
cluster:
  provider: on_premises
  scheduler: {scheduler}
  pools: [{{name: n, nodes: {nodes}, accelerator: {{type: A100-SXM4-80, count: 8}}, machine: {{vcpu: 8, memory: 64GiB, network: 10Gbps}}}}]
trace: {{file: jobs.csv, format: csv}}
"""


class Reckon:
    """Starts by `reckon simulate`, of jobs that are all submitted at once. A job is a dictionary: gpus, seconds, and limit_seconds or
    priority."""

    def __init__(self, program, folder, scheduler, nodes):
        self.program, self.folder = program, folder
        (folder / "q.yaml").write_text(SCENARIO.format(scheduler=scheduler, nodes=nodes), encoding="utf-8")

    def starts(self, jobs, longer, limits):
        """Seconds from the submit, by job, each `longer` than said and with so much more of a limit."""
        with open(self.folder / "jobs.csv", "w", encoding="utf-8") as out:
            print("job_id,submit_seconds,duration_seconds,gpus,limit_seconds,priority", file=out)
            for k, job in enumerate(jobs):
                limit = job["limit_seconds"] + limits[k] if "limit_seconds" in job else ""
                print(f"{k},0,{job['seconds'] + longer[k]},{job['gpus']},{limit},{job.get('priority', 0)}", file=out)
        # Only the simulation's own variables: a referee's are of no use here.
        subprocess.run([self.program, "simulate", "q.yaml", "--csv", "out"], cwd=self.folder, check=True, capture_output=True,
                       env={k: v for k, v in os.environ.items() if k != "KUBECONFIG"})
        with open(self.folder / "out/jobs.csv", encoding="utf-8") as rows:
            return [float(row["start_seconds"]) for row in csv.DictReader(rows)]

    def decided_queue(self, draw, draw_jobs, slack):
        """Jobs of draw_jobs(), and which of them (first, second) must start one before the other: also when each takes up to `slack`
        seconds longer, or has so much more of a limit. Queues that this changes are drawn again."""
        while True:
            jobs = draw_jobs()
            none = [0] * len(jobs)
            before = before_each(self.starts(jobs, none, none))
            some = [[draw.uniform(0, slack) for _ in jobs] for _ in range(10)]
            jitters = list(zip(some[:5], some[5:])) + [([slack] * len(jobs), none)] + [(none, limits) for limits in some[:5]]
            if all(set(before) <= set(before_each(self.starts(jobs, *j))) for j in jitters):
                return jobs, before


def before_each(starts):
    return [(a, b) for a in range(len(starts)) for b in range(len(starts)) if starts[a] + 1e-9 < starts[b]]


def play(name, queues, run, at_once, replays, fewer_each_time=False):
    """Queues that came out in another order each time that run() played them, at most 1 + `replays` times; run() gives the starts of
    each of some queues, by job. `fewer_each_time`: half as many at once in each further play, down to one by itself."""
    left = list(queues)
    for attempt in range(1 + replays):
        wrong = []
        together = max(1, at_once >> attempt) if fewer_each_time else at_once
        for first in range(0, len(left), together):
            some = left[first:first + together]
            for (jobs, before), starts in zip(some, run([jobs for jobs, _ in some])):
                against = [(a, b) for a, b in before if starts[a] >= starts[b]]
                if against:
                    wrong.append((jobs, before))
                    print(f"{name}, play {attempt + 1}: {jobs}: started {[round(s - min(starts)) for s in starts]}, against {against}")
        print(f"{name}: {len(queues) - len(wrong)} of {len(queues)} queues in the same order after {attempt + 1} "
              f"play{'s' * (attempt > 0)}", flush=True)
        left = wrong
        if not left:
            break
    return len(left)
