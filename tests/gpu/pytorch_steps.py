#!/usr/bin/env python3
"""Steps of GPT-2 small and ResNet-50 in PyTorch, as `reckon-worker` trains them: bf16 with float
master weights, AdamW or SGD with momentum, synthetic data that is on the device already.

usage: pytorch_steps.py gpt2|resnet50 BATCH STEPS [compile]; prints one JSON line.
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """[Radford 2019]: norms in front, one projection for q, k and v, GELU with tanh."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(self.ln1(x)).view(batch, tokens, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """124 million parameters; the output shares the embedding."""

    def __init__(self, vocabulary=50257, tokens=1024, width=768, layers=12, heads=12):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, target):
        x = self.embed(ids) + self.place.weight[: ids.shape[1]]
        logits = functional.linear(self.norm(self.blocks(x)), self.embed.weight)
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def gpt2(batch):
    model = Gpt2().cuda()
    ids = torch.randint(0, 50257, (batch, 1025), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1, fused=True)
    return model, optimizer, (ids[:, :-1], ids[:, 1:])


class Bottleneck(nn.Module):
    """[He 2015], with the stride in the 3 x 3 convolution (v1.5)."""

    def __init__(self, inner, width, stride):
        super().__init__()
        outer = 4 * width
        conv = lambda i, o, k, s=1: nn.Sequential(
            nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))
        self.body = nn.Sequential(conv(inner, width, 1), nn.ReLU(inplace=True), conv(width, width, 3, stride),
                                  nn.ReLU(inplace=True), conv(width, outer, 1))
        self.past = conv(inner, outer, 1, stride) if stride > 1 or inner != outer else nn.Identity()

    def forward(self, x):
        return functional.relu(self.body(x) + self.past(x), inplace=True)


class Classifier(nn.Module):
    """ResNet-50, 25.6 million parameters, without torchvision: PyTorch alone is asked for."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                  nn.MaxPool2d(3, 2, 1)]
        inner = 64
        for stage, blocks in enumerate([3, 4, 6, 3]):
            for block in range(blocks):
                width = 64 << stage
                layers.append(Bottleneck(inner, width, 2 if stage > 0 and block == 0 else 1))
                inner = 4 * width
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000)]
        self.net = nn.Sequential(*layers)

    def forward(self, images, target):
        return functional.cross_entropy(self.net(images), target)


def resnet50(batch):
    model = Classifier().cuda().to(memory_format=torch.channels_last)
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    return model, optimizer, (images, torch.randint(0, 1000, (batch,), device="cuda"))


def main():
    name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    compiled = "compile" in sys.argv[4:]
    torch.manual_seed(1)
    model, optimizer, data = {"gpt2": gpt2, "resnet50": resnet50}[name](batch)
    run = torch.compile(model) if compiled else model
    seconds = []
    for step in range(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(*data)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        if step >= steps // 3:  # the first are warm-up: allocation, choice of algorithms
            seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds)
    print(json.dumps({"model": name, "batch": batch, "compiled": compiled, "seconds": median,
                      "samples_per_second": batch / median, "loss": float(loss),
                      "torch": torch.__version__}))


main()
