#!/usr/bin/env python3
"""The kernels of bench_device compared with PyTorch on the same GPU, in turn, as one table.

Usage: compare_device.py BENCH_DEVICE [--rounds R] [--group gemm|rows|attention|decode] [--no-compile]   (run by a Python that has torch)

Each round runs every row's candidates one after the other in fresh processes per group; the table shows medians over the rounds.
`PyTorch / Braid` above 1 means that Braid is faster. A row that PyTorch has no counterpart for stands alone. Exit code 1 when a program failed; the table then has the rows before.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def rows_of(command):
    """The rows that the program prints, one JSON object a line; those before a failure too. And whether it failed."""
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            if line.startswith("{"):
                rows.append(json.loads(line))
    if run.returncode != 0:
        print(f"{' '.join(command)} ended with {run.returncode} after {len(rows)} rows", file=sys.stderr)
    return rows, run.returncode != 0


def middle(runs, key):
    values = [r[key] for r in runs if key in r]
    return statistics.median(values) if values else None


def text(value, form):
    return "" if value is None else form.format(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--group", default="all")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    braid, torch, failed_runs = {}, {}, 0
    groups = ["gemm", "rows", "attention", "decode"] if options.group == "all" else [options.group]
    for _ in range(options.rounds):
        for group in groups:
            commands = [(braid, [options.bench, "device=cuda:0", f"group={group}", f"repeat={options.repeat}", "json=1"])]
            if group != "decode":
                commands.append((torch, [sys.executable, os.path.join(HERE, "torch_device.py"), f"group={group}", f"repeat={options.repeat}",
                                         f"compile={int(not options.no_compile)}"]))
            for found, command in commands:
                rows, ended_early = rows_of(command)
                failed_runs += ended_early
                for r in rows:
                    found.setdefault(r["name"], []).append(r)
    print("| row | Braid ms | ps/element | share of the ceiling | peak MiB | PyTorch ms | PyTorch / Braid | compiled ms | PyTorch / Braid | PyTorch peak MiB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, runs in braid.items():
        ms, per, percent = middle(runs, "ms"), middle(runs, "ps_per_element"), middle(runs, "percent")
        eager, compiled = torch.get(name, []), torch.get(name + " compiled", [])
        eager_ms, compiled_ms = middle(eager, "ms"), middle(compiled, "ms")
        failed = next((r["error"] for r in eager if "error" in r), None)
        print(f"| {name} | {ms:.4f} | {text(per or None, '{:.3f}')} | {text(percent or None, '{:.0f} %')} of {runs[0]['of']} | {middle(runs, 'peak_mib'):.0f} "
              f"| {failed or text(eager_ms, '{:.4f}')} | {text(eager_ms and eager_ms / ms, '{:.2f}')} | {text(compiled_ms, '{:.4f}')} "
              f"| {text(compiled_ms and compiled_ms / ms, '{:.2f}')} | {text(middle(eager, 'peak_mib'), '{:.0f}')} |")
    return 1 if failed_runs else 0


if __name__ == "__main__":
    sys.exit(main())
