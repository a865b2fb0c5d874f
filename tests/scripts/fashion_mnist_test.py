#!/usr/bin/env python3
"""scripts/fashion_mnist with programs in place of braid and apt-get: fashion_mnist_test.py SCRIPTS"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.abspath(sys.argv[1]), "fashion_mnist")


class FashionMnist(unittest.TestCase):
    def prepare(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("braid", "apt-get", "sudo"):
                with open(os.path.join(folder, name), "w") as file:
                    file.write('#!/bin/sh\necho "$*"\n')
                os.chmod(file.name, 0o755)
            call = subprocess.run([SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**os.environ, "PATH": folder + ":" + os.environ["PATH"],
                                       "BRAID": os.path.join(folder, "braid")})
            self.assertEqual(call.returncode, 0, call.stdout)
            return call.stdout.splitlines()[-1]

    def test_replace_is_passed_on(self):
        somewhere = os.path.realpath("somewhere")  # of the caller, not of the tree
        self.assertTrue(self.prepare("-o", "somewhere", "--replace").endswith(f" -o {somewhere} --replace"))
        self.assertTrue(self.prepare("-o", "somewhere").endswith(f" -o {somewhere}"))


unittest.main(argv=sys.argv[:1])
