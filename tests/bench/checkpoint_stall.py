#!/usr/bin/env python3
"""What a checkpoint costs training: runs that save none, wait for each, and write each beside the training, in turn.

Usage: checkpoint_stall.py BRAID [--rounds R] [--saves S] [--interval N] [--preset NAME] [key=value ...] > table.md

Each run trains on the pages of this repository. The times are those of log.csv. The stall of a save is the time from the
step before it to the one after it, beyond that of a step of the same run: of both the shortest, which other programs of
the machine disturb least. What a save costs in all, with the steps that slow down beside it, is the time of the whole run
beyond that of the run without saves; that needs a machine without other work.
"""
import argparse
import csv
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = {
    "none": ["checkpoint.interval=0"],
    "waited for": [],
    "checkpoint.async": ["checkpoint.async=true"],
}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def steps_of(folder):
    """Seconds from the end of each step to that of the next, by the number of the first."""
    with open(folder / "log.csv") as file:
        ends = {int(row["step"]): float(row["elapsed_s"]) for row in csv.DictReader(file)}
    return {step: ends[step + 1] - ends[step] for step in ends if step + 1 in ends}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("settings", nargs="*", metavar="key=value")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--saves", type=int, default=5, help="of a run, without the last one; at least 2")
    parser.add_argument("--interval", type=int, default=10, help="steps between them")
    parser.add_argument("--preset", default="dcformer-tiny")
    o = parser.parse_intermixed_args()
    steps = (o.saves + 1) * o.interval
    rows = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as scratch:
        data = pathlib.Path(scratch) / "data"
        run(o.braid, "prepare", ROOT / "README.md", ROOT / "models", "-o", data)
        for count in range(o.rounds):
            whole = {}
            for mode, more in MODES.items():
                out = pathlib.Path(scratch) / f"{mode.replace(' ', '-')}-{count}"
                run(o.braid, "train", f"model.preset={o.preset}", f"data.path={data}", f"run.out={out}",
                    f"train.steps={steps}", "schedule.warmup=0", "eval.interval=0", "guard.spike=0",
                    f"checkpoint.interval={o.interval}", *more, *o.settings)
                seconds = steps_of(out)
                step = min(s for at, s in seconds.items() if at % o.interval)
                # The first save makes the memory of the copies.
                stall = min(s for at, s in seconds.items() if at % o.interval == 0 and at > o.interval) - step
                whole[mode] = sum(s for at, s in seconds.items() if at > o.interval)
                extra = (whole[mode] - whole["none"]) / max(o.saves - 1, 1)
                rows[mode].append((step, stall, extra))
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                   platform.machine())
    print(f"{machine}; {o.preset} {' '.join(o.settings)}; medians of {o.rounds} rounds of {o.saves} saves, one every "
          f"{o.interval} steps.\n")
    print("| saves | a step, ms | stall of a save, ms | of a step | cost of a save in all, ms | of the run |")
    print("|---|--:|--:|--:|--:|--:|")
    for mode, measured in rows.items():
        step, stall, extra = (statistics.median(column) for column in zip(*measured))
        shown = (f"{1e3 * stall:.1f} | {stall / step:.1%} | {1e3 * extra:.0f} | {extra / step / o.interval:.1%}"
                 if mode != "none" else " |  |  | ")
        print(f"| {mode} | {1e3 * step:.1f} | {shown} |")


if __name__ == "__main__":
    main()
