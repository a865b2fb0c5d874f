#!/usr/bin/env python3
"""Times training steps of a ViT or DC-ViT in PyTorch on the CPU, eager or compiled: the other side of `braid bench step
--preset vit-28`. Prints one JSON object. Needs torch.

Pre-norm blocks, mean over patches, fixed positions, tanh GELU; plain attention by SDPA; DC-ViT composes the heads before and
after softmax, from query and key, of rank 2, with the static term. Letters: B batch, T patches, D width, N heads, R rank.
"""
import argparse
import json
import platform
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from torch_step import CompositionWeights, compose_einsum, compose_loops


class Attention(nn.Module):
    def __init__(self, dim, heads, compose):
        super().__init__()
        self.heads, self.compose = heads, compose
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        if compose:
            self.weights = CompositionWeights(dim, heads, "tanh")
            self.pre = nn.Parameter(torch.randn(heads, heads) * 0.02)
            self.post = nn.Parameter(torch.randn(heads, heads) * 0.02)

    def forward(self, x):  # [B,T,D]
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # [B,N,T,d]
        if not self.compose:
            return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        mix = compose_loops if self.compose == "loops" else compose_einsum
        pre_q, pre_k, post_q, post_k = self.weights(x)
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        scores = mix(scores, pre_q, pre_k) + torch.einsum("bnts,nm->bmts", scores, self.pre)
        p = scores.softmax(-1)
        p = mix(p, post_q, post_k) + torch.einsum("bnts,nm->bmts", p, self.post)
        return self.out((p @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, hidden, compose):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, 1e-6), nn.LayerNorm(dim, 1e-6)
        self.attention = Attention(dim, heads, compose)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Vit(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.patches = nn.Conv2d(o.channels, o.dim, o.patch, o.patch)
        self.register_buffer("positions", torch.randn(1, (o.size // o.patch) ** 2, o.dim))
        self.blocks = nn.ModuleList(Block(o.dim, o.heads, o.hidden, o.compose) for _ in range(o.layers))
        self.norm, self.head = nn.LayerNorm(o.dim, 1e-6), nn.Linear(o.dim, o.classes)

    def forward(self, pixels, labels):
        x = self.patches(pixels).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x).mean(1)), labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(dim=128, layers=6, heads=4, hidden=256, size=28, channels=1, patch=4, classes=10, batch=64,
                            steps=5, threads=1).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--compose", default="", choices=["", "loops", "einsum"], help="DC-ViT, heads mixed so")
    parser.add_argument("--compile", action="store_true")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = Vit(o)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    pixels = torch.randn(o.batch, o.channels, o.size, o.size)
    labels = torch.randint(o.classes, (o.batch,))
    forward = torch.compile(model) if o.compile else model

    def step():
        loss = forward(pixels, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):  # the first compiles
        step()
    seconds = []
    for _ in range(o.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    middle = statistics.median(seconds)
    print(json.dumps({"framework": "torch " + torch.__version__, "machine": platform.machine(), "compiled": o.compile,
                      "parameters": sum(p.numel() for p in model.parameters()), "step_seconds": middle,
                      "pictures_per_second": o.batch / middle,
                      "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
