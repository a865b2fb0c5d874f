#!/usr/bin/env python3
"""Rows, targets and losses of scripts/gpu_check, without Braid's programs. Usage: gpu_check_test.py FOLDER_OF_SCRIPTS"""
import json
import os
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(sys.argv.pop(1), "gpu_check.d"))
import parts  # noqa: E402
import report  # noqa: E402
from rows import Results, Row, Runner  # noqa: E402

PYTHON = sys.executable


def script(text):
    return [PYTHON, "-c", text]


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "rows.jsonl")

    def tearDown(self):
        self.folder.cleanup()

    def run_rows(self, *rows, seconds=30, dry=False):
        results = Results(self.path)
        runner = Runner("part", results, time.monotonic() + seconds, dict(os.environ), dry, say=lambda text: None)
        for row in rows:
            runner.run(row)
        results.close()
        return report.read(self.path), runner.failed

    def test_values_are_there_before_the_row_ends(self):
        code = f"print('{{\"a\": 1}}', flush=True)\nimport json\nprint(json.dumps({{'lines': len(open({self.path!r}).readlines())}}))"
        lines, failed = self.run_rows(Row("row", script("import time\n" + code.replace("import json", "time.sleep(0.3)\nimport json"))))
        self.assertEqual(failed, [])
        self.assertEqual([line["value"] for line in lines[:2]], [{"a": 1}, {"lines": 1}])
        self.assertEqual(lines[2]["status"], "ok")

    def test_a_failure_and_a_timeout_stop_nothing(self):
        sleeps = "import subprocess, sys, time\nprint('{\"before\": 1}', flush=True)\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
        started = time.monotonic()
        lines, failed = self.run_rows(Row("fails", script("import sys; print('why'); sys.exit(3)")), Row("no program", ["/nowhere/program"]),
                                      Row("sleeps", script(sleeps), limit=1), Row("wrong", script("print(1)"), values=lambda text: [text.index("x")]),
                                      Row("last", script("print('{\"x\": 2}')")))
        self.assertLess(time.monotonic() - started, 20)
        self.assertEqual(failed, ["fails", "no program", "sleeps", "wrong"])
        ends = {line["row"]: line for line in lines if "status" in line}
        self.assertEqual(ends["fails"]["reason"], "exit code 3")
        self.assertIn("why", ends["fails"]["tail"])
        self.assertEqual(ends["sleeps"]["status"], "timeout")
        self.assertEqual(ends["last"]["status"], "ok")
        self.assertIn({"part": "part", "row": "sleeps", "value": {"before": 1}}, lines)

    def test_rows_that_cannot_run_say_why(self):
        lines, failed = self.run_rows(Row("tool", ["x"], needs="ncu is not installed"), Row("late", script("")), seconds=0)
        self.assertEqual([(line["status"], line["reason"]) for line in lines],
                         [("left out", "ncu is not installed"), ("not run", "no time left in this part")])
        self.assertEqual(failed, ["late"])

    def test_dry_rows_start_their_dry_command(self):
        lines, failed = self.run_rows(Row("row", ["/nowhere"], needs="no GPU", dry=script("print('{\"dry\": 1}')")), dry=True)
        self.assertEqual(failed, [])
        self.assertEqual(lines[0]["value"], {"dry": 1})


class Report(unittest.TestCase):
    def lines(self, part, row, *values):
        return [{"part": part, "row": row, "value": value} for value in values] + [{"part": part, "row": row, "status": "ok", "seconds": 1}]

    def test_nothing_measured(self):
        rows = report.targets(report.Results([]))
        self.assertGreater(len(rows), 20)
        self.assertEqual({(value, met) for _, value, met in rows}, {(report.NOT, None)})

    def test_targets_beside_values(self):
        shape = report.SHAPES[0][1]
        lines = self.lines("probe", "machine", {"gpu": {"name": "NVIDIA H100 80GB HBM3"}})
        lines += self.lines("kernels", "attention", {"name": f"DCMHA {shape} both", "ms": 4.0}, {"name": f"MHA {shape} both", "ms": 1.0})
        lines += self.lines("torch", "a", {"name": f"DCMHA {shape} both", "ms": 84.0}, {"name": f"DCMHA {shape} both compiled", "error": "fell back"},
                            {"name": f"MHA {shape} both, cuDNN", "ms": 1.25})
        step = {"captured": True, "peak_tensor_mib": 1024.0, "tokens_per_second": 1.0, "attention": []}
        lines += self.lines("steps", "dcformer-405m B8 T2048", {**step, "step_seconds": 0.15, "flops": 4.5e13})
        lines += self.lines("steps", "transformer-405m B8 T2048", {**step, "step_seconds": 0.1, "flops": 4.5e13})
        lines += self.lines("steps", "predicted dcformer-405m B8 T2048", {"predicted_seconds": 0.14, "launches": 2600})
        lines += self.lines("training", "comparison", {"run": "cuda bf16", "largest_difference": 0.004})
        rows = {target: (value, met) for target, value, met in report.targets(report.Results(lines))}
        self.assertEqual(rows["DCMHA N16 d64, forward + backward: at least 20x eager PyTorch"], ("21.00", True))
        self.assertEqual(rows["DCMHA N16 d64, forward + backward: at least 4x compiled PyTorch"], (report.NOT, None))
        self.assertEqual(rows["DCMHA N16 d64: at most 3.5x PyTorch's cuDNN"], ("3.20", True))
        self.assertEqual(rows["DCMHA N16 d64: at most 3.5x Braid's MHA (cuDNN, deterministic)"], ("4.00", False))
        self.assertEqual(rows["step of DCFormer++ 405m: at most 1.4x Transformer++"], ("1.50", False))
        self.assertEqual(rows["MFU of the step of Transformer++ 405m: at least 40 %"], ("45.5 %", True))
        self.assertEqual(rows["200 steps, cuda bf16: losses (means of 20) within 1 % of the CPU's in f32"], ("0.400 % at most", True))
        text = report.markdown(lines)
        self.assertIn("fell back", text)
        self.assertIn("| dcformer-405m B8 T2048 | 150.00 | 140.00 | 2600 |", text)
        self.assertEqual(rows["counted without a GPU: launches of a DCFormer++ 405M step, at most 2500"], ("2600", False))

    def test_an_unfinished_line_is_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps({"part": "probe", "row": "a", "value": {}}) + '\n{"part": "pro')
            self.assertEqual(len(report.read(path)), 1)


class Losses(unittest.TestCase):
    def test_compared(self):
        expected = [4 - i / 100 for i in range(200)]
        same = parts.compared("cuda f32", expected, "cpu f32", expected)
        self.assertEqual(same["largest_difference"], 0)
        off = parts.compared("cuda f32", [x * 1.02 for x in expected], "cpu f32", expected)
        self.assertAlmostEqual(off["largest_difference"], 0.02)
        self.assertIn("reason", parts.compared("cuda f32", expected[:30], "cpu f32", expected))

    def test_filter_of_kernels(self):
        self.assertEqual(parts.kernel_filter("  --kernel-regex arg\n  --filter arg"), ["--kernel-regex", "kns=braid"])
        self.assertEqual(parts.kernel_filter("  --filter arg"), ["--filter", "kns=braid"])
        self.assertEqual(parts.kernel_filter(""), [])

    def test_counters(self):
        text = '==PROF==\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","dcmha_f1","gpu__time_duration.sum","us","12.5"\n'
        self.assertEqual(parts.ncu_values(text), [{"kernel": "dcmha_f1", "gpu__time_duration.sum": "12.5 us"}])


if __name__ == "__main__":
    unittest.main()
