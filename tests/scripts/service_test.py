#!/usr/bin/env python3
"""The command of scripts/braid.service, started as systemd would: service_test.py SCRIPTS BRAID"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

SCRIPTS, BRAID = sys.argv[1:3]
del sys.argv[1:3]
UNIT = os.path.join(SCRIPTS, "braid.service")


def setting(name):
    with open(UNIT, encoding="utf-8") as file:
        return [line.partition("=")[2].strip() for line in file if line.startswith(name + "=")]


class Service(unittest.TestCase):
    def model(self, folder):
        """The folder of a small run."""
        text, data, run = (os.path.join(folder, name) for name in ("text.txt", "data", "run"))
        with open(text, "w", encoding="utf-8") as file:
            file.write("".join(f"line {i} of {i * i} lines\n" for i in range(2000)))
        subprocess.run([BRAID, "prepare", text, "-o", data, "--train-bpe", "300"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([BRAID, "train", "model.preset=dcformer-tiny", "data.path=" + data, "run.out=" + run,
                        "train.steps=1", "schedule.warmup=0"], check=True, stdout=subprocess.DEVNULL)
        return run

    def test_the_command_serves_with_the_key(self):
        (command,), (credential,) = setting("ExecStart"), setting("LoadCredential")
        with tempfile.TemporaryDirectory() as folder:
            key = os.path.join(folder, credential.partition(":")[0])
            with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o400), "w", encoding="utf-8") as file:
                file.write("secret\n")
            os.chmod(key, 0o440)  # as systemd shows the mask of the list of its readers
            port_file = os.path.join(folder, "port")
            words = command.replace("${CREDENTIALS_DIRECTORY}", folder).split()
            self.assertEqual(words[0], "/usr/local/bin/braid")
            words[0], words[2] = BRAID, self.model(folder)
            words[words.index("--port") + 1] = "0"
            server = subprocess.Popen([*words, "--port-file", port_file], stdout=subprocess.DEVNULL,
                                      env={**os.environ, "CREDENTIALS_DIRECTORY": folder})
            try:
                for _ in range(600):
                    if os.path.exists(port_file) or server.poll() is not None:
                        break
                    time.sleep(0.05)
                self.assertIsNone(server.poll(), words)
                with open(port_file, encoding="utf-8") as file:
                    url = f"http://127.0.0.1:{file.read().strip()}/v1/models"
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(url, timeout=30)
                self.assertEqual(refused.exception.code, 401)
                refused.exception.close()
                request = urllib.request.Request(url, headers={"Authorization": "Bearer secret"})
                with urllib.request.urlopen(request, timeout=30) as answer:
                    self.assertEqual(answer.status, 200)
            finally:
                server.terminate()
            self.assertEqual(server.wait(timeout=60), 0)

    def test_stopping_leaves_time_for_the_answers(self):
        grace = int(re.search(r"--grace (\d+)", setting("ExecStart")[0]).group(1))
        self.assertGreater(int(setting("TimeoutStopSec")[0]), grace)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_reads_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = os.path.join(folder, "braid.service")
            with open(UNIT, encoding="utf-8") as file:
                text = file.read().replace("/usr/local/bin/braid", BRAID)
            with open(unit, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
            complaints = [line for line in done.stderr.splitlines() if "braid.service" in line]
            self.assertEqual(complaints, [])


if __name__ == "__main__":
    unittest.main()
