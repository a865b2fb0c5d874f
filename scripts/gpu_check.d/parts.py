"""The parts of the check: which command lines they run. A part is a list of rows (rows.py)."""
import csv
import io
import json
import os
import re
import subprocess

import machine
from rows import Row

LIMIT = 520  # seconds of a part, at most
NAMES = ("probe", "tests", "sanitizers", "kernels", "torch", "steps", "training")
EXACT = {"BRAID_ALLOCATOR": "exact"}  # every tensor in memory of its own, so that a checker finds its ends

# Model settings that make any preset small enough for --dry.
SMALL = ["n_layer=2", "dim=64", "n_head=16", "intermediate_size=64", "vocab_size=100"]
STEPS = [("405m", 8), ("2.8b", 4)]
TRAINING = ["model.n_head=16", "model.dim=256", "model.block_size=512", "model.window_type=LG", "model.window_size=128",
            "model.n_layer=4", "train.batch_size=4", "eval.interval=1000", "eval.tasks=0", "sample.interval=0", "checkpoint.interval=0"]


class Programs:
    """Where the programs, their data and the Python files are."""

    def __init__(self, braid, tests, bench, probe, bench_scripts, config, data, golden_losses):
        self.braid, self.tests, self.bench, self.probe = braid, tests, bench, probe
        self.bench_scripts, self.config, self.data, self.golden_losses = bench_scripts, config, data, golden_losses
        self.through = []  # in front of every program: the loader of the bundle, where the machine's C library is too old

    def command(self, program, *arguments):
        return [*self.through, program, *arguments]


def probe(programs, tools, out, torch):
    def describe():
        found = {"machine": machine.description(), "gpu": machine.gpu(tools["nvidia-smi"]), "tools": tools,
                 "torch": torch[1] if torch else None}
        return [found]

    rows = [Row("machine", [], after=describe),
            Row("program", programs.command(programs.braid, "--version"), values=lambda text: [{"version": text.strip()}]),
            Row("rates", programs.command(programs.probe, "device=cuda:0", "repeat=5"), limit=240,
                dry=programs.command(programs.probe, "device=cpu", "size=tiny", "repeat=1")),
            Row("counted without a GPU", programs.command(programs.probe, "device=dry", "repeat=1"), limit=60),
            Row("clocks after", [], after=lambda: [{"gpu": machine.gpu(tools["nvidia-smi"])}])]
    counters = ["gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active",
                "dram__bytes.sum", "launch__occupancy_limit_shared_mem"]
    bench = programs.command(programs.bench, "device=cuda:0", "group=attention", "repeat=1", "json=1",
                             "row=DCMHA 405M N16 d64 B8 T2048 global both")
    rows.append(Row("counters of kernels", [tools["ncu"] or "ncu", "--csv", "--kernel-name-base", "function", "--kernel-name",
                                            "regex:dcmha", "--launch-count", "40", "--metrics", ",".join(counters), *bench],
                    limit=200, needs="" if tools["ncu"] else "ncu is not installed", values=ncu_values,
                    dry=programs.command(programs.bench, "device=dry", *bench[len(programs.through) + 2:])))
    return rows


def ncu_values(text):
    lines = [line for line in text.split("\n") if line.startswith('"')]
    kernels = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        values = kernels.setdefault((row["ID"], row["Kernel Name"][:100]), {})
        values[row["Metric Name"]] = row["Metric Value"] + " " + row["Metric Unit"]
    return [{"kernel": name, **values} for (_, name), values in list(kernels.items())[:40]]


def suites(programs, environment, seconds=60):
    """The names of the test suites that the test program has."""
    try:
        run = subprocess.run(programs.command(programs.tests, "--list_content", "--color_output=no"), capture_output=True, text=True,
                             timeout=seconds, env=environment, stdin=subprocess.DEVNULL)
        text = run.stdout + run.stderr
    except subprocess.TimeoutExpired:
        text = f"it did not end within {seconds} seconds"
    names = [line.rstrip("*") for line in text.split("\n") if re.fullmatch(r"\w+\*?", line)]
    if not names:
        raise RuntimeError(f"{programs.tests} --list_content names no suite: {text[-300:]}")
    return names


def test_values(text):
    found = re.findall(r"^.*(?:test cases? out of|assertions? out of|bit-equal|skipped: ).*$", text, re.M)
    return [{"lines": [line.strip() for line in found][-20:]}]


def tests(programs, tools, out, torch, names):
    rows = []
    for suite in names:
        arguments = [f"--run_test={suite}", "--color_output=no", "--log_level=warning", "--report_level=short"]
        many = suite == "repeats"
        if many:
            arguments[2] = "--log_level=message"
        rows.append(Row(suite, programs.command(programs.tests, *arguments), limit=150 if many else 120, values=test_values,
                        env={"BRAID_REPEATS": "1000"} if many else {},
                        dry=programs.command(programs.tests, arguments[0], "--list_content")))
    return sorted(rows, key=lambda row: row.name == "repeats")  # last: it takes longest


def kernel_filter(help_text):
    """Braid's kernels only: those of cuBLASLt and cuDNN give false alarms. The option has had three names."""
    for option in ("--kernel-name", "--kernel-regex", "--filter"):
        if option in help_text:
            return [option, "kns=braid"]
    return []


def sanitizers(programs, tools, out, torch, names):
    tool, rows = tools["compute-sanitizer"], []
    chosen = kernel_filter(machine.output_of([tool, "--help"]) if tool else "")
    for check in ("memcheck", "racecheck", "synccheck", "initcheck"):
        command = [tool or "compute-sanitizer", "--tool", check, *chosen, "--error-exitcode", "9",
                   "--print-limit", "20", *programs.command(programs.tests, "--run_test=sanitizer_selection", "--color_output=no")]
        rows.append(Row(check, command, limit=LIMIT / 4, env=EXACT, needs="" if tool else "compute-sanitizer is not installed",
                        values=lambda text: [{"summary": [line for line in text.split("\n") if "SUMMARY" in line]}],
                        dry=programs.command(programs.tests, "--run_test=sanitizer_selection", "--list_content")))
    if "sanitizer_selection" not in names:
        raise RuntimeError(f"{programs.tests} has no suite sanitizer_selection")
    return rows


def one_object(text):
    """The JSON object at the end of an output, over several lines."""
    return json.loads(text[text.index("{"):])


def kernels(programs, tools, out, torch):
    rows = []
    for group, limit in (("attention", 260), ("gemm", 60), ("rows", 90), ("decode", 60)):
        rows.append(Row(group, programs.command(programs.bench, "device=cuda:0", f"group={group}", "repeat=10", "json=1"), limit=limit,
                        dry=programs.command(programs.bench, "device=dry", f"group={group}", "repeat=1", "json=1")))
    return rows


def torch_rows(programs, tools, out, torch):
    python = torch[0] if torch else ""
    script = os.path.join(programs.bench_scripts, "torch_device.py")
    needs = "" if torch else "no Python here has torch"
    usable = torch and torch[1]["gpu"] == "True"
    if torch and not usable:
        needs = f"PyTorch {torch[1]['torch']} finds no GPU"
    # Each shape is a process of its own: a failed compilation or a full memory costs one row.
    environment = machine.python_environment()
    shapes = ["405M N16 d64 B8 T2048 global", "405M N16 d64 B8 T2048 W256", "2.8B N32 d80 B8 T2048 global", "6.9B N32 d128 B8 T2048 global",
              "2.8B N32 d80 B8 T2048 W256", "6.9B N32 d128 B8 T2048 W256"]
    rows = []
    for group in ("gemm", "rows"):
        rows.append(Row(group, [python, script, f"group={group}", "repeat=5", "compile=0"], limit=60, needs=needs, env=environment,
                        dry=[python, script, f"group={group}", "repeat=1", "compile=0", "device=cpu", "size=tiny"] if torch else None))
    step = os.path.join(programs.bench_scripts, "torch_step.py")
    for model, batch in (("transformer", 8), ("dcformer", 2)):  # eager, composed heads of 2 sequences take 38 GiB
        arguments = [python, step, "--model", model, "--dtype", "bf16"]
        full = ["--device", "cuda", "--layers", "24", "--dim", "1024", "--heads", "16", "--seq", "2048", "--vocab", "50256", "--steps", "5"]
        small = ["--layers", "1", "--dim", "64", "--seq", "32", "--batch", "1", "--steps", "1"]
        rows.append(Row(f"step {model}-405m B{batch} T2048", [*arguments, *full, "--batch", str(batch)], limit=60, needs=needs, env=environment,
                        values=lambda text: [one_object(text)], dry=[*arguments, *small] if torch else None))
    for compile_, limit in ((0, 60), (1, 150)):
        for shape in shapes[:4] if compile_ else shapes:
            name = f"attention {shape}" + (" compiled" if compile_ else "")
            rows.append(Row(name, [python, script, "group=attention", f"row=MHA {shape} both" + (" compiled" if compile_ else ""),
                                   "repeat=5", f"compile={compile_}"], limit=limit, needs=needs, env=environment,
                            dry=[python, script, "group=attention", "row=MHA tiny N16 d16 B1 T32 global", "repeat=1", "compile=0",
                                 "device=cpu", "size=tiny"] if torch else None))
    return rows


def steps(programs, tools, out, torch):
    rows = []

    def add(name, preset, batch, *flags, limit=100, length=2048):
        arguments = ["bench", "step", "--dtype", "bf16", "--json", "--preset", preset]
        full = [*flags, "--device", "cuda:0", "--batch", str(batch), "--steps", "10"] + (["--seq-len", str(length)] if length else [])
        small = [*(flag for flag in flags if flag != "--kernels"), "--device", "cpu", "--batch", "1", "--steps", "1", "--seq-len", "16", "--threads", "1", *SMALL]
        rows.append(Row(name, programs.command(programs.braid, *arguments, *full), limit=limit,
                        dry=programs.command(programs.braid, *arguments, *small)))

    def prediction(text):
        value = one_object(text)
        value.pop("rows", None)  # hundreds of kernels; `braid bench step --dry` prints them
        return [value]

    for size, batch in STEPS:
        for model in ("transformer", "dcformer"):
            name = f"{model}-{size} B{batch} T2048"
            rows.append(Row(f"predicted {name}", programs.command(
                programs.braid, "bench", "step", "--dry", "--device", "cuda", "--dtype", "bf16", "--json", "--preset", f"{model}-{size}", "--batch",
                str(batch), "--seq-len", "2048"), limit=60, values=prediction))
            add(name, f"{model}-{size}", batch, "--kernels")
    add("dcformer-405m B8 T2048, launched", "dcformer-405m", 8, "--no-graph")
    add("dcformer-tiny B8", "dcformer-tiny", 8, limit=40, length=0)
    add("dcformer-tiny B8, launched", "dcformer-tiny", 8, "--no-graph", limit=40, length=0)
    return rows


def losses(folder):
    with open(os.path.join(folder, "log.csv"), encoding="utf-8") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def training(programs, tools, out, torch):
    """The same 200 steps on the CPU in f32 and on the GPU: data order and initial weights are equal. 16 heads of 16 and 512
    tokens, so that the tensor-core kernels compute the attention, within windows of 128 and over all tokens."""
    rows, folders = [], {}

    def add(name, device, dtype, limit):
        folder = folders[name] = os.path.join(out, "training-" + name.replace(" ", "-"))
        arguments = ["train", programs.config, *TRAINING, f"data.path={programs.data}", f"run.out={folder}", f"train.dtype={dtype}"]
        dry = [*arguments, "model.dim=64", "model.n_layer=1", "model.block_size=32", "train.batch_size=1", "schedule.warmup=2", "train.steps=20",
               "eval.samples=4", "run.device=cpu", "run.threads=1"]
        rows.append(Row(name, programs.command(programs.braid, *arguments, "train.steps=200", f"run.device={device}"), limit=limit,
                        dry=programs.command(programs.braid, *dry), values=lambda text: attention_lines(text),
                        after=lambda: [{"run": name, "losses": losses(folder)}]))

    add("cuda bf16", "cuda:0", "bf16", 150)
    add("cuda f32", "cuda:0", "f32", 150)
    add("cpu f32", "cpu", "f32", 200)

    def compare():
        measured = {name: losses(folder) for name, folder in folders.items() if os.path.exists(os.path.join(folder, "log.csv"))}
        if os.path.exists(programs.golden_losses):
            with open(programs.golden_losses, encoding="utf-8") as file:
                measured["packed"] = json.load(file)
        complete = max((len(values) for values in measured.values()), default=0)
        reference = "cpu f32" if len(measured.get("cpu f32", [])) == complete else "packed"
        return [compared(name, values, reference, measured.get(reference, [])) for name, values in measured.items()
                if name.startswith("cuda")]

    rows.append(Row("comparison", [], after=compare))
    return rows


def attention_lines(text):
    return [{"lines": [line for line in text.split("\n") if line.startswith("attention:")][:4]}]


def compared(name, values, reference, expected):
    """The mean loss of the last 20 steps, the largest difference of a mean of 20 steps, and of one of the first 40 steps, before
    rounding has set the runs apart; relative to the reference."""
    if len(values) != len(expected) or len(values) < 20:
        return {"run": name, "reference": reference, "reason": f"{len(values)} and {len(expected)} steps"}

    def means(x):
        return [sum(x[i - 20:i]) / 20 for i in range(20, len(x) + 1)]

    found, correct = means(values), means(expected)
    return {"run": name, "reference": reference, "last": found[-1], "expected": correct[-1], "difference": found[-1] / correct[-1] - 1,
            "largest_difference": max(abs(a / b - 1) for a, b in zip(found, correct)),
            "largest_of_first_40": max(abs(a / b - 1) for a, b in zip(values[:40], expected))}


def rows_of(part, programs, tools, out, torch, environment):
    if part in ("tests", "sanitizers"):
        names = suites(programs, environment)
        return (tests if part == "tests" else sanitizers)(programs, tools, out, torch, names)
    return {"probe": probe, "kernels": kernels, "torch": torch_rows, "steps": steps, "training": training}[part](programs, tools, out, torch)
