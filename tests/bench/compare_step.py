#!/usr/bin/env python3
"""Full training steps of the same models in Braid and in PyTorch, in turn on the same machine, as a table.

Usage: compare_step.py BRAID [--rounds R] [--threads N] [--bf16] > table.md      (run by a Python that has torch)

--bf16: Braid in f32 and bf16, and PyTorch with bf16 autocast, eager and compiled block by block. Otherwise f32, eager.

Each round times every candidate once (a fresh process, two warm-up steps, median of the timed ones), so that a change of the
machine's speed meets all of them; the table shows medians over rounds and the ratio PyTorch / Braid of the same round.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = ["--layers", "12", "--dim", "768", "--heads", "12", "--seq", "1024", "--batch", "1"]
CASES = [  # name, Braid's arguments, PyTorch's arguments
    ("DCFormer++ L4 D256 N8 T512 B8", ["--preset", "dcformer-tiny", "--batch", "8", "--seq-len", "512"],
     ["--model", "dcformer", "--compose", "loops"]),
    ("the same, heads mixed by einsum", ["--preset", "dcformer-tiny", "--batch", "8", "--seq-len", "512"],
     ["--model", "dcformer", "--compose", "einsum"]),
    ("Transformer++ L4 D256 N8 T512 B8", ["--preset", "transformer-tiny", "--batch", "8", "--seq-len", "512"],
     ["--model", "transformer", "--pattern", "G"]),
    ("DCFormer++ L12 D768 N12 T1024 B1",
     ["--preset", "dcformer-small", "--batch", "1", "--seq-len", "1024", "vocab_size=258", "block_size=1024"],
     ["--model", "dcformer", "--compose", "einsum"] + SMALL),
    ("Transformer++ L12 D768 N12 T1024 B1",
     ["--preset", "transformer-small", "--batch", "1", "--seq-len", "1024", "vocab_size=258", "block_size=1024"],
     ["--model", "transformer", "--pattern", "G"] + SMALL),
]


def result_of(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def machine():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def compare_bf16(options, common):
    cases = [case for case in CASES if case[0].startswith("DCFormer++")]
    runs = {case[0]: [] for case in cases}
    for _ in range(options.rounds):
        for name, own, arguments in cases:
            braid = [options.braid, "bench", "--json"] + own + common
            torch = [sys.executable, os.path.join(HERE, "torch_step.py")] + arguments + common + ["--dtype", "bf16"]
            commands = [braid, braid + ["--dtype", "bf16"], torch, torch + ["--compile"]]
            runs[name].append([result_of(command) for command in commands])
    torch_version = runs[cases[0][0]][0][2]["framework"]
    print(f"{machine()}, {options.threads} threads, {torch_version} with bf16 autocast; medians of {options.rounds} rounds of "
          f"{options.steps} steps, in turn.\n")
    print("| model | Braid f32 s/step | Braid bf16 s/step | f32 / bf16 | eager s/step | eager / Braid bf16 "
          "| compiled s/step | compiled / Braid bf16 | peak MiB f32, bf16 |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, rounds in runs.items():
        def seconds(i):
            return statistics.median(r[i]["step_seconds"] for r in rounds)

        def ratio(i):
            return statistics.median(r[i]["step_seconds"] / r[1]["step_seconds"] for r in rounds)
        print(f"| {name} | {seconds(0):.3f} | {seconds(1):.3f} | {ratio(0):.2f} | {seconds(2):.3f} | {ratio(2):.2f} "
              f"| {seconds(3):.3f} | {ratio(3):.2f} | {rounds[0][0]['peak_rss_mib']:.0f}, {rounds[0][1]['peak_rss_mib']:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    common = ["--steps", str(options.steps), "--threads", str(options.threads)]
    if options.bf16:
        return compare_bf16(options, common)
    runs = {case[0]: [] for case in CASES}
    for _ in range(options.rounds):
        for name, own, arguments in CASES:
            braid = result_of([options.braid, "bench", "--json"] + own + common)
            torch = result_of([sys.executable, os.path.join(HERE, "torch_step.py")] + arguments + common)
            if braid["parameters"] != torch["parameters"]:
                sys.exit(f"{name}: the models differ: {braid['parameters']} and {torch['parameters']} parameters")
            runs[name].append((braid, torch))
    torch_version = runs[CASES[0][0]][0][1]["framework"]
    print(f"{machine()}, {options.threads} threads, f32, {torch_version}; medians of {options.rounds} rounds of {options.steps} steps, in turn.\n")
    print("| model | Braid s/step | PyTorch s/step | PyTorch / Braid | Braid peak MiB | PyTorch peak MiB |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, pairs in runs.items():
        middle = lambda f: statistics.median(f(braid, torch) for braid, torch in pairs)
        print(f"| {name} | {middle(lambda a, b: a['step_seconds']):.3f} | {middle(lambda a, b: b['step_seconds']):.3f} "
              f"| {middle(lambda a, b: b['step_seconds'] / a['step_seconds']):.2f} "
              f"| {middle(lambda a, b: a['peak_rss_mib']):.0f} | {middle(lambda a, b: b['peak_rss_mib']):.0f} |")


if __name__ == "__main__":
    main()
