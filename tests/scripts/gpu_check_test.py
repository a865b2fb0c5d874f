#!/usr/bin/env python3
"""Rows, targets and losses of scripts/gpu_check, without Braid's programs. Usage: gpu_check_test.py FOLDER_OF_SCRIPTS"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SCRIPTS = sys.argv.pop(1)
sys.path.insert(0, os.path.join(SCRIPTS, "gpu_check.d"))
import bundle  # noqa: E402
import machine  # noqa: E402
import parts  # noqa: E402
import report  # noqa: E402
from rows import Results, Row, Runner  # noqa: E402

PYTHON = sys.executable


def script(text):
    return [PYTHON, "-c", text]


def gone(pid, seconds=5):
    """Whether a process ends within some time; a zombie has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


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

    def test_a_killed_program_and_one_that_hangs_with_its_output_closed(self):
        lines, failed = self.run_rows(Row("killed", script("import os; os.kill(os.getpid(), 9)")),
                                      Row("hangs", script("import os, time; os.close(1); os.close(2); time.sleep(60)"), limit=1),
                                      Row("last", script("print('{\"x\": 2}')")))
        self.assertEqual(failed, ["killed", "hangs"])
        ends = {line["row"]: line for line in lines if "status" in line}
        self.assertEqual(ends["killed"]["reason"], "killed by SIGKILL")
        self.assertEqual((ends["hangs"]["status"], ends["last"]["status"]), ("timeout", "ok"))

    def test_what_a_row_started_ends_with_it(self):
        starts = "import subprocess; p = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
        lines, failed = self.run_rows(Row("row", script(starts + "; print('{\"pid\": %d}' % p.pid)")))
        self.assertEqual(failed, [])
        self.assertTrue(gone(lines[0]["value"]["pid"]))

    def test_a_full_disk_stops_nothing_and_the_lines_are_printed(self):
        said = []
        results = Results("/dev/full", said.append)
        runner = Runner("part", results, time.monotonic() + 30, dict(os.environ), say=said.append)
        for name in ("first", "second"):
            runner.run(Row(name, script("print('{\"x\": 2}')")))
        results.close()
        self.assertEqual(runner.failed, [])
        self.assertEqual(results.fault, "No space left on device")
        self.assertEqual(sum(text.startswith("not written: {") for text in said), 4)

    def test_a_line_that_was_cut_off_costs_only_itself(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('{"part": "pro')
        results = Results(self.path)
        results.add(part="probe", row="a", status="ok")
        results.add(part="probe", row="b", status="ok")
        results.close()
        self.assertEqual([line["row"] for line in report.read(self.path)], ["a", "b"])

    def test_a_signal_ends_the_row_and_says_so(self):
        code = f"""if True:
            import sys, time
            sys.dont_write_bytecode = True
            sys.path.insert(0, {os.path.join(SCRIPTS, "gpu_check.d")!r})
            import rows
            rows.end_by_signals()
            runner = rows.Runner("part", rows.Results({self.path!r}), time.monotonic() + 60, {{}})
            runner.run(rows.Row("row", [sys.executable, "-c", "import os, time; print('{{\\"pid\\": %d}}' % os.getpid(), flush=True); time.sleep(60)"]))
            """
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = subprocess.Popen(script(code), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 20
            while not (os.path.exists(self.path) and report.read(self.path)) and time.monotonic() < end:
                time.sleep(0.05)
            pid = report.read(self.path)[0]["value"]["pid"]
            process.send_signal(number)
            process.wait()
            self.assertTrue(gone(pid), number)
            last = report.read(self.path)[-1]
            self.assertEqual(last.get("reason"), "by SIGTERM" if number == signal.SIGTERM else None)
            os.remove(self.path)

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


class Machine(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name, text=""):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_a_driver_that_only_the_shell_names_is_found(self):
        libraries = os.path.dirname(self.file("driver/libcuda.so.1"))
        before = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = libraries
        try:
            if "libcuda.so.1" in machine.known_to_the_loader():
                self.skipTest("the loader finds a driver by itself")
            folders, found = machine.find_libraries([])
            self.assertIn(libraries, folders)
            self.assertEqual(found["libcuda.so.1"], os.path.join(libraries, "libcuda.so.1"))
            self.assertEqual(machine.python_environment()["LD_LIBRARY_PATH"], libraries)
        finally:
            del os.environ["LD_LIBRARY_PATH"]
            if before is not None:
                os.environ["LD_LIBRARY_PATH"] = before

    def test_a_bundle_that_is_missing_or_cut_off(self):
        self.assertRaisesRegex(RuntimeError, "does not exist: make it with", bundle.unpack, self.folder.name)
        self.file(bundle.ARCHIVE, "half")
        self.assertRaisesRegex(RuntimeError, "cannot be unpacked .* copy it again", bundle.unpack, self.folder.name)
        self.assertEqual(os.listdir(self.folder.name), [bundle.ARCHIVE])

    def unpacked(self, braid, needs=("libcublasLt.so.13",), loader="#!/bin/sh\nshift 2\nprogram=$1\nshift\nexec env LOADED=1 $program $*\n"):
        """An unpacked bundle whose programs are scripts, on a machine without any library of CUDA."""
        for name, text in (("bin/braid", braid), ("glibc/ld-linux-x86-64.so.2", loader)):
            os.chmod(self.file(name, text), 0o755)
        self.file("manifest.json", json.dumps({"found there": list(needs)}))
        before, machine.find_libraries = machine.find_libraries, lambda own: ([], dict.fromkeys(machine.LIBRARIES, ""))
        try:
            return bundle.programs_of(self.folder.name)
        finally:
            machine.find_libraries = before

    def test_a_machine_without_cublaslt_is_told_what_to_install(self):
        self.assertRaisesRegex(RuntimeError, "libcublasLt.so.13 was found neither .*: install PyTorch for CUDA 13", self.unpacked, "#!/bin/sh\n")

    def test_an_older_c_library_is_replaced_by_that_of_the_bundle(self):
        programs, environment, _ = self.unpacked("#!/bin/sh\necho braid\n", needs=())
        self.assertEqual(programs.command("x"), ["x"])
        self.assertEqual(environment["BRAID_TEST_FILES"], self.folder.name)
        older = "#!/bin/sh\n[ -n \"$LOADED\" ] || { echo \"version 'GLIBC_2.36' not found\" >&2; exit 1; }\necho braid\n"
        programs, _, found = self.unpacked(older, needs=())
        self.assertIn("ld-linux", programs.command("x")[0])
        self.assertIn("GLIBC_2.36", found["without the loader"])
        self.assertRaisesRegex(RuntimeError, "braid does not start: .*GLIBC_2.36.*by its own loader", self.unpacked, older, (), "#!/bin/sh\nexit 1\n")

    def test_suites_of_a_program_that_hangs_fail_only_their_part(self):
        program = self.file("test", "#!/bin/sh\nexec sleep 60\n")
        os.chmod(program, 0o755)
        programs = parts.Programs("", program, "", "", "", "", "", "")
        self.assertRaisesRegex(RuntimeError, "names no suite", parts.suites, programs, dict(os.environ), seconds=0.2)


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
