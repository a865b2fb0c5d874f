#!/usr/bin/env python3
"""scripts/mpi_job with a shell in place of mpirun: mpi_job_test.py SCRIPTS"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = os.path.join(sys.argv.pop(1), "mpi_job")


class MpiJob(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = folder.name

    def status(self, state):
        """A command that writes the status as braid does: a new file under the old name."""
        path = os.path.join(self.run_folder, "status.json")
        text = json.dumps({"state": state}, indent=2)
        return f"printf '%s' '{text}' > {path}.tmp; mv {path}.tmp {path}; "

    def job(self, command, grace="1", **options):
        return subprocess.run([SCRIPT, self.run_folder, "bash", "-c", command], timeout=60, stderr=subprocess.PIPE,
                              text=True, env={**os.environ, "MPI_JOB_GRACE": grace}, **options)

    def test_the_code_of_a_job_that_ends_is_kept(self):
        for code in (0, 5, 75):
            with self.subTest(code):
                done = self.job(self.status("failed") + f"exit {code}")
                self.assertEqual((done.returncode, done.stderr), (code, ""))

    def test_a_launcher_that_outlives_the_run_is_ended(self):
        done = self.job(self.status("running") + self.status("failed") + "exec sleep 50")
        self.assertEqual(done.returncode, 6)
        self.assertIn("the run ended and mpirun did not within 1 s", done.stderr)

    def test_a_launcher_that_ignores_sigterm_is_killed(self):
        done = self.job("trap '' TERM; " + self.status("failed") + "exec sleep 50")
        self.assertEqual(done.returncode, 6)

    def test_a_launcher_that_ends_a_running_run_counts_as_a_failed_rank(self):
        with open(os.path.join(self.run_folder, "log.jsonl"), "w") as log:
            for hosts in (["old"], ["node1", "node2"]):
                start = [{"host": host, "ranks": f"{2 * i}-{2 * i + 1}", "devices": "cpu"} for i, host in enumerate(hosts)]
                log.write(json.dumps({"step": 0, "event": "start", "hosts": start}, separators=(",", ":")) + "\n")
        for code in (205, 255, 137):  # a lost host, twice; a killed rank
            with self.subTest(code):
                done = self.job(self.status("running") + f"exit {code}")
                self.assertEqual(done.returncode, 6)
                self.assertIn(f"mpirun ended with code {code}, and no rank gave a reason", done.stderr)
                self.assertTrue(done.stderr.endswith("mpi_job: node1: ranks 0-1\nscripts/mpi_job: node2: ranks 2-3\n"))
                self.assertNotIn("old", done.stderr)
        done = self.job("exit 205")  # of an earlier job's status nothing follows
        self.assertEqual((done.returncode, done.stderr), (205, ""))

    def test_a_run_that_goes_on_is_left_alone(self):
        done = self.job(self.status("running") + "sleep 5; exit 3")
        self.assertEqual((done.returncode, done.stderr), (3, ""))

    def test_a_run_whose_status_cannot_be_read_for_a_moment_is_left_alone(self):
        status = os.path.join(self.run_folder, "status.json")
        away = f"mv {status} {status}.away; sleep 4; mv {status}.away {status}; "
        done = self.job(self.status("running") + away + "sleep 2; exit 3")
        self.assertEqual((done.returncode, done.stderr), (3, ""))

    def test_a_run_that_is_started_again_is_left_alone(self):
        done = self.job(self.status("failed") + "sleep 3; " + self.status("running") + "sleep 5; exit 3", grace="3")
        self.assertEqual((done.returncode, done.stderr), (3, ""))

    def test_the_end_of_an_earlier_job_does_not_count(self):
        subprocess.run(["bash", "-c", self.status("failed")], check=True)
        done = self.job("sleep 5; " + self.status("running") + "exit 0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_signals_reach_the_launcher(self):
        for number in (signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(number.name):
                ready = os.path.join(self.run_folder, "ready")
                job = subprocess.Popen([SCRIPT, self.run_folder, "bash", "-c",
                                        f"trap 'exit 75' TERM USR1; touch {ready}; while :; do sleep 0.1; done"])
                while not os.path.exists(ready):
                    time.sleep(0.05)
                job.send_signal(number)
                self.assertEqual(job.wait(timeout=20), 75)
                os.remove(ready)
        job = subprocess.Popen([SCRIPT, self.run_folder, "bash", "-c",
                                f"trap 'exit 143' TERM; {self.status('running')} touch {ready}; while :; do sleep 0.1; done"])
        while not os.path.exists(ready):
            time.sleep(0.05)
        job.terminate()
        self.assertEqual(job.wait(timeout=20), 143)  # it was asked for

    def test_bad_use_is_named(self):
        done = self.job("exit 0", grace="soon")
        self.assertEqual(done.returncode, 2)
        self.assertIn("MPI_JOB_GRACE: expected seconds, an integer, found 'soon'", done.stderr)
        self.assertEqual(subprocess.run([SCRIPT, self.run_folder], stderr=subprocess.DEVNULL).returncode, 2)


if __name__ == "__main__":
    unittest.main()
