#!/usr/bin/env python3
"""Ops one by one, Braid beside PyTorch, in turn on the same machine, as a table of ratios by number of elements.

Usage: compare_ops.py BENCH_OPS [--rounds R] [--threads N] [--elements N,N,...] [--only TEXT] [--slower RATIO]
(run by a Python that has torch). BENCH_OPS is build/cpu/tests/bench/bench_ops. Every round runs both once, in processes
of their own. A cell is Braid's time over PyTorch's: the median over the rounds; in brackets Braid's time in
microseconds. --slower: only ops with a cell above this ratio.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def rows_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return {(row["op"], row["elements"]): row["us"] for row in map(json.loads, done.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--elements", default="10,1000,100000,1000000,10000000")
    parser.add_argument("--only", default="")
    parser.add_argument("--slower", type=float, default=0)
    options = parser.parse_args()
    settings = [f"threads={options.threads}", f"elements={options.elements}", f"only={options.only}"]
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(rows_of([options.bench] + settings))
        theirs.append(rows_of([sys.executable, os.path.join(HERE, "torch_ops.py")] + settings))
    if set(ours[0]) != set(theirs[0]):
        sys.exit(f"the rows differ: {sorted(set(ours[0]) ^ set(theirs[0]))}")
    ratio = {key: statistics.median(a[key] / b[key] for a, b in zip(ours, theirs)) for key in ours[0]}
    time = {key: statistics.median(a[key] for a in ours) for key in ours[0]}
    sizes = [int(text) for text in options.elements.split(",")]
    tables = [([op for op in dict.fromkeys(op for op, _ in ratio) if (op, sizes[0]) in ratio], sizes)]
    rest = [key for key in ratio if key[0] not in tables[0][0]]
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    print(f"{machine}, {options.threads} threads, f32 where nothing else is said, medians of {options.rounds} rounds\n")
    print("| op | " + " | ".join(f"{n:,}" for n in sizes) + " |\n|---|" + "--:|" * len(sizes))
    cell = lambda key: f"{ratio[key]:.2f} ({time[key]:.3g})"
    for op in tables[0][0]:
        if max(ratio[op, n] for n in sizes) > options.slower:
            print(f"| {op} | " + " | ".join(cell((op, n)) for n in sizes) + " |")
    if rest:
        print("\n| op | elements of the result | ratio |\n|---|--:|--:|")
        for key in rest:
            if ratio[key] > options.slower:
                print(f"| {key[0]} | {key[1]:,} | {cell(key)} |")
    slow = sum(value > 1.1 for value in ratio.values())
    print(f"\n{len(ratio)} cells, {slow} above 1.1, the largest {max(ratio.values()):.2f}")


if __name__ == "__main__":
    main()
