#!/usr/bin/env python3
"""Attention alone, Braid beside eager PyTorch, in turn on the same machine, as a table of ns per unmasked score and thread.

Usage: compare_attention.py BENCH_ATTENTION [--rounds R] [--threads N] [--shape TEXT] [--window W]     (run by a Python that has torch)

BENCH_ATTENTION is build/cpu/tests/bench/bench_attention. Every round runs each candidate once
in a fresh process, so that a change of the machine's speed meets all of them; the table shows medians over the rounds. "fused" is
Braid's kernel, "composed" the same formula from primitive ops in chunks of rows. PyTorch: scaled_dot_product_attention for MHA; for
DCMHA chunks of 128 queries, heads mixed rank by rank. A local layer sees 256 keys.
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
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", default="", help="only shapes whose name contains this")
    parser.add_argument("--window", type=int, help="only this window; 0 is global")
    options = parser.parse_args()
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    for shape, sizes in [s for s in SHAPES if options.shape in s[0]]:
        for window in (0, 256) if options.window is None else (options.window,):
            results = {name: [] for name, _, _ in ROWS}
            for _ in range(options.rounds):
                for name, is_braid, settings in ROWS:
                    command = [options.bench] if is_braid else [sys.executable, os.path.join(HERE, "torch_attention.py")]
                    command += sizes + settings + [f"window={window}", f"threads={options.threads}", f"repeat={3 if is_braid else 1}"]
                    run = subprocess.run(command, check=True, capture_output=True, text=True)
                    results[name].append(json.loads(run.stdout))
            middle = {name: [statistics.median(r[key] for r in runs) for key in ("forward_ns", "both_ns", "peak_rss_mib")]
                      for name, runs in results.items()}
            fused = middle["DCMHA fused"]
            print(f"\n{shape}, {'global' if window == 0 else 'window 256'}, {options.threads} thread(s), {machine}, "
                  f"medians of {options.rounds} rounds\n")
            print("| | forward ns | ratio | forward + backward ns | ratio | peak MiB |\n|---|--:|--:|--:|--:|--:|")
            for name, (forward, both, peak) in middle.items():
                print(f"| {name} | {forward:.2f} | {forward / fused[0]:.2f} | {both:.2f} | {both / fused[1]:.2f} | {peak:.0f} |", flush=True)
    print("\nratio: time over that of DCMHA fused")


if __name__ == "__main__":
    main()
