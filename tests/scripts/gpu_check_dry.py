#!/usr/bin/env python3
"""Every part of scripts/gpu_check with --dry, from another folder and with an empty environment: each row's program starts with
arguments of the row's form, its output has the expected form, and the report is made. Usage: gpu_check_dry.py SCRIPTS BUILD"""
import json
import os
import subprocess
import sys
import tempfile

scripts, build = sys.argv[1:]
PARTS = ("probe", "tests", "sanitizers", "kernels", "torch", "steps", "training")


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": "/usr/bin:/bin", "HOME": os.path.join(folder, "nothing")}
        command = [sys.executable, os.path.join(scripts, "gpu_check")]
        out = os.path.join(folder, "out", "rows.jsonl")
        run = subprocess.run([*command, "--programs", build, "--dry", "-o", out], cwd=folder, env=environment)
        with open(out, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        faults = [line for line in lines if line.get("status", "ok") not in ("ok", "left out")]
        faults += [f"{part}: no row ended" for part in PARTS if not any(line["part"] == part and "status" in line for line in lines)]
        faults += [line for line in lines if line["part"] in ("probe", "kernels") and "error" in line.get("value", {})]
        report = subprocess.run([*command, "--report", out], cwd=folder, env=environment, capture_output=True, text=True)
        if report.returncode != 0 or "No value below says anything about a GPU" not in report.stdout:
            faults.append(f"the report: {report.stdout[-300:]} {report.stderr[-1000:]}")
        for fault in faults:
            print(f"fault: {fault}")
        print(f"{len(lines)} lines, {len(faults)} faults")
        return 1 if faults or run.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
