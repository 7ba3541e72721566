#!/usr/bin/env python3
"""Writes the page of a run of tests/gpu/run: forecasts made before the steps ran, what was measured,
the error before and after calibrating on one batch size, and PyTorch beside it.

usage: report.py RESULTS_DIR > page.md
"""
import json
import pathlib
import statistics
import sys

CALIBRATED_ON = {"gpt2": 16, "resnet50": 128}


def measured_step(path):
    """Median seconds of a step without the wait for data, the wait, and the steps behind it."""
    steps = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record.get("record") == "step":
            steps.append(record)
    steps = steps[len(steps) // 3 :]  # the first are warm-up
    if not steps:
        return None
    waits = [s.get("input_seconds") or 0.0 for s in steps]
    work = [s["seconds"] - w for s, w in zip(steps, waits)]
    return statistics.median(work), statistics.median(waits), len(steps)


def step_of(path):
    try:
        return json.loads(path.read_text())["step"]["seconds"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rows_of(root, model):
    rows = []
    for path in sorted(root.glob(f"forecast-{model}-*.json"), key=lambda p: int(p.stem.split("-")[-1])):
        batch = int(path.stem.split("-")[-1])
        run = root / f"run-{model}-{batch}" / "measurements.jsonl"
        rows.append((batch, step_of(path), step_of(root / f"calibrated-{model}-{batch}.json"),
                     measured_step(run) if run.exists() else None))
    return rows


def percent(value, of):
    return "-" if value is None or of is None else f"{100 * (value / of - 1):+.1f} %"


def table(root, model):
    rows = rows_of(root, model)
    out = [f"\n## {model}\n",
           "| batch | forecast (ms) | measured (ms) | data wait (ms) | error | error, calibrated | "
           "samples/s | PyTorch, samples/s | compiled |",
           "|---|---|---|---|---|---|---|---|---|"]
    torch = {}
    for path in root.glob(f"torch-{model}-*.json"):
        for line in path.read_text().splitlines():
            if line.startswith("{"):
                record = json.loads(line)
                torch[record["batch"], record["compiled"]] = record["samples_per_second"]
    number = lambda x, digits=1: "not measured" if x is None else f"{x:.{digits}f}"
    for batch, forecast, calibrated, run in rows:
        work, wait = (run[0], run[1]) if run else (None, None)
        mark = "(calibrated on)" if batch == CALIBRATED_ON[model] else percent(calibrated, work)
        out.append("| " + " | ".join([
            str(batch), number(forecast and forecast * 1e3), number(work and work * 1e3),
            number(wait * 1e3 if wait is not None else None), percent(forecast, work), mark,
            number(work and batch / work), number(torch.get((batch, False))),
            number(torch.get((batch, True)))]) + " |")
    return "\n".join(out)


def main():
    root = pathlib.Path(sys.argv[1])
    text = lambda name: (root / name).read_text().strip() if (root / name).exists() else "not run"
    print(f"# Training steps on {text('device.txt').splitlines()[0]}, {text('date.txt')}\n")
    print("Command: `tests/gpu/run`. Forecasts were written before the first step ran. `measured`: median of a "
          "step's wall time without the wait for data, the first third left out as warm-up; `error`: forecast / measured "
          "- 1; `calibrated`: forecast again, before those steps ran, with what `reckon calibrate` made of the run "
          "of one batch size.\n")
    print(f"Device: {text('device.txt')}\n")
    print(f"Kernels against references: {text('kernels.txt')}\n")
    print(f"NCCL, one rank: {text('nccl.txt')}\n")
    print(f"A manifest's command line, one rank over NCCL: {text('pod.txt')}\n")
    print(f"compute-sanitizer: {text('sanitizer.txt')}\n")
    print(f"Convolutions, bf16 (microseconds, medians):\n\n{text('convolutions.txt')}\n")
    print(f"What failed or did not run: {text('failures.txt')}")
    for model in CALIBRATED_ON:
        print(table(root, model))


main()
