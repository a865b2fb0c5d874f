#!/usr/bin/env python3
"""The module in a process: the development mode of Python, forks and threads beside the library's own, Ctrl-C."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LARGE = "import braid\nx = braid.ones((600, 600))\nbraid.matmul(x, x)\n"  # on every thread that the library has


class Process(unittest.TestCase):
    def run_python(self, code, *options):
        return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=100)

    def check(self, code, out, *options):
        got = self.run_python(code, *options)
        self.assertEqual((got.stdout, got.stderr, got.returncode), (out, "", 0))

    def test_development_mode(self):
        self.check(LARGE + "y = braid.nn.Linear(4, 2, key=1)(braid.ones((3, 4)))\nbraid.sum(y).backward()\n"
                   "print(braid.array_api.sum(braid.asarray([1.5, 2.5])).item())", "4.0\n", "-X", "dev", "-W", "error")

    def test_a_child_of_a_fork_computes(self):
        self.check(LARGE + "import os\nchild = os.fork()\n"
                   "if child == 0:\n    os._exit(0 if braid.matmul(x, x)[5, 7].item() == 600 else 3)\n"
                   "print(os.waitpid(child, 0)[1], braid.matmul(x, x)[0, 0].item())", "0 600.0\n")

    def test_a_pool_of_processes(self):
        code = ("import multiprocessing, braid\nif __name__ == '__main__':\n    x = braid.ones((600, 600))\n"
                "    y = braid.matmul(x, x)\n    for method in ('fork', 'spawn'):\n"
                "        with multiprocessing.get_context(method).Pool(2) as pool:\n"
                "            print([y.shape for y in pool.map(braid.tanh, [x[:3], x[:2, :2]])])\n")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # which a spawned process reads
            file.write(code)
            file.flush()
            got = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=100)
        self.assertEqual((got.stdout, got.stderr), ("[(3, 600), (2, 2)]\n" * 2, ""))

    @unittest.skipIf("libasan" in os.environ.get("LD_PRELOAD", ""), "the allocator of the sanitizer of GCC 12 may be "
                     "locked by the thread in the moment of the fork, and stays so in the child")
    def test_a_fork_beside_a_thread_that_computes(self):
        self.check(LARGE + "import os, threading\nstop = threading.Event()\n"
                   "def work():\n    while not stop.is_set():\n        braid.matmul(x, x)\n"
                   "thread = threading.Thread(target=work)\nthread.start()\nends = []\n"
                   "for _ in range(5):\n    child = os.fork()\n"
                   "    if child == 0:\n        os._exit(0 if braid.matmul(x, x)[5, 7].item() == 600 else 3)\n"
                   "    ends.append(os.waitpid(child, 0)[1])\nstop.set()\nthread.join()\nprint(ends)",
                   "[0, 0, 0, 0, 0]\n")

    def interrupted(self, loop):
        """The process's errors after a Ctrl-C in the middle of the loop."""
        process = subprocess.Popen([sys.executable, "-c", f"{LARGE}print('begin', flush=True)\n{loop}"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "begin\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.addCleanup(process.kill)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT)
        return errors

    def test_ctrl_c_ends_a_loop_of_ops(self):
        self.assertIn("KeyboardInterrupt", self.interrupted("while True:\n    braid.matmul(x, x)"))

    def test_ctrl_c_waits_for_the_op(self):
        """It comes as KeyboardInterrupt behind the op, here a product of many matrices, and not later."""
        errors = self.interrupted("y = braid.matrix_power(braid.ones((1500, 1500)), 31)\nimport time\ntime.sleep(30)")
        self.assertIn("KeyboardInterrupt", errors)

    def test_ctrl_c_in_a_function_of_python_ends_the_op(self):
        self.assertIn("KeyboardInterrupt", self.interrupted(
            "def slow(xs):\n    for _ in range(10**9):\n        pass\n    return xs[0]\nbraid.vjp(slow, [x], x)"))

    def test_other_threads_run_beside_an_op(self):
        import braid

        x, counted = braid.ones((1500, 1500)), []
        thread = threading.Thread(target=lambda: [braid.matmul(x, x) for _ in range(3)])
        thread.start()
        while thread.is_alive():
            counted.append(1)
            time.sleep(0.001)
        self.assertGreater(len(counted), 5)


if __name__ == "__main__":
    unittest.main()
