#!/usr/bin/env python3
"""Times full training steps of a DCFormer++ or Transformer++ in PyTorch on the CPU or a GPU, eager or compiled block by block,
in f32 or with bf16 autocast: the other side of `braid bench`.

Prints one JSON object: median step seconds, tokens per second, peak resident memory, and (with --profile) where the
time goes. Needs torch; nothing else of Braid does.

The model is written the way one writes it in PyTorch: attention in chunks of 128 queries, each of which sees only the
keys of its causal band, SDPA for the plain transformer, fused AdamW. Letters: B batch, T queries, S keys, D width, N heads,
d head size, R rank 2, K = 4 N hidden width of the weight generator, F feed-forward width.
"""
import argparse
import json
import math
import platform
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 128
RANK = 2


class RMSNorm(nn.Module):
    def __init__(self, size, eps, name="weight"):
        super().__init__()
        self.eps, self.name = eps, name
        setattr(self, name, nn.Parameter(torch.ones(size)))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), getattr(self, self.name), self.eps)


def rope_table(length, size, base, dtype):
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    frequency = 1.0 / base ** (torch.arange(0, size, 2, dtype=exact) / size)
    angle = torch.outer(torch.arange(length, dtype=exact), frequency)
    return angle.cos().to(dtype), angle.sin().to(dtype)  # [T, d/2] each


def rotate(x, table):  # x [B,T,N,d]
    cos, sin = (t[: x.shape[1], None, :] for t in table)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class CompositionWeights(nn.Module):
    """The dynamic weights of the four branches (pre query, pre key, post query, post key) from the block's input."""

    def __init__(self, dim, heads, gelu):
        super().__init__()
        hidden = 2 * RANK * heads
        self.heads, self.gelu = heads, gelu
        self.dw1 = nn.Parameter(torch.randn(dim, 1, 4, hidden) * math.sqrt(2 / (dim + hidden)))
        self.qkw = nn.Parameter(torch.randn(1, 4, hidden, 2 * RANK, heads) * (0.02 / math.sqrt(hidden) / (heads + RANK)))
        self.dd = nn.Parameter(torch.randn(dim, 1, 4 * heads) * (0.005 * math.sqrt(2 / (dim + heads))))

    def forward(self, u):  # u [B,T,D] -> per branch: read [B,T,R,N], write [B,T,R,N], gate [B,T,N]
        b, t, _ = u.shape
        hidden = F.gelu(u @ self.dw1.flatten(1), approximate=self.gelu).view(b * t, 4, -1).transpose(0, 1)
        factors = torch.bmm(hidden, self.qkw[0].flatten(2)).view(4, b, t, 2, RANK, self.heads)
        read = F.rms_norm(factors[:, :, :, 0], (self.heads,), None, 1e-6)
        gates = torch.tanh(u @ self.dd.flatten(1)).view(b, t, 4, self.heads)
        return [(read[c], factors[c, :, :, 1], gates[:, :, c]) for c in range(4)]


def compose_einsum(a, query, key):
    """a [B,N,T,S]: every (query, key) pair's vector over the heads is multiplied by its own N x N matrix."""
    q1, q2, qdd = query
    k1, k2, kdd = key
    out = a * (1 + qdd.transpose(1, 2)[..., None] + kdd.transpose(1, 2)[:, :, None])
    out = out + torch.einsum("brts,btrn->bnts", torch.einsum("bnts,btrn->brts", a, q1), q2)
    return out + torch.einsum("brts,bsrn->bnts", torch.einsum("bnts,bsrn->brts", a, k1), k2)


def compose_loops(a, query, key):
    """The same as products and sums, rank by rank."""
    out = a
    for (w1, w2, gate), axis in ((query, 3), (key, 2)):
        for r in range(RANK):
            read, write = (w[:, :, r].transpose(1, 2).unsqueeze(axis) for w in (w1, w2))
            out = out + (a * read).sum(1, keepdim=True) * write
        out = out + a * gate.transpose(1, 2).unsqueeze(axis)
    return out


class Attention(nn.Module):
    def __init__(self, cfg, window):
        super().__init__()
        self.heads, self.size, self.window = cfg.heads, cfg.dim // cfg.heads, window
        self.wqkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.wo = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.dcmha = cfg.model == "dcformer"
        if self.dcmha:
            self.compose = {"einsum": compose_einsum, "loops": compose_loops}[cfg.compose]
            self.dyn_w_proj = CompositionWeights(cfg.dim, cfg.heads, cfg.gelu)
            self.q_norm = RMSNorm(self.size, cfg.qk_eps, "scale")
            self.k_norm = RMSNorm(self.size, cfg.qk_eps, "scale")

    def forward(self, u, table):
        b, t, _ = u.shape
        q, k, v = self.wqkv(u).view(b, t, 3, self.heads, self.size).unbind(2)
        if not self.dcmha:
            q, k, v = (x.transpose(1, 2) for x in (rotate(q, table), rotate(k, table), v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.wo(y.transpose(1, 2).reshape(b, t, -1))
        q, k = rotate(self.q_norm(q), table), rotate(self.k_norm(k), table)
        q, k, v = (x.transpose(1, 2) for x in (q / math.sqrt(self.size), k, v))  # [B,N,T,d]
        weights = self.dyn_w_proj(u)
        chunks = []
        for start in range(0, t, CHUNK):
            stop = min(start + CHUNK, t)
            first = 0 if self.window is None else max(0, start - self.window + 1)
            chunks.append(self.chunk(q[:, :, start:stop], k[:, :, first:stop], v[:, :, first:stop], weights, start, first))
        return self.wo(torch.cat(chunks, dim=2).transpose(1, 2).reshape(b, t, -1))

    def chunk(self, q, k, v, weights, start, first):
        stop = start + q.shape[2]
        pre_q, pre_k, post_q, post_k = (
            tuple(x[:, start:stop] if c % 2 == 0 else x[:, first:stop] for x in branch) for c, branch in enumerate(weights)
        )
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(first, stop, device=q.device)[None, :]
        hidden = j > i if self.window is None else (j > i) | (j <= i - self.window)
        scores = self.compose(q @ k.transpose(2, 3), pre_q, pre_k)
        probabilities = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.compose(probabilities, post_q, post_k) @ v


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, cfg, window):
        super().__init__()
        self.attention = Attention(cfg, window)
        self.feed_forward = FeedForward(cfg.dim, cfg.hidden)
        self.attention_norm = RMSNorm(cfg.dim, cfg.eps)
        self.ffn_norm = RMSNorm(cfg.dim, cfg.eps)

    def forward(self, x, table):
        x = x + self.attention(self.attention_norm(x), table)
        return x + self.feed_forward(self.ffn_norm(x))


class Model(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tok_embeddings = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList(Block(cfg, window) for window in layer_windows(cfg))
        self.norm = RMSNorm(cfg.dim, cfg.eps)
        self.output = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.006)

    def forward(self, ids):  # ids [B,T] -> logits [B,T,V]
        x = self.tok_embeddings(ids)
        table = [t.to(x.device) for t in rope_table(ids.shape[1], self.cfg.dim // self.cfg.heads, 10000.0, x.dtype)]
        for layer in self.layers:
            x = layer(x, table)
        return self.output(self.norm(x))

    def loss(self, ids, targets):
        return F.cross_entropy(self(ids).flatten(0, 1), targets.flatten(), ignore_index=-100)


def layer_windows(cfg):
    """Window of each layer, None for global ones. The plain transformer is global throughout."""
    if cfg.model == "transformer":
        return [None] * cfg.layers
    return [cfg.window if cfg.pattern[i % len(cfg.pattern)] == "L" else None for i in range(cfg.layers)]


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--model", choices=("dcformer", "transformer"), default="dcformer")
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--dim", type=int, default=256)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--hidden", type=int, default=0, help="feed-forward width; 0: 8 D / 3 rounded up to 256")
    p.add_argument("--seq", type=int, default=512)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--vocab", type=int, default=258)
    p.add_argument("--window", type=int, default=256)
    p.add_argument("--pattern", default="LG", help="L local, G global, repeated over the layers")
    p.add_argument("--steps", type=int, default=10, help="timed steps, after two that are not")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--compose", choices=("einsum", "loops"), default="einsum",
                   help="how the head mixing is written; einsum is the faster one, loops needs less memory")
    return p


def settings(cfg):
    cfg.hidden = cfg.hidden or (8 * cfg.dim // 3 + 255) // 256 * 256
    cfg.gelu, cfg.qk_eps, cfg.eps = "tanh", 1e-5, 1e-5
    return cfg


def resident_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    p = parser(__doc__.splitlines()[0])
    p.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="bf16: autocast")
    p.add_argument("--device", default="cpu", help="cpu or cuda")
    p.add_argument("--compile", action="store_true", help="torch.compile for every block")
    p.add_argument("--profile", action="store_true", help="one more step under the profiler; adds its top operations")
    cfg = settings(p.parse_args())
    torch.set_num_threads(cfg.threads)
    torch.manual_seed(0)
    model = Model(cfg).to(cfg.device)
    synchronize = torch.cuda.synchronize if cfg.device != "cpu" else lambda: None
    if cfg.compile:
        for layer in model.layers:
            layer.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)
    generator = torch.Generator().manual_seed(1)
    before = resident_mib()
    times, losses = [], []

    def step():
        ids = torch.randint(cfg.vocab, (cfg.batch, cfg.seq + 1), generator=generator).to(cfg.device)
        synchronize()
        start, busy = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(torch.device(cfg.device).type, torch.bfloat16, enabled=cfg.dtype == "bf16"):
            loss = model.loss(ids[:, :-1], ids[:, 1:])
        synchronize()
        forward = time.perf_counter()
        loss.backward()
        synchronize()
        backward = time.perf_counter()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        synchronize()
        end = time.perf_counter()
        times.append((end - start, forward - start, backward - forward, end - backward, time.process_time() - busy))
        losses.append(loss.item())

    for _ in range(2 + cfg.steps):
        step()
    columns = list(zip(*times[2:]))
    seconds = statistics.median(columns[0])
    result = {
        "framework": f"torch {torch.__version__}",
        "model": cfg.model,
        "compose": cfg.compose if cfg.model == "dcformer" else None,
        "layers": cfg.layers, "dim": cfg.dim, "heads": cfg.heads, "hidden": cfg.hidden, "seq": cfg.seq,
        "batch": cfg.batch, "vocab": cfg.vocab, "windows": layer_windows(cfg), "dtype": cfg.dtype,
        "compiled": cfg.compile,
        "threads": cfg.threads, "steps": cfg.steps, "machine": machine(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_seconds": round(seconds, 4), "step_seconds_min": round(min(columns[0]), 4),
        "forward_seconds": round(statistics.median(columns[1]), 4),
        "backward_seconds": round(statistics.median(columns[2]), 4),
        "update_seconds": round(statistics.median(columns[3]), 4),
        "cpu_seconds": round(statistics.median(columns[4]), 4),  # of all threads; on a busy machine the fairer number
        "tokens_per_second": round(cfg.batch * cfg.seq / seconds, 1),
        "peak_rss_mib": round(resident_mib(), 1), "rss_before_training_mib": round(before, 1),
        "device": torch.cuda.get_device_name() if cfg.device != "cpu" else "cpu",
        "peak_gpu_mib": round(torch.cuda.max_memory_allocated() / 2**20, 1) if cfg.device != "cpu" else None,
        "first_loss": losses[0], "last_loss": losses[-1],
    }
    if cfg.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            step()
        rows = sorted(profile.key_averages(), key=lambda e: -e.self_cpu_time_total)
        total = sum(e.self_cpu_time_total for e in rows)
        result["profile"] = [
            {"op": e.key, "share": round(e.self_cpu_time_total / total, 4), "calls": e.count} for e in rows[:16]
        ]
    print(json.dumps(result, indent=1))


def machine():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    main()
