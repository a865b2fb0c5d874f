#!/usr/bin/env python3
"""The measurements of bench_memory in eager PyTorch: the same arrays, the same bytes counted.

Usage: torch_memory.py threads=1 repeat=5 rows=16384 width=1024       prints one JSON object per line
"""
import json
import sys
import time

import torch
import torch.nn.functional as F

settings = dict(threads=1, repeat=5, rows=16384, width=1024)
for argument in sys.argv[1:]:
    name, value = argument.split("=")
    if name not in settings:
        sys.exit(f"error: unknown setting {argument}")
    settings[name] = int(value)
rows, width = settings["rows"], settings["width"]
torch.set_num_threads(settings["threads"])
torch.manual_seed(7)
copy_rate = None


def measure(name, bytes_per_value, work):
    global copy_rate
    times = []
    for _ in range(settings["repeat"] + 1):  # the first one warms up
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    rate = bytes_per_value * rows * width / min(times[1:]) * 1e-9
    copy_rate = copy_rate or rate
    print(json.dumps(dict(what=name, threads=settings["threads"], ms=round(min(times[1:]) * 1e3, 2), gb_per_s=round(rate, 1),
                          of_copy=round(rate / copy_rate, 2))), flush=True)


def measure_op(name, forward_bytes, both_bytes, inputs, op):
    def forward():
        with torch.no_grad():
            op(*inputs)

    def both():
        y = op(*inputs)
        y.backward(torch.ones_like(y))
        for x in inputs:
            x.grad = None

    measure(name + " forward", forward_bytes, forward)
    for x in inputs:
        x.requires_grad_()
    measure(name + " both", both_bytes, both)


def measure_adamw(name, size):
    parameters = [torch.randn(size) for _ in range(rows * width // size)]
    for p in parameters:
        p.grad = torch.randn(size)
    measure(name, 28, torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True).step)


x, y = torch.randn(rows, width), torch.empty(rows, width)
measure("copy", 8, lambda: y.copy_(x))
measure_adamw("adamw, one tensor", rows * width)
measure_adamw("adamw, tensors of 65536", 65536)
measure_adamw("adamw, tensors of 1024", 1024)
make = lambda *shape: torch.randn(*shape)
measure_op("rms_norm", 8, 20, [make(rows, width), make(width)], lambda x, w: F.rms_norm(x, (width,), w, 1e-6))
measure_op("add, then rms_norm", 20, 32, [make(rows, width), make(rows, width), make(width)],
           lambda x, r, w: F.rms_norm(x + r, (width,), w, 1e-6))
measure_op("swiglu", 12, 32, [make(rows, width), make(rows, width)], lambda g, u: F.silu(g) * u)
targets = torch.zeros(rows, dtype=torch.long)
measure_op("cross_entropy", 4, 12, [make(rows, width)], lambda x: F.cross_entropy(x, targets))
