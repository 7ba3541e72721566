#!/usr/bin/env python3
"""train.py ddp|zero STEPS - a small perceptron under PyTorch's DistributedDataParallel over Gloo, with SGD or with a
ZeroRedundancyOptimizer around Adam. A program as users have them: it knows nothing of reckon but the variables that
torchrun gives, and RECKON_JOB_DIR for its files. Its data depend on the step and the rank alone, so that a run which was
interrupted ends with the weights of one that was not.
"""
import hashlib
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

FEATURES, HIDDEN, BATCH, SAVE_EVERY = 64, 512, 64, 50


def batch_of(step, rank):
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    x = torch.randn(BATCH, FEATURES, generator=generator)
    return x, x[:, :1] - 0.5 * x[:, 1:2]


def save(path, state):
    """Written beside and renamed: a kill leaves the one before."""
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def main(kind, steps):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN),
                                torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))
    model = DistributedDataParallel(model)
    if kind == "zero":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    folder = pathlib.Path(os.environ["RECKON_JOB_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, first = folder / "checkpoint.pt", 0
    if checkpoint.is_file():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
        print(f"resumed from step {first}", flush=True)
    for step in range(first, steps):
        x, y = batch_of(step, rank)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        print(f"step {step + 1}/{steps} loss {loss.item():.5f}", flush=True)
        if (step + 1) % SAVE_EVERY == 0:
            if kind == "zero":
                optimizer.consolidate_state_dict(to=0)  # collective
            if rank == 0:
                save(checkpoint, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1})
                print(f"saved checkpoint-{step + 1}", flush=True)
            dist.barrier()
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    (folder / f"rank-{rank}.sha256").write_text(digest)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
