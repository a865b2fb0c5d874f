#!/usr/bin/env python3
"""scripts/fashion_study with a program in place of braid: fashion_study_test.py SCRIPTS"""
import os
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.abspath(sys.argv[1]), "fashion_study")

# The first process of a run takes half a second of processor time and is stopped, the second one ends it.
TRAIN = """#!/usr/bin/env python3
import os, sys, time
out = next(a[8:] for a in sys.argv if a.startswith("run.out="))
if not os.path.exists(out):
    os.makedirs(out)
    while time.process_time() < 0.5:
        pass
    sys.exit(75)
open(out + "/log.csv", "w").write("step,val_top1,val_loss,val_ece\\n10,0.5,1.5,0.1\\n")
"""


class FashionStudy(unittest.TestCase):
    def test_a_resumed_run_has_the_processor_time_of_all_its_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            braid, data, out = (os.path.join(folder, name) for name in ("braid", "data", "out"))
            os.makedirs(data)
            open(os.path.join(data, "dataset.json"), "w").close()
            with open(braid, "w") as file:
                file.write(TRAIN)
            os.chmod(braid, stat.S_IRWXU)
            command = [sys.executable, SCRIPT, "--seeds", "1", "--models", "vit", "--data", data, "--braid", braid, "-o", out]
            first = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(first.returncode, 1, first.stdout)
            self.assertIn("vit with seed 1 failed", first.stderr)
            second = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(second.returncode, 0, second.stderr)
            self.assertRegex(second.stdout, r"(?m)^\| vit \| 10 \| \d+ \| 50.00 \|")
            with open(os.path.join(out, "vit-1/processor_s.txt")) as file:
                self.assertGreaterEqual(float(file.read()), 0.5)


unittest.main(argv=sys.argv[:1])
