#!/usr/bin/env python3
"""Times one attention call in PyTorch on the CPU, eager or compiled: the other side of bench_attention, with the same settings.

kind=mha: scaled_dot_product_attention. kind=dcmha: chunks of 128 queries with only the keys of their band, heads mixed rank
by rank, as in torch_step.py. Prints one JSON object with nanoseconds per score element that a query can see, times threads.
Usage: torch_attention.py heads=16 head_dim=64 length=2048 window=0 kind=dcmha mixing=loops|einsum dtype=f32|bf16 compile=0|1
                          threads=1 repeat=3
"""
import json
import math
import resource
import sys
import time

import torch
import torch.nn.functional as F

from torch_step import CHUNK, RANK, compose_einsum, compose_loops

settings = dict(heads="16", head_dim="64", length="2048", window="0", kind="dcmha", mixing="loops", dtype="f32", compile="0",
                threads="1", repeat="3")
for argument in sys.argv[1:]:
    name, value = argument.split("=")
    if name not in settings:
        sys.exit(f"error: unknown setting {argument}")
    settings[name] = value
N, d, T, window, repeat = (int(settings[name]) for name in ("heads", "head_dim", "length", "window", "repeat"))
torch.set_num_threads(int(settings["threads"]))
torch.manual_seed(7)
dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[settings["dtype"]]
q, k, v = (torch.randn(1, N, T, d).to(dtype).requires_grad_() for _ in range(3))
make = lambda *shape: (0.3 * torch.randn(1, T, *shape)).to(dtype).requires_grad_()
branches = [(make(RANK, N), make(RANK, N), make(N)) for _ in range(4)]
mixing = {"loops": compose_loops, "einsum": compose_einsum}[settings["mixing"]]


def hidden(start, stop, first):
    i, j = torch.arange(start, stop)[:, None], torch.arange(first, stop)[None, :]
    return (j > i) if window == 0 else (j > i) | (j <= i - window)


def chunks():
    for start in range(0, T, CHUNK):
        yield start, min(start + CHUNK, T), 0 if window == 0 else max(0, start - window + 1)


def mha():
    if window == 0:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.cat([F.scaled_dot_product_attention(q[:, :, a:b], k[:, :, f:b], v[:, :, f:b], attn_mask=~hidden(a, b, f))
                      for a, b, f in chunks()], dim=2)


def rows(q, k, v, mask, pre_q, pre_k, post_q, post_k):
    scores = mixing((q / math.sqrt(d)) @ k.transpose(2, 3), pre_q, pre_k)
    return mixing(scores.masked_fill(mask, float("-inf")).softmax(-1), post_q, post_k) @ v


if settings["compile"] == "1":
    rows = torch.compile(rows, dynamic=True)


def dcmha():
    parts = []
    for a, b, f in chunks():
        factors = (tuple(x[:, a:b] if c % 2 == 0 else x[:, f:b] for x in branch) for c, branch in enumerate(branches))
        parts.append(rows(q[:, :, a:b], k[:, :, f:b], v[:, :, f:b], hidden(a, b, f), *factors))
    return torch.cat(parts, dim=2)


def best(work):
    times = []
    for _ in range(repeat + 1):  # the first one warms up
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def forward():
    with torch.no_grad():
        run()


def both():
    run().sum().backward()
    for x in [q, k, v] + [x for branch in branches for x in branch]:
        x.grad = None


run = {"mha": mha, "dcmha": dcmha}[settings["kind"]]
elements = N * sum(min(t + 1, window or T) for t in range(T))
forward_seconds, both_seconds = best(forward), best(both)
per = 1e9 * torch.get_num_threads() / elements
print(json.dumps(dict(framework=f"torch {torch.__version__}", **{name: settings[name] for name in ("kind", "mixing", "dtype", "compile")},
                      threads=torch.get_num_threads(), forward_seconds=forward_seconds, both_seconds=both_seconds,
                      forward_ns=forward_seconds * per, both_ns=both_seconds * per,
                      peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
