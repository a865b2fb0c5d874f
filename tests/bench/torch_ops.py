#!/usr/bin/env python3
"""Times ops one by one in PyTorch on the CPU: the other side of bench_ops, with the same rows, settings and output.

Usage: torch_ops.py threads=2 elements=10,1000,100000,1000000,10000000 only=TEXT milliseconds=60
A call from Python costs some microseconds, which counts in the rows of 10 and 1000 elements.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F

settings = dict(threads="2", elements="10,1000,100000,1000000,10000000", only="", milliseconds="60")
for argument in sys.argv[1:]:
    name, _, value = argument.partition("=")
    if name not in settings:
        sys.exit(f"error: unknown setting {argument}")
    settings[name] = value
torch.set_num_threads(int(settings["threads"]))
torch.manual_seed(7)
BUDGET, GROUPS = float(settings["milliseconds"]) * 1e-3, 6


def seconds_of(work, calls):
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return time.perf_counter() - start


def measure(op, elements, work):
    if settings["only"] not in op:
        return
    work()
    calls = max(1, int(BUDGET / GROUPS / max(seconds_of(work, 1), 1e-8)))
    best = min(seconds_of(work, calls) / calls for _ in range(GROUPS))
    print(json.dumps(dict(op=op, elements=elements, us=best * 1e6)), flush=True)


def forward(op, elements, work):
    with torch.no_grad():
        measure(op, elements, work)


def gradients(op, elements, inputs, call):
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    dy = torch.randn_like(call(*inputs).detach())

    def work():
        call(*inputs).backward(dy)
        for x in inputs:
            x.grad = None

    measure(op + ", gradients", elements, work)


def of_rows(rows, columns):
    n = rows * columns
    x, y = torch.randn(rows, columns), torch.randn(rows, columns)
    positive, row, column, mask = x * x + 0.1, torch.randn(columns), torch.randn(rows, 1), x > 0
    weight, bias, half = torch.randn(columns), torch.randn(columns), x.bfloat16()
    integers, ids = torch.randint(-1000, 1000, (rows, columns)), torch.randint(0, rows, (rows,))
    for name, call in {
        "add": lambda: x + y,
        "add a row": lambda: x + row,
        "add a column": lambda: x + column,
        "mul": lambda: x * y,
        "div": lambda: x / positive,
        "maximum": lambda: torch.maximum(x, y),
        "greater": lambda: x > y,
        "where": lambda: torch.where(mask, x, y),
        "clamp": lambda: x.clamp(-1, 1),
        "relu": lambda: x.relu(),
        "abs": lambda: x.abs(),
        "square": lambda: x.square(),
        "pow 3": lambda: x**3,
        "pow 2.5": lambda: positive**2.5,
        "pow of tensors": lambda: positive**y,
        "sqrt": lambda: positive.sqrt(),
        "rsqrt": lambda: positive.rsqrt(),
        "exp": lambda: x.exp(),
        "log": lambda: positive.log(),
        "expm1": lambda: x.expm1(),
        "log1p": lambda: positive.log1p(),
        "sin": lambda: x.sin(),
        "atan": lambda: x.atan(),
        "erf": lambda: x.erf(),
        "tanh": lambda: x.tanh(),
        "sigmoid": lambda: x.sigmoid(),
        "silu": lambda: F.silu(x),
        "gelu": lambda: F.gelu(x),
        "gelu_tanh": lambda: F.gelu(x, approximate="tanh"),
        "softplus": lambda: F.softplus(x),
        "floor": lambda: x.floor(),
        "remainder": lambda: torch.remainder(x, positive),
        "add of i64": lambda: integers + integers,
        "to bf16": lambda: x.bfloat16(),
        "add of bf16": lambda: half + half,
        "sum": lambda: x.sum(),
        "sum of columns": lambda: x.sum(0),
        "sum of rows": lambda: x.sum(1),
        "sum of i64": lambda: integers.sum(),
        "max of columns": lambda: x.amax(0),
        "max of rows": lambda: x.amax(1),
        "argmax": lambda: x.argmax(1),
        "var of rows": lambda: x.var(1, correction=0),
        "norm": lambda: torch.linalg.vector_norm(x),
        "logsumexp": lambda: x.logsumexp(1),
        "softmax": lambda: x.softmax(1),
        "softmax of columns": lambda: x.softmax(0),
        "log_softmax": lambda: x.log_softmax(1),
        "layer_norm": lambda: F.layer_norm(x, (columns,), weight, bias),
        "rms_norm": lambda: F.rms_norm(x, (columns,), weight, 1e-5),
        "cumsum of rows": lambda: x.cumsum(1),
        "cumsum of columns": lambda: x.cumsum(0),
        "sort": lambda: x.sort(1),
        "topk 8": lambda: x.topk(min(8, columns)),
        "transpose": lambda: x.t().contiguous(),
        "flip": lambda: x.flip(1),
        "concat": lambda: torch.cat([x, y], 1),
        "index_select": lambda: x.index_select(0, ids),
        "rand": lambda: torch.rand(rows, columns),
        "randn": lambda: torch.randn(rows, columns),
        "dropout": lambda: F.dropout(x, 0.1),
    }.items():
        forward(name, n, call)
    gradients("mul", n, [x, y], lambda x, y: x * y)
    gradients("add a row", n, [x, row], lambda x, row: x + row)
    gradients("gelu", n, [x], F.gelu)
    gradients("pow 3", n, [x], lambda x: x**3)
    gradients("softmax", n, [x], lambda x: x.softmax(1))
    gradients("layer_norm", n, [x, weight, bias], lambda x, w, b: F.layer_norm(x, (columns,), w, b))
    gradients("index_select", n, [x], lambda x: x.index_select(0, ids))


def of_sizes(limit):
    for dtype, of in ((torch.float32, " f32"), (torch.bfloat16, " bf16")):
        for n in (8, 16, 32, 64, 128, 256, 512, 1024, 1536, 2048):
            if n * n <= limit:
                a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
                forward("matmul" + of, n * n, lambda: a @ b)
        for rows, ins, out in ((1, 768, 3072), (8, 768, 3072), (49, 768, 768), (128, 768, 3072), (1024, 768, 3072),
                               (1024, 3072, 768), (4096, 256, 768), (4096, 768, 32), (4096, 32, 256)):
            if rows * out <= limit:
                x, w = torch.randn(rows, ins).to(dtype), torch.randn(out, ins).to(dtype)
                forward(f"product {rows} x {ins} by {out}{of}", rows * out, lambda: F.linear(x, w))
        q, k = torch.randn(96, 128, 64).to(dtype), torch.randn(96, 128, 64).to(dtype)
        if 96 * 128 * 128 <= limit:
            forward("product 96 of 128 x 64 by 128" + of, 96 * 128 * 128, lambda: q @ k.mT)
    for name, channels, size, filters, kernel, stride, padding, groups in (
        ("conv2d 3x3, 32 to 64 of 28", 32, 28, 64, 3, 1, 1, 1),
        ("conv2d 7x7 by 2, 3 to 64 of 224", 3, 224, 64, 7, 2, 3, 1),
        ("conv2d 1x1, 64 to 64 of 28", 64, 28, 64, 1, 1, 0, 1),
        ("conv2d 3x3, 64 groups of 28", 64, 28, 64, 3, 1, 1, 64),
    ):
        out = 8 * filters * (size // stride) ** 2
        if out > limit:
            continue
        x, w = torch.randn(8, channels, size, size), torch.randn(filters, channels // groups, kernel, kernel)
        call = lambda x, w: F.conv2d(x, w, stride=stride, padding=padding, groups=groups)
        forward(name, out, lambda: call(x, w))
        gradients(name, out, [x, w], call)
    if limit >= 1000000:
        q = torch.randn(4, 8, 512, 64)
        forward("attention, causal 4x8x512x64", q.numel(), lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True))
        logits, targets = torch.randn(2048, 8192), torch.randint(0, 8192, (2048,))
        gradients("cross_entropy 2048x8192", logits.numel(), [logits], lambda x: F.cross_entropy(x, targets))


sizes = [int(text) for text in settings["elements"].split(",")]
for n in sizes:
    columns = min(n, 100 if n < 1000000 else 1000)
    of_rows(n // columns, columns)
of_sizes(max(sizes))
