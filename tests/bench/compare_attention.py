#!/usr/bin/env python3
"""Attention alone, Braid beside PyTorch, in turn on the same machine, as a table of ns per unmasked score and thread.

Usage: compare_attention.py BENCH_ATTENTION [--rounds R] [--threads N] [--dtype f32|bf16] [--shape TEXT] [--window W] [--eager-only]
       compare_attention.py BENCH_ATTENTION --curve 512,2048,8192 [--window W] ...     (run by a Python that has torch)

BENCH_ATTENTION is build/cpu/tests/bench/bench_attention. Every round runs each candidate once
in a fresh process, so that a change of the machine's speed meets all of them; the table shows medians over the rounds. "fused" is
Braid's kernel, "composed" the same formula from primitive ops in chunks of rows. PyTorch: scaled_dot_product_attention for MHA; for
DCMHA chunks of 128 queries, heads mixed rank by rank, eager and by torch.compile. A local layer sees 256 keys. "products alone": 4 d
operations a score forward and 10 d backward at the rate of a product of 1024 x 1024 matrices in the process of "DCMHA fused", after it:
a guide, no bound, where the machine's speed varies. --curve: the fused kernel at several lengths, its time per score and the memory by which the process grew over
its inputs, forward and backward, per token.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = [("N16 d64 T2048", ["heads=16", "head_dim=64", "length=2048"]), ("N32 d80 T2048", ["heads=32", "head_dim=80", "length=2048"])]
ROWS = [  # name, Braid's program, settings
    ("MHA fused", True, ["kind=mha", "path=fused"]),
    ("MHA PyTorch SDPA", False, ["kind=mha"]),
    ("DCMHA fused", True, ["kind=dcmha", "path=fused"]),
    ("DCMHA composed", True, ["kind=dcmha", "path=chunked"]),
    ("DCMHA PyTorch", False, ["kind=dcmha"]),
    ("DCMHA PyTorch compiled", False, ["kind=dcmha", "compile=1"]),
]


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def print_curve(options, machine):
    shape, sizes = next(s for s in SHAPES if options.shape in s[0])
    window = options.window or 0
    print(f"DCMHA fused, {shape.rsplit(' ', 1)[0]}, {f'window {window}' if window else 'global'}, {options.dtype}, {options.threads} thread(s), "
          f"{machine}, medians of {options.rounds} rounds\n")
    print("| T | forward ns | forward + backward ns | growth, KB a token |\n|--:|--:|--:|--:|")
    lengths = [int(text) for text in options.curve.split(",")]
    runs = {length: [] for length in lengths}
    for _ in range(options.rounds):
        for length in lengths:
            settings = sizes[:2] + [f"length={length}", f"window={window}", f"threads={options.threads}", f"dtype={options.dtype}"]
            runs[length].append(run_json([options.bench] + settings + [f"repeat={1 if length > 8192 else 3}"]))
    for length in lengths:
        forward, both, growth = (statistics.median(r[key] for r in runs[length]) for key in ("forward_ns", "both_ns", "growth_mb"))
        print(f"| {length} | {forward:.2f} | {both:.2f} | {1e3 * growth / length:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", default="", help="only shapes whose name contains this")
    parser.add_argument("--window", type=int, help="only this window; 0 is global")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--eager-only", action="store_true", help="without torch.compile, which takes minutes")
    parser.add_argument("--curve", metavar="T,T,...", help="Braid alone at these lengths")
    options = parser.parse_args()
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    if options.curve:
        return print_curve(options, machine)
    rows = [row for row in ROWS if not (options.eager_only and "compile=1" in row[2])]
    for shape, sizes in [s for s in SHAPES if options.shape in s[0]]:
        for window in (0, 256) if options.window is None else (options.window,):
            results = {name: [] for name, _, _ in rows}
            for _ in range(options.rounds):
                for name, is_braid, settings in rows:
                    command = [options.bench] if is_braid else [sys.executable, os.path.join(HERE, "torch_attention.py")]
                    command += sizes + settings + [f"window={window}", f"threads={options.threads}", f"repeat={3 if is_braid else 1}",
                                         f"dtype={options.dtype}"]
                    results[name].append(run_json(command))
            middle = {name: [statistics.median(r[key] for r in runs) for key in ("forward_ns", "both_ns", "peak_rss_mib")]
                      for name, runs in results.items()}
            fused = middle["DCMHA fused"]
            print(f"\n{shape}, {'global' if window == 0 else 'window 256'}, {options.dtype}, {options.threads} thread(s), {machine}, "
                  f"medians of {options.rounds} rounds\n")
            print("| | forward ns | ratio | forward + backward ns | ratio | peak MiB |\n|---|--:|--:|--:|--:|--:|")
            rate = statistics.median(r["product_gflops"] for r in results["DCMHA fused"])
            d = int(sizes[1].split("=")[1])
            for part, (forward, both, peak) in [("products alone", (4 * d / rate, 14 * d / rate, 0)), *middle.items()]:
                print(f"| {part} | {forward:.2f} | {forward / fused[0]:.2f} | {both:.2f} | {both / fused[1]:.2f} | {f'{peak:.0f}' if peak else ''} |", flush=True)
    print("\nratio: time over that of DCMHA fused")


if __name__ == "__main__":
    main()
