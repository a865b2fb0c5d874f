#!/usr/bin/env python3
"""Times generation with the models of torch_step.py in eager PyTorch on the CPU, against a cache: the other side of
`braid bench decode`.

B prompts of T tokens are read together, then a token of each in a step. Prints one JSON object. The cache holds keys,
values and the key-side weights of compose for every position, in preallocated tensors; SDPA for the plain transformer.
"""
import json
import statistics
import time

import torch
import torch.nn.functional as F

import torch_step
from torch_step import CHUNK, RANK, rotate


class LayerCache:
    def __init__(self, attention, batch, length, dtype):
        heads, size = attention.heads, attention.size
        self.keys = torch.zeros(batch, heads, length, size, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        if attention.dcmha:  # read, write, gate of the branches pre key and post key
            shapes = [(batch, length, RANK, heads), (batch, length, RANK, heads), (batch, length, heads)]
            self.factors = [[torch.zeros(shape, dtype=dtype) for shape in shapes] for _ in range(2)]


def attend(attention, u, table, start, cache):
    """The output of an attention for u [B,T,D], positions [start, start + T)."""
    b, t, _ = u.shape
    stop = start + t
    q, k, v = attention.wqkv(u).view(b, t, 3, attention.heads, attention.size).unbind(2)
    if attention.dcmha:
        q, k = attention.q_norm(q), attention.k_norm(k)
    table = tuple(x[start:stop] for x in table)
    q, k, v = (x.transpose(1, 2) for x in (rotate(q, table), rotate(k, table), v))
    cache.keys[:, :, start:stop], cache.values[:, :, start:stop] = k, v
    if not attention.dcmha:
        keys, values = cache.keys[:, :, :stop], cache.values[:, :, :stop]
        y = F.scaled_dot_product_attention(q, keys, values, is_causal=t > 1)
        return attention.wo(y.transpose(1, 2).reshape(b, t, -1))
    pre_q, pre_k, post_q, post_k = attention.dyn_w_proj(u)
    for held, new in zip(cache.factors, (pre_k, post_k)):
        for all_keys, some in zip(held, new):
            all_keys[:, start:stop] = some
    q = q * attention.size ** -0.5
    outputs = []
    for row in range(start, stop, CHUNK):
        end = min(row + CHUNK, stop)
        first = 0 if attention.window is None else max(0, row - attention.window + 1)
        of_rows = [tuple(x[:, row - start:end - start] for x in branch) for branch in (pre_q, post_q)]
        of_keys = [tuple(x[:, first:end] for x in held) for held in cache.factors]
        scores = q[:, :, row - start:end - start] @ cache.keys[:, :, first:end].transpose(2, 3)
        scores = attention.compose(scores, of_rows[0], of_keys[0])
        i, j = torch.arange(row, end)[:, None], torch.arange(first, end)[None, :]
        masked = j > i if attention.window is None else (j > i) | (j <= i - attention.window)
        probabilities = scores.masked_fill(masked, float("-inf")).softmax(-1)
        outputs.append(attention.compose(probabilities, of_rows[1], of_keys[1]) @ cache.values[:, :, first:end])
    return attention.wo(torch.cat(outputs, dim=2).transpose(1, 2).reshape(b, t, -1))


def next_tokens(model, ids, table, start, caches):
    """The likeliest token behind ids [B,T] -> [B,1]."""
    x = model.tok_embeddings(ids)
    for layer, cache in zip(model.layers, caches):
        x = x + attend(layer.attention, layer.attention_norm(x), table, start, cache)
        x = x + layer.feed_forward(layer.ffn_norm(x))
    return model.output(model.norm(x[:, -1:])).argmax(-1)


def check(model, ids, table, caches):
    """The steps compute what the whole model computes: the largest difference of a next token's logit, in f32."""
    whole = model(ids)[:, -1]
    for part in (slice(0, ids.shape[1] - 1), slice(ids.shape[1] - 1, ids.shape[1])):
        x = model.tok_embeddings(ids[:, part])
        for layer, cache in zip(model.layers, caches):
            x = x + attend(layer.attention, layer.attention_norm(x), table, part.start, cache)
            x = x + layer.feed_forward(layer.ffn_norm(x))
    difference = (model.output(model.norm(x[:, -1])) - whole).abs().max().item()
    if difference > 1e-3:
        raise SystemExit(f"the steps differ from the whole model by {difference}")


def main():
    parser = torch_step.parser(__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.set_defaults(steps=32, batch=1, seq=256)
    cfg = torch_step.settings(parser.parse_args())
    torch.set_num_threads(cfg.threads)
    torch.manual_seed(0)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[cfg.dtype]
    model = torch_step.Model(cfg)
    length = cfg.seq + 2 + cfg.steps
    table = torch_step.rope_table(length, cfg.dim // cfg.heads, 10000.0, torch.float32)
    with torch.inference_mode():
        ids = torch.randint(cfg.vocab, (cfg.batch, cfg.seq))
        fresh = lambda kind: [LayerCache(layer.attention, cfg.batch, length, kind) for layer in model.layers]
        check(model, ids[:, :min(cfg.seq, 160)], table, fresh(torch.float32))
        model.to(dtype)
        table = tuple(x.to(dtype) for x in table)
        next_tokens(model, ids, table, 0, fresh(dtype))  # not timed
        caches = fresh(dtype)
        start = time.perf_counter()
        token = next_tokens(model, ids, table, 0, caches)
        prompt = time.perf_counter() - start
        times = []
        for i in range(2 + cfg.steps):
            start = time.perf_counter()
            token = next_tokens(model, token, table, cfg.seq + i, caches)
            times.append(time.perf_counter() - start)
    step = statistics.median(times[2:])
    print(json.dumps({
        "framework": f"torch {torch.__version__}", "model": cfg.model, "dtype": cfg.dtype, "batch": cfg.batch,
        "context": cfg.seq, "threads": cfg.threads, "steps": cfg.steps, "step_seconds": step,
        "tokens_per_second": cfg.batch / step, "prompt_tokens_per_second": cfg.batch * cfg.seq / prompt,
        "parameters": sum(p.numel() for p in model.parameters()), "machine": torch_step.machine(),
    }))


if __name__ == "__main__":
    main()
