#!/usr/bin/env python3
"""The rows of bench_device in PyTorch on the same GPU: products, row-wise ops, attention. Prints one JSON object a row.

Attention: MHA is scaled_dot_product_attention (the library's own choice among cuDNN, flash and efficient kernels); DCMHA is
the chunked formulation of torch_step.py, eager and under torch.compile, with the keys that a chunk can see. Times are medians over
`repeat` measurements of at least 5 ms with CUDA events.
Usage: torch_device.py [group=all|gemm|rows|attention] [row=PART OF A NAME] [repeat=20] [compile=1]
"""
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F

from torch_step import CHUNK, RANK, compose_loops

settings = dict(group="all", row="", repeat="20", compile="1")
for argument in sys.argv[1:]:
    name, _, value = argument.partition("=")
    if name not in settings:
        sys.exit(f"error: unknown setting {argument}")
    settings[name] = value
if not torch.cuda.is_available():
    sys.exit("error: PyTorch sees no CUDA device; bench_device alone still runs")
DEVICE, BF16 = torch.device("cuda"), torch.bfloat16
torch.manual_seed(7)


def events_ms(work, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / times


def row(group, name, work, elements=0):
    if settings["group"] not in ("all", group) or settings["row"] not in name:
        return
    try:
        for _ in range(2):
            work()
        times = min(1000, max(1, int(5 / events_ms(work, 1))))
        ms = statistics.median(events_ms(work, times) for _ in range(int(settings["repeat"])))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        peak = torch.cuda.max_memory_allocated() - before
        print(json.dumps(dict(name=name, ms=ms, ps_per_element=ms * 1e9 / elements if elements else 0, peak_mib=peak / 2**20)), flush=True)
    except torch.cuda.OutOfMemoryError:
        print(json.dumps(dict(name=name, error="out of memory")), flush=True)
    torch.cuda.empty_cache()


def random(*shape, deviation=1.0, dtype=BF16):
    return torch.randn(*shape, device=DEVICE, dtype=dtype) * deviation


def both(leaves, run):
    for x in leaves:
        x.requires_grad_()

    def work():
        y = run()
        y.backward(torch.ones_like(y))
        for x in leaves:
            x.grad = None

    return work


def no_grad(run):
    def work():
        with torch.no_grad():
            run()

    return work


def gemm():
    rows = 16384
    for D in (768, 1024, 2560, 4096):
        size = f"{rows}x{D} W {D}x{D}"
        x, w, dy = random(rows, D), random(D, D), random(rows, D)
        row("gemm", f"linear forward {size}", lambda: x @ w.T)
        row("gemm", f"linear dx {size}", lambda: dy @ w)
        row("gemm", f"linear dW {size}", lambda: dy.T @ x)


def rows():
    n, D, width, V = 16384, 2560, 6912, 50257
    x, y, w = random(n, D), random(n, D), random(D)
    row("rows", "add", no_grad(lambda: x + y))
    row("rows", "rms_norm forward", no_grad(lambda: F.rms_norm(x, (D,), w, 1e-5)))
    row("rows", "layer_norm forward", no_grad(lambda: F.layer_norm(x, (D,), w, w, 1e-5)))
    row("rows", "softmax forward", no_grad(lambda: x.softmax(-1)))
    leaf, weight = x.clone(), w.clone()
    row("rows", "rms_norm both", both([leaf, weight], lambda: F.rms_norm(leaf, (D,), weight, 1e-5)))
    row("rows", "softmax both", both([leaf], lambda: leaf.softmax(-1)))
    gate, up = random(n, width), random(n, width)
    row("rows", "swiglu forward", no_grad(lambda: F.silu(gate) * up))
    row("rows", "gelu forward", no_grad(lambda: F.gelu(gate)))
    g, u = gate.clone(), up.clone()
    row("rows", "swiglu both", both([g, u], lambda: F.silu(g) * u))
    logits, targets = random(n, V), torch.randint(V, (n,), device=DEVICE)
    row("rows", "cross_entropy both", both([logits], lambda: F.cross_entropy(logits, targets)))
    del logits
    parameter = random(2**28, dtype=torch.float32).requires_grad_()
    parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    row("rows", "adamw", optimizer.step)


def chunked(q, k, v, branches, window):
    """q, k, v [B,N,T,d]; branches: (read [B,T,R,N], write [B,T,R,N], gate [B,T,N]) for pre q, pre k, post q, post k."""
    T, d, parts = q.shape[2], q.shape[3], []
    for start in range(0, T, CHUNK):
        stop, first = min(start + CHUNK, T), 0 if not window else max(0, start - window + 1)
        pre_q, pre_k, post_q, post_k = (tuple(x[:, start:stop] if c % 2 == 0 else x[:, first:stop] for x in branch)
                                        for c, branch in enumerate(branches))
        i, j = torch.arange(start, stop, device=q.device)[:, None], torch.arange(first, stop, device=q.device)[None, :]
        hidden = (j > i) if not window else (j > i) | (j <= i - window)
        scores = compose_loops((q[:, :, start:stop] / math.sqrt(d)) @ k[:, :, first:stop].transpose(2, 3), pre_q, pre_k)
        probabilities = scores.float().masked_fill(hidden, float("-inf")).softmax(-1).to(q.dtype)
        parts.append(compose_loops(probabilities, post_q, post_k) @ v[:, :, first:stop])
    return torch.cat(parts, dim=2)


def attention():
    shapes = [("405M N16 d64 B8 T2048", 8, 16, 64, 2048), ("1.4B N32 d64 B8 T2048", 8, 32, 64, 2048), ("2.8B N32 d80 B8 T2048", 8, 32, 80, 2048),
              ("6.9B N32 d128 B8 T2048", 8, 32, 128, 2048), ("405M N16 d64 B1 T8192", 1, 16, 64, 8192), ("6.9B N32 d128 B1 T8192", 1, 32, 128, 8192)]
    compiled = torch.compile(chunked, dynamic=False) if settings["compile"] == "1" else None
    for name, B, N, d, T in shapes:
        for window in (0, 256):
            where = f"{name} {'W256' if window else 'global'}"
            if settings["row"] not in f"DCMHA {where} both" and settings["row"] not in f"MHA {where} both":
                continue
            q, k, v = random(B, N, T, d), random(B, N, T, d), random(B, N, T, d)
            unmasked = [min(t + 1, window or T) for t in range(T)]
            elements = B * N * sum(unmasked)
            mask = None
            if window:
                i, j = torch.arange(T, device=DEVICE)[:, None], torch.arange(T, device=DEVICE)[None, :]
                mask = (j <= i) & (j > i - window)
            sdpa = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
            row("attention", f"MHA {where} forward", no_grad(sdpa), elements)
            row("attention", f"MHA {where} both", both([q, k, v], sdpa), elements)
            branches = [tuple(random(B, T, *size, deviation=0.3) for size in ((RANK, N), (RANK, N), (N,))) for _ in range(4)]
            leaves = [q, k, v] + [x for branch in branches for x in branch]
            for suffix, function in (("", chunked), (" compiled", compiled)):
                if function:
                    run = lambda: function(q, k, v, branches, window)
                    row("attention", f"DCMHA {where} forward{suffix}", no_grad(run), elements)
                    row("attention", f"DCMHA {where} both{suffix}", both(leaves, run), elements)


for group, work in dict(gemm=gemm, rows=rows, attention=attention).items():
    if settings["group"] in ("all", group):
        work()
