#!/usr/bin/env python3
"""Training steps of ViT and DC-ViT in Braid and in PyTorch, eager and compiled, in turn on the same machine, as a table of
images per second.

Usage: compare_vit.py BRAID [--rounds R] [--threads N] [--eager-only] > table.md      (run by a Python that has torch)

Each round times every candidate once, in a process of its own; the table has medians over the rounds, and the ratios
Braid / PyTorch are medians of those of the same round. Of DC-ViT in PyTorch the faster way to mix heads counts, in each
column.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = [("ViT 28 x 28, L6 D128 N4", "vit-28", [""]), ("DC-ViT 28 x 28, L6 D128 N4", "dc-vit-28", ["loops", "einsum"])]


def result_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--eager-only", action="store_true", help="do not compile, which takes minutes on a slow machine")
    o = parser.parse_args()
    columns = [("eager", [])] + ([] if o.eager_only else [("compiled", ["--compile"])])
    common = ["--steps", str(o.steps), "--threads", str(o.threads), "--batch", str(o.batch)]
    rates = {}
    for _ in range(o.rounds):
        for name, preset, ways in MODELS:
            braid = result_of([o.braid, "bench", "step", "--json", "--preset", preset] + common)
            row = {"braid": braid["pictures_per_second"]}
            for column, more in columns:
                found = [result_of([sys.executable, os.path.join(HERE, "torch_vit.py")] + common + more +
                                   (["--compose", way] if way else [])) for way in ways]
                if found[0]["parameters"] != braid["parameters"]:
                    sys.exit(f"{name}: the models differ: {braid['parameters']} and {found[0]['parameters']} parameters")
                row[column] = max(f["pictures_per_second"] for f in found)
            rates.setdefault(name, []).append(row)
            version = found[0]["framework"]
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    print(f"{machine}, {o.threads} threads, f32, batch {o.batch}, {version}; medians of {o.rounds} rounds of {o.steps} steps, in turn.\n")
    names = [column for column, _ in columns]
    print(f"| model | Braid images/s | {' | '.join(names)} | {' | '.join('Braid / ' + n for n in names)} |")
    print("|---" + "|--:" * (1 + 2 * len(names)) + "|")
    for name, rows in rates.items():
        middle = lambda f: statistics.median(f(row) for row in rows)
        cells = [f"{middle(lambda r: r[c]):.0f}" for c in ["braid"] + names]
        cells += [f"{middle(lambda r: r['braid'] / r[c]):.2f}" for c in names]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
