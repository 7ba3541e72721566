#!/usr/bin/env python3
"""A shrunk copy of each scenario that trains a job, really run: shrunk_scenarios.py RECKON [--all] [NAME...]

The rule. A copy keeps the strategy with all its words, precision, recomputation, servers and restart. Degrees over 1
become 2, also workers, accelerators of a worker and servers; experts keep two replicas of each where they have several;
stages that a scenario lists stay. The network is a small one of the same family, the data one batch that comes again in each
step, so that the loss has to fall. Ranks compute on CPUs; a node with accelerators has two, which gives its worker two ranks.

Without --all: the first scenario of each strategy with what belongs to it, of at most four ranks. A scenario whose
network has no small one here fails by name. What does not run on CPU ranks as it is written is said, with the reason.
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 8
GPT = dict(layers=4, hidden=32, heads=4, vocabulary=64, sequence_length=16, positions=16, tied_output=True)
LLAMA = dict(layers=4, hidden=32, heads=4, kv_heads=2, feed_forward=48, vocabulary=64, sequence_length=16,
             gated_feed_forward=True, rms_norm=True, bias=False, tied_output=False, activation="silu")
BERT = dict(layers=2, hidden=32, heads=4, vocabulary=64, sequence_length=16, positions=16, token_types=2,
            causal=False, post_norm=True)
NORM = [{"batch_norm": True}]


def convolutions(norm, depthwise=False):
    layers = [{"input": "3x16x16"}, {"conv2d": 8, "kernel": 3, "padding": 1}] + norm + [{"activation": "relu", "name": "stem"}]
    layers += [{"conv2d": 8, "kernel": 3, "padding": 1, "groups": 8 if depthwise else 1}] + norm
    layers[-1] = layers[-1] | {"name": "branch"}
    if norm:
        layers += [{"add": "stem, branch"}]
    return {"layers": layers + [{"activation": "relu"}, {"global_average_pool": True}, {"linear": 4},
                                {"softmax_cross_entropy": True}]}


RECOMMENDER = {"layers": [
    {"input": "8", "name": "record"}, {"select_features": 4, "first": 0}, {"linear": 8, "name": "dense"},
    {"select_features": 1, "first": 4, "from": "record"}, {"embedding_bag": 8, "rows": 300, "name": "user"},
    {"select_features": 3, "first": 5, "from": "record"}, {"embedding_bag": 8, "rows": 70, "name": "items"},
    {"pairwise_dots": "dense, user, items", "name": "dots"}, {"concat": "dense, user, items, dots"},
    {"linear": 16}, {"activation": "relu"}, {"linear": 1}, {"sigmoid_cross_entropy": True}]}
FAMILIES = [  # names of the zoo, the small network
    (r"mixtral", {"transformer": LLAMA | {"layers": 2, "experts": 4, "experts_per_token": 2}}),
    (r"llama", {"transformer": LLAMA}), (r"gpt", {"transformer": GPT}), (r"bert", {"transformer": BERT}),
    (r"resnet|alphago", convolutions(NORM)), (r"efficientnet", convolutions(NORM, True)), (r"vgg", convolutions([])),
    (r"dlrm", RECOMMENDER), (r"mlp", "mlp_boston_housing")]


class Loader(yaml.SafeLoader):
    """Scenarios have tags (!exponential) at what a copy leaves out."""


Loader.add_multi_constructor("!", lambda loader, tag, node: None)


def network(workload):
    model = workload.get("model") or workload["container"]["profile"]
    if isinstance(model, dict) and "transformer" in model:
        return model
    for names, small in FAMILIES:
        if isinstance(model, str) and re.search(names, model):
            return small
    raise LookupError(f"no small network of the family of {model}: add one to {pathlib.Path(__file__).name}")


def cut(number):
    return min(number, 2)


def devices(pool):
    """Accelerators that a node of the copy has: two where the scenario's have several."""
    if "accelerator" in pool:
        return cut(pool["accelerator"].get("count", 1))
    if "tpu" in pool:
        return 2
    machine = pool["machine"]
    if isinstance(machine, dict) or re.match(r"(n1|n2)-|large_model", machine):
        return 0
    return 1 if machine.endswith("-1g") else 2


def nodes(pool):
    count = pool.get("nodes", 1)
    return count if isinstance(count, int) else count.get("initial", 0) or count["max"]


def shrunk(name, workload, pools, said):
    """The copy as a scenario, and its ranks."""
    strategy = dict(workload.get("strategy") or {"kind": "single"})
    kind = strategy["kind"]
    if kind == "tpu":
        said.append(f"{name}: no CPU is a TPU slice: its data parallelism runs as multi_worker_mirrored")
        strategy = {"kind": "multi_worker_mirrored"}
        kind = strategy["kind"]
    serve = [p for p in pools if kind == "parameter_server" and p["name"] == "servers"]
    servers = [p for p in pools if p.get("role") == "parameter_server" or p in serve]
    workers = [p for p in pools if p.get("role") in (None, "worker", "chief") and p not in servers
               and "fallback_for" not in p]
    each = min(devices(p) for p in workers)
    one = kind in ("single", "mirrored")
    degrees = {d: cut(strategy[d]) for d in ("data", "tensor", "context", "expert") if d in strategy}
    if degrees.get("expert", 1) > 1 and strategy["data"] > strategy["expert"]:
        degrees["data"] = 2 * degrees["expert"]
    if "pipeline" in strategy:
        degrees["pipeline"] = strategy["pipeline"] if "stages" in strategy else cut(strategy["pipeline"])
    strategy |= degrees
    if kind == "parameter_server" and each > 0:
        each = strategy["accelerators_per_worker"] = cut(strategy.get("accelerators_per_worker", 1))
    elif kind == "single":
        each = min(each, 1)
    ranks = math.prod(v for d, v in degrees.items() if d != "expert")
    cuts = kind in ("model_parallel", "hybrid")
    count = 1 if one else ranks // max(1, each) if cuts else cut(strategy.get("workers") or sum(map(nodes, workers)))
    if "tpu" in workers[0]:
        count = 2
    strategy.pop("workers", None)
    if "interleave" in strategy:
        strategy["interleave"] = 2
    if "stages" in strategy:
        strategy["stages"] = [s | {"blocks": 2 if i == 0 else 1} for i, s in enumerate(strategy["stages"])]
    restart = dict(workload.get("restart") or {})
    if "min" in restart:
        restart["min"] = 1
    data = ranks if not cuts else degrees.get("data", 1)
    if not cuts:
        data = count * max(1, each)
    strategy["micro_batch"] = 2
    pipeline = degrees.get("pipeline", 1) > 1
    sync = strategy.get("mode", "synchronous") == "synchronous"
    passes = 4 if pipeline else 2 if sync else 1
    batch = 2 * data * passes
    small = network(workload)
    sequence = isinstance(small, dict) and "transformer" in small
    optimizer = {"kind": "adamw", "learning_rate": 0.005} if sequence else {"kind": "sgd", "learning_rate": 0.02}
    optimizer |= {"clip_norm": 0, "warmup_steps": 0, "schedule": "constant"}
    copy = {"model": small, "dataset": {"samples": batch, "bytes_per_sample": "32B"}, "train": {"steps": STEPS},
            "precision": workload["precision"], "global_batch": batch, "strategy": strategy, "optimizer": optimizer,
            "checkpoint": {"interval": "none"}}
    if workload.get("finetune"):
        copy["finetune"] = workload["finetune"] | {"rank": 2}
    if restart:
        copy["restart"] = restart
    if small is RECOMMENDER:
        copy["data"] = {"format": "clicks"}
    machine = {"vcpu": 8, "memory": "64GiB", "network": "10Gbps"}
    accelerator = {"accelerator": {"type": "T4" if workload["precision"] != "bf16" else "A100-SXM4-80", "count": each}}
    here = {"machine": machine} | (accelerator if each else {})
    if "stages" in strategy:
        copies = [{"name": p["name"], "nodes": p["nodes"]} | here for p in workers]
    else:
        copies = [{"name": "here", "nodes": count + restart.get("spares", 0)} | here]
    if servers:
        copies.append({"name": "servers", "role": "parameter_server", "machine": machine,
                       "nodes": cut(sum(map(nodes, servers)))})
        copies[0]["role"] = "worker"
    return ({"name": name, "workload": copy, "cluster": {"provider": "on_premises", "pools": copies}},
            count * max(1, each))


def kind_of(scenario, ranks):
    """Scenarios of one kind differ in network and sizes alone."""
    w = scenario["workload"]
    strategy = {k: v for k, v in w["strategy"].items() if k not in ("stages", "micro_batch")}
    return json.dumps([strategy, w.get("restart"), "finetune" in w, ranks, len(scenario["cluster"]["pools"])], sort_keys=True)


def losses_of(run):
    steps = {}
    with open(run / "measurements.jsonl", encoding="utf-8") as log:
        for record in map(json.loads, log):
            if record.get("record") == "step" or "loss" in record:
                steps.setdefault(record["rank"], {})[record["step"]] = record.get("loss")
    return steps


def wrong_with(run, scenario, ranks):
    steps = losses_of(run)
    if sorted(steps) != list(range(ranks)):
        return f"records of ranks {sorted(steps)}, not of {ranks}"
    for rank, losses in steps.items():
        if sorted(losses) != list(range(STEPS)):
            return f"rank {rank} has records of steps {sorted(losses)}"
        if not all(isinstance(x, float) and math.isfinite(x) for x in losses.values()):
            return f"rank {rank} has losses {losses}"
    mean = [sum(steps[r][s] for r in steps) / ranks for s in range(STEPS)]
    if not mean[-1] < mean[0]:
        return f"the loss does not fall: {mean}"
    plan = subprocess.run(f"tail -n +2 '{run}/plan.reckon' | zcat", shell=True, capture_output=True, check=True).stdout
    planned = json.loads(plan)["plan"]["jobs"][0]["strategy"]
    words = scenario["workload"]["strategy"]
    for word in ("data", "tensor", "pipeline", "context", "expert", "zero_stage", "recompute", "interleave", "overlap"):
        if word in words and planned["layout"][word] != words[word]:
            return f"the plan that was run has {word} {planned['layout'][word]}, not {words[word]}"
    return ""


def run(reckon, scenario, ranks):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / "copy.yaml").write_text(json.dumps(scenario, indent=1), encoding="utf-8")
        done = subprocess.run([reckon, "run", "copy.yaml", "--out", "run", "--replications", "20", "--replan", "off"],
                              cwd=root, capture_output=True, text=True, check=False, timeout=240,
                              env={"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": directory, "RECKON_PROBE": "off",
                                   "RECKON_CATALOGS": str(ROOT / "catalogs")})
        if done.returncode != 0:
            return f"reckon run ended with {done.returncode}: {done.stderr[-1500:]}"
        return wrong_with(root / "run", scenario, ranks)


def main():
    reckon, *words = sys.argv[1:]
    reckon = str(pathlib.Path(reckon).resolve())
    everything, names = "--all" in words, [w for w in words if not w.startswith("--")]
    said, failures, seen = [], [], set()
    for file in sorted((ROOT / "scenarios").glob("*.yaml")):
        document = yaml.load(file.read_text(encoding="utf-8"), Loader)
        workloads = [document["workload"]] if "workload" in document else [j["workload"] for j in document.get("jobs", [])]
        if names and file.stem not in names:
            continue
        if not workloads:
            said.append(f"{file.stem}: trains no job of its own")
        for i, workload in enumerate(workloads):
            name = file.stem + (f"-{i}" if i else "")
            try:
                scenario, ranks = shrunk(name, workload, document["cluster"]["pools"], said)
                kind = kind_of(scenario, ranks)
                if not everything and not names and (kind in seen or ranks > 4):
                    continue
                seen.add(kind)
                wrong = run(reckon, scenario, ranks)
            except (LookupError, ValueError, subprocess.TimeoutExpired) as error:
                wrong = f"{type(error).__name__}: {error}"
            print(f"{name}: {wrong or f'{ranks} ranks trained'}", flush=True)
            if wrong:
                failures.append(name)
    print("\n".join(said))
    return f"failed: {', '.join(failures)}" if failures else 0


if __name__ == "__main__":
    sys.exit(main())
