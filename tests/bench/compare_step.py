#!/usr/bin/env python3
"""Full training steps of the same models in Braid and in PyTorch, in turn on the same machine, as a table.

Usage: compare_step.py BRAID [--rounds R] [--threads N] [--bf16] [--model TEXT] > table.md      (run by a Python that has torch)

PyTorch runs eager and compiled block by block. --bf16: Braid in f32 and bf16, and PyTorch with bf16 autocast. --model: only
models whose name contains this text.

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


def compare_bf16(options, common, cases):
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
    parser.add_argument("--model", default="")
    options = parser.parse_args()
    common = ["--steps", str(options.steps), "--threads", str(options.threads)]
    cases = [case for case in CASES if options.model in case[0] and (not options.bf16 or case[0].startswith("DCFormer++"))]
    if not cases:
        sys.exit(f"--model {options.model}: no such model; there are: {', '.join(case[0] for case in CASES)}")
    if options.bf16:
        return compare_bf16(options, common, cases)
    runs = {case[0]: [] for case in cases}
    for _ in range(options.rounds):
        for name, own, arguments in cases:
            torch = [sys.executable, os.path.join(HERE, "torch_step.py")] + arguments + common
            of_round = [result_of(command) for command in
                        ([options.braid, "bench", "--json"] + own + common, torch, torch + ["--compile"])]
            if len({result["parameters"] for result in of_round}) > 1:
                sys.exit(f"{name}: the models differ: {[result['parameters'] for result in of_round]} parameters")
            runs[name].append(of_round)
    torch_version = runs[cases[0][0]][0][1]["framework"]
    print(f"{machine()}, {options.threads} threads, f32, {torch_version}; medians of {options.rounds} rounds of {options.steps} steps, in turn.\n")
    print("| model | Braid s/step | eager s/step | eager / Braid | compiled s/step | compiled / Braid "
          "| peak MiB: Braid | eager | compiled |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, rounds in runs.items():
        def middle(f):
            return statistics.median(f(r) for r in rounds)

        def seconds(i):
            return middle(lambda r: r[i]["step_seconds"])

        def ratio(i):
            return middle(lambda r: r[i]["step_seconds"] / r[0]["step_seconds"])
        print(f"| {name} | {seconds(0):.3f} | {seconds(1):.3f} | {ratio(1):.2f} | {seconds(2):.3f} | {ratio(2):.2f} | "
              + " | ".join(f"{middle(lambda r: r[i]['peak_rss_mib']):.0f}" for i in range(3)) + " |")


if __name__ == "__main__":
    main()
