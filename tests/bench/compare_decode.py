#!/usr/bin/env python3
"""Generation with the same models in Braid and in eager PyTorch, in turn on the same machine, as a table.

Usage: compare_decode.py BRAID [--rounds R] [--threads N] > table.md      (run by a Python that has torch)

Each round runs every candidate once, in a fresh process: B prompts, then a token of each in a step. The table shows
medians over rounds and the ratio of tokens/s of the same round. Shares are of what the machine did in the same process:
reads of weights and cache of the fastest pass over 512 MiB, arithmetic of the prompt of the fastest product of
768 x 768 matrices of that type.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = ["--layers", "12", "--dim", "768", "--heads", "12", "--vocab", "50256"]
MODELS = [("DCFormer++", "dcformer-small", ["--model", "dcformer"] + SIZES),
          ("Transformer++", "transformer-small", ["--model", "transformer", "--pattern", "G"] + SIZES)]


def result_of(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--dtypes", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--no-torch", action="store_true", help="Braid alone")
    options = parser.parse_args()
    cases = [(*model, dtype, batch) for model in MODELS for dtype in options.dtypes for batch in options.batches]
    runs = {(name, dtype, batch): [] for name, _, _, dtype, batch in cases}
    torch_version = "without PyTorch"
    for round_ in range(options.rounds):
        for name, preset, arguments, dtype, batch in cases:
            common = ["--threads", str(options.threads), "--dtype", dtype, "--batch", str(batch)]
            braid = result_of([options.braid, "bench", "decode", "--json", "--preset", preset, "--context",
                               str(options.context), "--tokens", str(options.tokens)] + common)
            torch = None
            if not options.no_torch:
                torch = result_of([sys.executable, os.path.join(HERE, "torch_decode.py"), "--seq", str(options.context),
                                   "--steps", str(options.tokens)] + arguments + common)
                torch_version = torch["framework"]
                if braid["parameters"] != torch["parameters"]:
                    sys.exit(f"{name}: the models differ: {braid['parameters']} and {torch['parameters']} parameters")
            runs[name, dtype, batch].append((braid, torch))
            print(f"round {round_ + 1}: {name} {dtype} batch {batch}", file=sys.stderr)
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    print(f"{machine}, {options.threads} threads, {torch_version}; {options.context} tokens of prompt, medians of "
          f"{options.rounds} rounds of {options.tokens} steps, in turn.\n")
    print("| model | type | batch | tokens/s | of batch 1 | share of read rate | prompt tokens/s | share of product rate "
          "| PyTorch tokens/s | Braid / PyTorch | PyTorch prompt tokens/s | Braid / PyTorch |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for (name, dtype, batch), pairs in runs.items():
        middle = lambda f: statistics.median(f(braid, torch) for braid, torch in pairs)
        alone = statistics.median(b["tokens_per_second"] for b, _ in runs[name, dtype, options.batches[0]])
        row = [name, dtype, str(batch), f"{middle(lambda b, t: b['tokens_per_second']):.1f}",
               f"{middle(lambda b, t: b['tokens_per_second']) / alone:.1f}",
               f"{100 * middle(lambda b, t: b['read_share']):.0f} %",
               f"{middle(lambda b, t: b['prompt_tokens_per_second']):.0f}",
               f"{100 * middle(lambda b, t: b['prompt_flops_share']):.0f} %"]
        for key in ("tokens_per_second", "prompt_tokens_per_second"):
            row += ["", ""] if options.no_torch else [f"{middle(lambda b, t: t[key]):.1f}",
                                                      f"{middle(lambda b, t: b[key] / t[key]):.1f}"]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
