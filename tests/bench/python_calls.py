#!/usr/bin/env python3
"""What Python adds: the time of a call beside NumPy and torch, and of training steps beside the program's.

usage: python_calls.py [--program BRAID] [--rounds N]

The module braid must be importable. Contestants take turns; medians count. With --program a run of `braid train` and
one of braid.train() with the same settings alternate, each in a process of its own, and the medians of the times of
their steps are compared, also with a loop over a model's loss written in Python. Prints JSON lines.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import braid

SETTINGS = {"model.preset": "dcformer-tiny", "data.seq_len": 256, "train.batch_size": 8, "train.steps": 40,
            "schedule.warmup": 1, "eval.interval": 0, "run.device": "cpu", "run.threads": 2, "log.interval": 1000}


def call_times(contestants, rounds, calls=20000):
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, call in contestants.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            times[name].append((time.perf_counter() - start) / calls * 1e9)
    return {name: round(statistics.median(values)) for name, values in times.items()}


def measure_calls(rounds):
    x = braid.ones((10,))
    g = braid.ones((10,)).requires_grad_()
    plain, recorded = {"braid": lambda: x + x}, {"braid": lambda: g + x}
    try:
        import numpy
        n = numpy.ones(10, dtype=numpy.float32)
        plain["numpy"] = lambda: n + n
    except ImportError:
        pass
    try:
        import torch
        t, tg = torch.ones(10), torch.ones(10, requires_grad=True)
        plain["torch"], recorded["torch"] = lambda: t + t, lambda: tg + t
    except ImportError:
        pass
    for name, contestants in (("add of 10 numbers", plain), ("the same with gradient", recorded)):
        print(json.dumps({"call": name, "ns": call_times(contestants, rounds)}), flush=True)


def step_seconds(folder):
    """The median between two steps of the log, without the first five."""
    elapsed = braid.Run(folder).log["elapsed_s"][5:]
    return statistics.median(b - a for a, b in zip(elapsed, elapsed[1:]))


def loop_seconds():
    """The same model and batches of random ids, by a loop in Python."""
    braid.set_threads(2)
    net = braid.nn.make_model("dcformer-tiny", key=1, settings={"vocab_size": "258"})
    optimizer = braid.nn.Optimizer(net, "adamw", lr=1e-3)
    ids = braid.randint(0, 256, (8, 257), 1)
    times = []
    for _ in range(40):
        start = time.perf_counter()
        net.loss(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step(grad_scale=braid.nn.clip_factor(braid.nn.global_norm(net), 1.0))
        optimizer.zero_grad()
        times.append(time.perf_counter() - start)
    return statistics.median(times[5:])


def measure_steps(program, rounds):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "text.txt").write_text("the heads of a layer read each other's scores\n" * 4000)
        braid.prepare([str(folder / "text.txt")], str(folder / "data"))
        times = {"braid train": [], "braid.train()": [], "a loop in Python": []}
        for i in range(rounds):
            for name, values in times.items():
                out = str(folder / f"{name}-{i}")
                settings = SETTINGS | {"data.path": str(folder / "data"), "run.out": out}
                if name == "a loop in Python":
                    code = f"import sys; sys.path[:0] = [{os.path.dirname(os.path.abspath(__file__))!r}]\n" \
                           "import python_calls; print(python_calls.loop_seconds())"
                    got = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
                    values.append(float(got.stdout))
                    continue
                if name == "braid train":
                    command = [program, "train", *(f"{key}={value}" for key, value in settings.items())]
                else:
                    command = [sys.executable, "-c", f"import braid; braid.train('', {settings!r}, lambda row: None)"]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                values.append(step_seconds(out))
        medians = {name: statistics.median(values) for name, values in times.items()}
        print(json.dumps({"step": "dcformer-tiny, 8 x 256 tokens, f32, 2 threads",
                          "ms": {name: round(value * 1e3, 2) for name, value in medians.items()},
                          "ratio": {name: round(value / medians["braid train"], 3) for name, value in medians.items()}}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the program braid")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    measure_calls(given.rounds)
    if given.program:
        measure_steps(given.program, given.rounds)
