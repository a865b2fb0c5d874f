#!/usr/bin/env python3
"""Every fuzz target begins with the files of tests/fuzz/seeds.py, byte by byte: fuzz_corpora_test.py FUZZ"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

FUZZ = os.path.abspath(sys.argv[1])


class FuzzCorpora(unittest.TestCase):
    def test_every_target_has_its_seeds(self):
        with open(os.path.join(FUZZ, "CMakeLists.txt")) as file:
            targets = re.search(r"(?m)^foreach\(name IN ITEMS (chat .* weight_index)\)$", file.read())[1].split()
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(FUZZ, "seeds.py"), folder], check=True)
            self.assertEqual(sorted(os.listdir(folder)), sorted(targets))
            for target in targets:
                for name in os.listdir(os.path.join(folder, target)):
                    with open(os.path.join(folder, target, name), "rb") as seed, \
                            open(os.path.join(FUZZ, "corpora", target, name), "rb") as kept:
                        self.assertEqual(kept.read(), seed.read(), f"{target}/{name}")


unittest.main(argv=sys.argv[:1])
