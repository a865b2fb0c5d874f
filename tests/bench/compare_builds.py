#!/usr/bin/env python3
"""Training steps of several builds of Braid in turn on the same machine, as a table of seconds and ratios.

Usage: compare_builds.py NAME=COMMAND ... [--rounds R] [--steps N] [--threads N] [--busy N] > table.md

  compare_builds.py native=build/native/braid packaged=build/cpu/braid \
    "portable=env BRAID_INSTRUCTIONS=portable build/cpu/braid"

Each round times every build once on every model, in a process of its own, with --busy also beside N processes that
compute without a pause. The table has medians over the rounds; ratios are medians of those of the same round: of other
builds over the first one, and of busy over quiet. A second table has the memory: of all tensors at the peak, and of what a
layer keeps of a token for the backward pass.
"""
import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys

SMALL = ["--batch", "1", "--seq-len", "1024", "vocab_size=258", "block_size=1024"]
MODELS = [  # name, settings, layers, tokens of a step
    ("DCFormer++ L4 D256 N8 T512 B8", ["--preset", "dcformer-tiny", "--batch", "8", "--seq-len", "512"], 4, 4096),
    ("DCFormer++ L4 D256 N8 T512 B8 bf16", ["--preset", "dcformer-tiny", "--batch", "8", "--seq-len", "512", "--dtype", "bf16"], 4, 4096),
    ("Transformer++ L4 D256 N8 T512 B8", ["--preset", "transformer-tiny", "--batch", "8", "--seq-len", "512"], 4, 4096),
    ("DC-ViT 28 x 28 L6 D128 N4 B64", ["--preset", "dc-vit-28", "--batch", "64"], 6, 64 * 49),
    ("DCFormer++ L12 D768 N12 T1024 B1", ["--preset", "dcformer-small"] + SMALL, 12, 1024),
]


def result_of(command, settings, busy=0):
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        done = subprocess.run(command + ["bench", "step", "--json"] + settings, capture_output=True, text=True)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--model", default="", help="only models whose name contains this")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that compute beside")
    o = parser.parse_args()
    builds = {}
    for text in o.builds:
        name, equals, command = text.partition("=")
        if not equals or not command:
            parser.error(f"expected NAME=COMMAND, found {text}")
        builds[name] = shlex.split(command)
    common = ["--steps", str(o.steps), "--threads", str(o.threads)]
    models = [m for m in MODELS if o.model in m[0]]
    rows = {model[0]: [] for model in models}
    memory = {}
    for _ in range(o.rounds):
        for model, settings, layers, tokens in models:
            results = {name: result_of(command, settings + common) for name, command in builds.items()}
            memory[model] = [(r["peak_tensor_mib"], r["peak_activations_mib"] * 2**20 / layers / tokens) for r in results.values()]
            row = {name: r["step_seconds"] for name, r in results.items()}
            if o.busy:
                row.update({f"{name}, busy": result_of(command, settings + common, o.busy)["step_seconds"]
                            for name, command in builds.items()})
            rows[model].append(row)
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                   platform.machine())
    first, *others = builds
    ratios = [(name, first) for name in others] + ([(f"{name}, busy", name) for name in builds] if o.busy else [])
    times = list(builds) + ([f"{name}, busy" for name in builds] if o.busy else [])
    beside = f"; busy: beside {o.busy} processes that compute without a pause" if o.busy else ""
    print(f"{machine}, {o.threads} threads; medians of {o.rounds} rounds of {o.steps} steps, in turn{beside}.\n")
    print(f"| model | {' | '.join(f'{name} s/step' for name in times)} | {' | '.join(f'{a} / {b}' for a, b in ratios)} |")
    print("|---" + "|--:" * (len(times) + len(ratios)) + "|")
    for model, rounds in rows.items():
        cells = [f"{statistics.median(r[name] for r in rounds):.3f}" for name in times]
        cells += [f"{statistics.median(r[a] / r[b] for r in rounds):.2f}" for a, b in ratios]
        print(f"| {model} | {' | '.join(cells)} |")
    heads = [f"{name} MiB" for name in builds] + [f"{name}, bytes a token and layer" for name in builds]
    print(f"\n| model | {' | '.join(heads)} |")
    print("|---" + "|--:" * (2 * len(builds)) + "|")
    for model, of_builds in memory.items():
        cells = [f"{mib:.0f}" for mib, _ in of_builds] + [f"{kept:.0f}" for _, kept in of_builds]
        print(f"| {model} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
