#!/usr/bin/env python3
"""Training steps of several builds of Braid in turn on the same machine, as a table of seconds and ratios.

Usage: compare_builds.py NAME=COMMAND NAME=COMMAND ... [--rounds R] [--steps N] [--threads N] > table.md

  compare_builds.py native=build/native/braid packaged=build/cpu/braid \
    "portable=env BRAID_INSTRUCTIONS=portable build/cpu/braid"

Each round times every build once on every model, in a process of its own. The table has medians over the rounds; ratios
are medians of those of the same round, over the first build.
"""
import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys

MODELS = [("DCFormer++ L4 D256 N8 T512 B8", ["--preset", "dcformer-tiny", "--batch", "8", "--seq-len", "512"]),
          ("the same in bf16", ["--preset", "dcformer-tiny", "--batch", "8", "--seq-len", "512", "--dtype", "bf16"]),
          ("Transformer++ L4 D256 N8 T512 B8", ["--preset", "transformer-tiny", "--batch", "8", "--seq-len", "512"]),
          ("DC-ViT 28 x 28 L6 D128 N4 B64", ["--preset", "dc-vit-28", "--batch", "64"])]


def seconds(command, settings):
    done = subprocess.run(command + ["bench", "step", "--json"] + settings, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)["step_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    o = parser.parse_args()
    builds = {}
    for text in o.builds:
        name, equals, command = text.partition("=")
        if not equals or not command:
            parser.error(f"expected NAME=COMMAND, found {text}")
        builds[name] = shlex.split(command)
    common = ["--steps", str(o.steps), "--threads", str(o.threads)]
    rows = {model: [] for model, _ in MODELS}
    for _ in range(o.rounds):
        for model, settings in MODELS:
            rows[model].append({name: seconds(command, settings + common) for name, command in builds.items()})
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                   platform.machine())
    first, *others = builds
    print(f"{machine}, {o.threads} threads; medians of {o.rounds} rounds of {o.steps} steps, in turn.\n")
    print(f"| model | {' | '.join(f'{name} s/step' for name in builds)} | {' | '.join(f'{name} / {first}' for name in others)} |")
    print("|---" + "|--:" * (len(builds) + len(others)) + "|")
    for model, rounds in rows.items():
        cells = [f"{statistics.median(r[name] for r in rounds):.3f}" for name in builds]
        cells += [f"{statistics.median(r[name] / r[first] for r in rounds):.2f}" for name in others]
        print(f"| {model} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
