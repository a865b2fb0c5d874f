#!/usr/bin/env python3
"""scripts/fashion_study with a program in place of braid: fashion_study_test.py SCRIPTS"""
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.abspath(sys.argv[1]), "fashion_study")

# The first process of a run takes half a second of processor time and is stopped, by itself or by Ctrl-C; the second one
# ends it.
TRAIN = """#!/usr/bin/env python3
import os, signal, sys, time
out = next(a[8:] for a in sys.argv if a.startswith("run.out="))
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(1))
if not os.path.exists(out):
    os.makedirs(out)
    while time.process_time() < 0.5 or ("waits=1" in sys.argv and not stop):
        pass
    sys.exit(75)
open(out + "/log.csv", "w").write("step,val_top1,val_loss,val_ece\\n10,0.5,1.5,0.1\\n")
"""


class FashionStudy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        braid, data, self.out = (os.path.join(folder.name, name) for name in ("braid", "data", "out"))
        os.makedirs(data)
        open(os.path.join(data, "dataset.json"), "w").close()
        with open(braid, "w") as file:
            file.write(TRAIN)
        os.chmod(braid, stat.S_IRWXU)
        self.command = [sys.executable, SCRIPT, "--seeds", "1", "--models", "vit,dc-vit", "--workers", "1", "--data", data,
                        "--braid", braid, "-o", self.out]

    def check_resumed(self):
        for _ in range(2):  # a run that was not begun is stopped as well
            done = subprocess.run(self.command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^\| vit \| 10 \| \d+ \| 50.00 \|")
        with open(os.path.join(self.out, "vit-1/processor_s.txt")) as file:
            self.assertGreaterEqual(float(file.read()), 0.5)

    def test_a_resumed_run_has_the_processor_time_of_all_its_processes(self):
        first = subprocess.run(self.command, capture_output=True, text=True)
        self.assertEqual(first.returncode, 1, first.stdout)
        self.assertIn("vit with seed 1 failed", first.stderr)
        self.check_resumed()

    def test_ctrl_c_counts_the_processor_time_too(self):
        with subprocess.Popen([*self.command, "waits=1"], stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            while process.poll() is None and not os.path.exists(os.path.join(self.out, "vit-1")):
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)
            said = process.stderr.read()
        self.assertEqual(process.returncode, 1, said)
        self.assertEqual(said, "scripts/fashion_study: stopped; run the same command again to resume\n")
        self.assertFalse(os.path.exists(os.path.join(self.out, "dc-vit-1")))  # no other run is begun
        self.check_resumed()

    def test_an_ignored_ctrl_c_stops_nothing(self):
        with subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True, start_new_session=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
            while process.poll() is None and not os.path.exists(os.path.join(self.out, "vit-1")):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            self.assertIn("vit with seed 1 failed", process.stderr.read())  # by itself


unittest.main(argv=sys.argv[:1])
