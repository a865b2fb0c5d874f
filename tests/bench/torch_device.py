#!/usr/bin/env python3
"""The rows of bench_device in PyTorch on the same GPU: products, row-wise ops, attention. Prints one JSON object a row.

Attention: MHA is scaled_dot_product_attention (the library's own choice of kernels), and once each by cuDNN and by flash
attention, with and without deterministic gradients; DCMHA is the chunked formulation of torch_step.py, eager and compiled,
with the keys that are unmasked for a chunk. One function, of one chunk, is compiled, as one graph and for every size that it
meets: where Dynamo would continue in eager mode, the row has an error that says so. Times are medians over `repeat`
measurements of at least 5 ms with CUDA events. A row that fails is printed with its error, and the next one follows.
Usage: torch_device.py [group=all|gemm|rows|attention] [row=PART OF A NAME] [repeat=20] [compile=1] [device=cuda|cpu] [size=full|tiny]
"""
import contextlib
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from torch_step import CHUNK, RANK, compose_loops

settings = dict(group="all", row="", repeat="20", compile="1", device="cuda", size="full")
for argument in sys.argv[1:]:
    name, _, value = argument.partition("=")
    if name not in settings:
        sys.exit(f"error: unknown setting {argument}")
    settings[name] = value
if settings["device"] == "cuda" and not torch.cuda.is_available():
    sys.exit("error: PyTorch finds no CUDA device; bench_device alone still runs")
DEVICE, BF16 = torch.device(settings["device"]), torch.bfloat16
ON_GPU, TINY = settings["device"] == "cuda", settings["size"] == "tiny"
torch.manual_seed(7)


def events_ms(work, times):
    if not ON_GPU:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - start) * 1e3 / times
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
        times = 1 if TINY else min(1000, max(1, int(5 / events_ms(work, 1))))
        ms = statistics.median(events_ms(work, times) for _ in range(int(settings["repeat"])))
        peak = peak_of(work) if ON_GPU else 0
        print(json.dumps(dict(name=name, ms=ms, ps_per_element=ms * 1e9 / elements if elements else 0, peak_mib=peak / 2**20)), flush=True)
    except Exception as error:  # the next row may work; a broken context fails each of them in no time
        memory = isinstance(error, torch.cuda.OutOfMemoryError)
        text = "out of memory" if memory else f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"[:300]
        if "Recompile" in text or "recompile" in text or "Unsupported" in text:
            text = "fell back to eager: " + text
        print(json.dumps(dict(name=name, error=text)), flush=True)
    if ON_GPU:
        torch.cuda.empty_cache()


def peak_of(work):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    return torch.cuda.max_memory_allocated() - before


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
    rows = 64 if TINY else 16384
    for D in (32,) if TINY else (768, 1024, 2560, 4096):
        size = f"{rows}x{D} W {D}x{D}"
        x, w, dy = random(rows, D), random(D, D), random(rows, D)
        row("gemm", f"linear forward {size}", lambda: x @ w.T)
        row("gemm", f"linear dx {size}", lambda: dy @ w)
        row("gemm", f"linear dW {size}", lambda: dy.T @ x)


def rows():
    n, D, width, V = (16, 64, 96, 100) if TINY else (16384, 2560, 6912, 50257)
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
    parameter = random(1000 if TINY else 2**28, dtype=torch.float32).requires_grad_()
    parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=ON_GPU)
    row("rows", "adamw", optimizer.step)


def chunk(q, k, v, hidden, pre_q, pre_k, post_q, post_k):
    """q [B,N,rows,d], k and v [B,N,keys,d], hidden [rows,keys]; branches: read and write [B,.,R,N], gate [B,.,N]."""
    scores = compose_loops((q / math.sqrt(q.shape[3])) @ k.transpose(2, 3), pre_q, pre_k)
    probabilities = scores.float().masked_fill(hidden, float("-inf")).softmax(-1).to(q.dtype)
    return compose_loops(probabilities, post_q, post_k) @ v


def masks(T, window):
    """(start, stop, first key, masked pairs) of each chunk."""
    parts = []
    for start in range(0, T, CHUNK):
        stop, first = min(start + CHUNK, T), 0 if not window else max(0, start - window + 1)
        i, j = torch.arange(start, stop, device=DEVICE)[:, None], torch.arange(first, stop, device=DEVICE)[None, :]
        parts.append((start, stop, first, (j > i) if not window else (j > i) | (j <= i - window)))
    return parts


def chunked(function, q, k, v, branches, parts):
    """branches: of pre queries, pre keys, post queries, post keys."""
    results = []
    for start, stop, first, hidden in parts:
        of_chunk = [tuple(x[:, start:stop] if c % 2 == 0 else x[:, first:stop] for x in branch) for c, branch in enumerate(branches)]
        results.append(function(q[:, :, start:stop], k[:, :, first:stop], v[:, :, first:stop], hidden, *of_chunk))
    return torch.cat(results, dim=2)


def compiled_chunk():
    config = torch._dynamo.config
    for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit", "accumulated_cache_size_limit"):
        if hasattr(config, name):
            setattr(config, name, 256)
    for name in ("fail_on_recompile_limit_hit", "fail_on_cache_limit_hit"):
        if hasattr(config, name):
            setattr(config, name, True)
    return torch.compile(chunk, fullgraph=True)


@contextlib.contextmanager
def sdpa_by(backend, deterministic):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic
    torch.use_deterministic_algorithms(deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would be part of the time
    torch.backends.cudnn.deterministic = deterministic
    try:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.deterministic = before[1]


def within(context, work):
    def run():
        with context():
            work()

    return run


def attention():
    shapes = [("405M N16 d64 B8 T2048", 8, 16, 64, 2048), ("1.4B N32 d64 B8 T2048", 8, 32, 64, 2048), ("2.8B N32 d80 B8 T2048", 8, 32, 80, 2048),
              ("6.9B N32 d128 B8 T2048", 8, 32, 128, 2048), ("405M N16 d64 B1 T8192", 1, 16, 64, 8192), ("6.9B N32 d128 B1 T8192", 1, 32, 128, 8192)]
    if TINY:
        shapes = [("tiny N16 d16 B1 T32", 1, 16, 16, 32)]
    compiled = compiled_chunk() if settings["compile"] == "1" else None
    for name, B, N, d, T in shapes:
        for window in (0, 8 if TINY else 256):
            where = f"{name} {f'W{window}' if window else 'global'}"
            if settings["row"] not in f"DCMHA {where} both compiled" and settings["row"] not in f"MHA {where} both":
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
            if not window:  # a mask excludes both
                for backend, label in (("CUDNN_ATTENTION", "cuDNN"), ("FLASH_ATTENTION", "flash")):
                    for deterministic in (False, True):
                        label_of_row = f"MHA {where} both, {label}{', deterministic' if deterministic else ''}"
                        context = lambda: sdpa_by(backend, deterministic)
                        row("attention", label_of_row, within(context, both([q, k, v], sdpa)), elements)
            branches = [tuple(random(B, T, *size, deviation=0.3) for size in ((RANK, N), (RANK, N), (N,))) for _ in range(4)]
            leaves, parts = [q, k, v] + [x for branch in branches for x in branch], masks(T, window)
            for suffix, function in (("", chunk), (" compiled", compiled)):
                if function:
                    run = lambda: chunked(function, q, k, v, branches, parts)
                    row("attention", f"DCMHA {where} forward{suffix}", no_grad(run), elements)
                    row("attention", f"DCMHA {where} both{suffix}", both(leaves, run), elements)


for group, work in dict(gemm=gemm, rows=rows, attention=attention).items():
    if settings["group"] in ("all", group):
        work()
