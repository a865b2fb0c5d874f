"""Results as one report: every target beside its measured value, then what each part found."""
import json
import os

PEAK_FLOPS = (("H100", 989e12), ("H200", 989e12), ("GH200", 989e12), ("A100", 312e12))  # bf16, dense, as NVIDIA states them
NOT = "unproven"
SHAPES = (("N16 d64", "405M N16 d64 B8 T2048 global", 3.5), ("N32 d80", "2.8B N32 d80 B8 T2048 global", 3.5),
          ("N32 d128", "6.9B N32 d128 B8 T2048 global", 2.5))


def read(path):
    """The lines of a results file; one that a run left unfinished is passed over."""
    lines = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
    return lines


class Results:
    def __init__(self, lines):
        self.lines = lines

    def values(self, part, row=None):
        return [line["value"] for line in self.lines if line.get("part") == part and "value" in line and row in (None, line["row"])]

    def ends(self, part):
        """The last status of each row: a part that was run again counts once."""
        return {line["row"]: line for line in self.lines if line.get("part") == part and "status" in line}

    def parts(self):
        return list(dict.fromkeys(line["part"] for line in self.lines if "part" in line))

    def kernel(self, part, name, field="ms"):
        """The newest value of the row of bench_device or torch_device of that name."""
        found = [value[field] for value in self.values(part) if value.get("name") == name and field in value]
        return found[-1] if found else None

    def step(self, name):
        found = self.values("steps", name)
        return found[-1] if found else None

    def dry(self):
        return any(value.get("dry") for part in self.parts() for value in self.values(part, "found"))

    def gpu(self):
        return next((value["gpu"] for value in self.values("probe", "machine") if value.get("gpu")), {})


def ratio(a, b):
    return None if a is None or b is None or not b else a / b


def number(value, form="{:.2f}"):
    return NOT if value is None else form.format(value)


def utilisation(results, name):
    step = results.step(name)
    peak = next((flops for gpu, flops in PEAK_FLOPS if gpu in results.gpu().get("name", "")), None)
    return None if not step or not peak or "flops" not in step else 100 * step["flops"] / step["step_seconds"] / peak


def passed(results, part):
    ends = results.ends(part)
    if not ends:
        return None
    bad = [f"{name}: {end['status']}" for name, end in ends.items() if end["status"] != "ok"]
    return "all rows passed" if not bad else "; ".join(bad)


def targets(results):
    """(target, measured, met: True, False or None)."""
    rows = []

    def add(text, value, met, form="{:.2f}"):
        rows.append((text, value if isinstance(value, str) else number(value, form), None if value is None else bool(met(value))))

    for part in ("tests", "sanitizers"):
        add(f"{part}: every row passes", passed(results, part), lambda value: value == "all rows passed")
    for label, shape, limit in SHAPES:
        both = results.kernel("kernels", f"DCMHA {shape} both")
        eager, compiled = (results.kernel("torch", f"DCMHA {shape} both{suffix}") for suffix in ("", " compiled"))
        add(f"DCMHA {label}, forward + backward: at least 20x eager PyTorch", ratio(eager, both), lambda value: value >= 20)
        add(f"DCMHA {label}, forward + backward: at least 4x compiled PyTorch", ratio(compiled, both), lambda value: value >= 4)
        for of, name in (("PyTorch's cuDNN", f"MHA {shape} both, cuDNN"), ("PyTorch's cuDNN, deterministic", f"MHA {shape} both, cuDNN, deterministic")):
            add(f"DCMHA {label}: at most {limit}x {of}", ratio(both, results.kernel("torch", name)), lambda value, most=limit: value <= most)
        add(f"DCMHA {label}: at most {limit}x Braid's MHA (cuDNN, deterministic)", ratio(both, results.kernel("kernels", f"MHA {shape} both")),
            lambda value, most=limit: value <= most)
    for size, batch, limit, share in (("405m", 8, 1.4, 40), ("2.8b", 4, None, 50)):
        names = [f"{model}-{size} B{batch} T2048" for model in ("dcformer", "transformer")]
        times = [(results.step(name) or {}).get("step_seconds") for name in names]
        if limit:
            add(f"step of DCFormer++ {size}: at most {limit}x Transformer++", ratio(*times), lambda value: value <= limit)
        else:
            add(f"step of DCFormer++ {size} as a multiple of Transformer++ (no target)", ratio(*times), lambda value: True)
        add(f"MFU of the step of Transformer++ {size}: at least {share} %", utilisation(results, names[1]), lambda value: value >= share, "{:.1f} %")
        add(f"MFU of the step of DCFormer++ {size} (no target)", utilisation(results, names[0]), lambda value: True, "{:.1f} %")
    shape = SHAPES[1][1]
    add("memory of a 2.8B-shaped attention layer: at most 1/5 of eager PyTorch",
        ratio(results.kernel("kernels", f"DCMHA {shape} both", "peak_mib"), results.kernel("torch", f"DCMHA {shape} both", "peak_mib")),
        lambda value: value <= 0.2)
    for shape, most in (("N16 d64 B8 T2048 global", 80), ("N32 d80 B8 T2048 global", 140), ("N16 d64 B8 T2048 W256", 45), ("N32 d80 B8 T2048 W256", 45)):
        add(f"counted without a GPU: launches of a layer's attention, {shape}, at most {most}", results.kernel("probe", f"counted {shape}", "launches"),
            lambda value, most=most: value <= most, "{}")
    add("counted without a GPU: bytes of GPU memory per useful score, N16 d64 global, forward + backward, at most 32",
        results.kernel("probe", "counted N16 d64 B8 T2048 global", "bytes_per_score"), lambda value: value <= 32, "{:.1f}")
    dcformer, transformer = (results.step(f"predicted {model}-405m B8 T2048") or {} for model in ("dcformer", "transformer"))
    add("counted without a GPU: launches of a DCFormer++ 405M step, at most 2500", dcformer.get("launches"), lambda value: value <= 2500, "{}")
    add("predicted without a GPU: step of DCFormer++ 405m, at most 1.75x Transformer++",
        ratio(dcformer.get("predicted_seconds"), transformer.get("predicted_seconds")), lambda value: value <= 1.75)
    large, plain = (results.step(f"predicted {model}-2.8b B4 T2048") or {} for model in ("dcformer", "transformer"))
    add("predicted without a GPU: step of DCFormer++ 2.8b, at most 1.45x Transformer++",
        ratio(large.get("predicted_seconds"), plain.get("predicted_seconds")), lambda value: value <= 1.45)
    for size, step, share in (("405m", transformer, 40), ("2.8b", plain, 50)):
        used = step.get("predicted_flops_utilisation")
        add(f"predicted without a GPU: MFU of the step of Transformer++ {size}, at least {share} %", None if used is None else 100 * used,
            lambda value, share=share: value >= share, "{:.1f} %")
    add("counted without a GPU: memory reserved by 2.8B B4, at most 76 GiB",
        None if "reserved_mib" not in large else large["reserved_mib"] / 1024, lambda value: value <= 76, "{:.1f} GiB")
    recorded = results.step("dcformer-2.8b B4 T2048")
    add("2.8B B4: the step is captured, within 76 GiB",
        None if not recorded else f"captured: {recorded['captured']}, {recorded['peak_tensor_mib'] / 1024:.1f} GiB in tensors at the peak",
        lambda value: recorded["captured"] and recorded["peak_tensor_mib"] <= 76 * 1024)
    comparison = {value["run"]: value for value in results.values("training", "comparison")}
    for run in ("cuda bf16", "cuda f32"):
        near, bound = comparison.get(run, {}).get("largest_of_first_40"), 1e-4 if run.endswith("f32") else 0.03
        add(f"each of the first 40 losses, {run}: within {bound:g} of the CPU's in f32", near, lambda value, bound=bound: value <= bound, "{:.1e}")
        found = comparison.get(run, {}).get("largest_difference")
        add(f"200 steps, {run}: losses (means of 20) within 1 % of the CPU's in f32", None if found is None else 100 * found,
            lambda value: value <= 1, "{:.3f} % at most")
    return rows


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in row) + " |" for row in rows]


def served(step):
    return "; ".join(f"{use['pass']} by {use['kernel']}" + (f" ({use['reason']})" if use["reason"] else "") for use in step.get("attention", []))


def of_part(results, part):
    lines = []
    values = results.values(part)
    if part == "steps":
        rows = []
        for name in results.ends(part):
            step, predicted = results.step(name), results.step(f"predicted {name}") or {}
            if not step or "step_seconds" not in step:
                continue
            rows.append((name, number(1e3 * step["step_seconds"]), number(1e3 * predicted["predicted_seconds"]) if predicted else "",
                         predicted.get("launches", ""), number(step["tokens_per_second"], "{:.0f}"), number(utilisation(results, name), "{:.1f} %"),
                         step["captured"], number(step["peak_tensor_mib"], "{:.0f}"), served(step)))
        lines += table(("model", "ms/step", "predicted", "launches", "tokens/s", "MFU", "captured", "peak MiB", "attention"), rows)
    elif part == "kernels":
        rows = [(v["name"], number(v["ms"], "{:.4f}"), number(v.get("ps_per_element") or None, "{:.3f}").replace(NOT, ""),
                 f"{v['percent']:.0f} % of {v['of']}" if v.get("percent") else "", number(v.get("peak_mib"), "{:.0f}")) for v in values if "ms" in v]
        lines += table(("row", "ms", "ps/element", "share of the ceiling", "peak MiB"), rows)
    elif part == "torch":
        rows = [(v["name"], v.get("error") or number(v["ms"], "{:.4f}"), number(v.get("peak_mib"), "{:.0f}").replace(NOT, "")) for v in values if "name" in v]
        lines += table(("row", "ms", "peak MiB"), rows)
    else:
        for value in values:
            text = json.dumps({key: item for key, item in value.items() if key != "losses"})
            if text not in ("{}", '{"lines": []}'):
                lines.append(f"- `{text[:600]}`")
    return lines


def markdown(lines):
    results = Results(lines)
    gpu = results.gpu()
    text = ["# Braid on " + (gpu.get("name") or "a GPU that was not found"), ""]
    if results.dry():
        text += ["**A dry run: the programs ran on the CPU with tiny arguments. No value below says anything about a GPU.**", ""]
    if gpu:
        text += [", ".join(f"{name} {value}" for name, value in gpu.items()), ""]
    words = {True: "yes", False: "no", None: ""}
    rows = targets(results)
    if results.dry():
        rows = [row if "without a GPU" in row[0] else (row[0], NOT, None) for row in rows]
    text += ["## Targets", ""] + table(("target", "measured", "met"), [(target, value, words[met]) for target, value, met in rows]) + [""]
    for part in results.parts():
        text += [f"## {part}", ""] + of_part(results, part) + [""]
        text += table(("row", "result", "seconds", "reason"),
                      [(name, end["status"], end["seconds"], end.get("reason") or end.get("tail", "")[-200:]) for name, end in results.ends(part).items()]) + [""]
    return "\n".join(text)
