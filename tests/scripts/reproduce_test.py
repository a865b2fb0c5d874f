#!/usr/bin/env python3
"""scripts/reproduce on the files of configs/paper: reproduce_test.py SCRIPTS BRAID"""
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS, BRAID = (os.path.abspath(path) for path in sys.argv[1:3])


class Reproduce(unittest.TestCase):
    def setUp(self):
        # The script works beside its own configs: a copy, so that out/ is here.
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        os.makedirs(os.path.join(self.root, "scripts"))
        shutil.copy(os.path.join(SCRIPTS, "reproduce"), os.path.join(self.root, "scripts"))
        shutil.copytree(os.path.join(SCRIPTS, "../configs/paper"), os.path.join(self.root, "configs/paper"))

    def reproduce(self, *arguments, code=0):
        call = subprocess.run([sys.executable, os.path.join(self.root, "scripts/reproduce"), *arguments, "--braid", BRAID],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(call.returncode, code, call.stdout)
        return call.stdout

    def test_dry_run_states_the_cost_of_every_study(self):
        text = re.sub(" +", " ", self.reproduce("--dry-run", "pairs", "large", "pythia", "ablation"))
        for part in ["405m-dcformer-17.211x-s9876 420M 7.08G 13500 ", "1-4b-transformer-17.211x-s9876 1.44G ",
                     "2-8b-dcformer-143000-s9876 2.85G 300G ", "6-9b-dcpythia-143000-s9876 6.94G ",
                     "one-talking-heads-13500-s9876 411M "]:
            self.assertIn(part, text)
        self.assertEqual(len(re.findall("on 8 H100: ", text)), 4)
        self.assertEqual(len(re.findall("on 64 H100: ", text)), 4)
        self.assertFalse(os.path.exists(os.path.join(self.root, "out")))

    def prepare(self):
        data = os.path.join(self.root, "data")
        with open(os.path.join(self.root, "text.txt"), "w") as file:
            file.write("".join(f"line {i} of some text\n" for i in range(2000)))
        subprocess.run([BRAID, "prepare", file.name, "-o", data], check=True, stdout=subprocess.DEVNULL)
        return data

    def losses(self, name):
        with open(os.path.join(self.root, f"out/paper-smoke/{name}/report/losses.csv"), newline="") as file:
            return {row["variant"]: float(row["loss"]) for row in csv.DictReader(file)}

    def test_every_variant_of_the_ablation_and_the_large_pair_trains(self):
        text = self.reproduce("ablation", "large", "--smoke", self.prepare())
        self.assertIn("run 24 of 24: one-full-4-s2", text)
        self.assertIn("run 4 of 4: 2-8b-dcformer-4-s2", text)
        with open(os.path.join(self.root, "configs/paper/ablation.toml")) as file:
            variants = re.findall(r"^\[variants\.(.+)\]$", file.read(), re.M)
        self.assertEqual(len(variants), 12)
        table = text[text.rindex("study     size"):]
        for variant in variants:
            self.assertRegex(table, rf"(?m)^ablation  one   {variant} +2 +\d\.\d{{4}}  ")
        for variant in ["transformer", "dcformer"]:
            self.assertRegex(table, rf"(?m)^large     2-8b  {variant} +2 +\d\.\d{{4}}  ")
        # Each is another model: no part is without effect at the small size, local layers among them.
        self.assertEqual(len(set(self.losses("ablation").values())), 12, table)
        self.assertEqual(len(set(self.losses("large").values())), 2, table)

    def test_smoke_size_ends_with_one_table_and_resumes(self):
        data = self.prepare()
        text = self.reproduce("pairs", "pythia", "--smoke", data)
        # Nothing but the size differs from the studies of the paper: two variants, two seeds, no other size.
        table = text[text.rindex("study   size"):]
        self.assertEqual(len(re.findall("^pairs   405m  (transformer|dcformer) ", table, re.M)), 2, table)
        self.assertEqual(len(re.findall("^pythia  6-9b  (pythia|dcpythia) ", table, re.M)), 2, table)
        self.assertRegex(table, r"dcformer +2 +\d\.\d{4}  -?\d\.\d{4} \[-?\d+\.\d{4}, -?\d+\.\d{4}\] +1\.\d\d x")
        again = self.reproduce("pairs", "pythia", "--smoke", data)
        self.assertNotIn("run 1 of", again)
        self.assertEqual(again[again.rindex("study   size"):], table)

    def test_rejections_name_what_was_expected(self):
        self.assertIn("expected pairs, ablation, large, pythia", self.reproduce("pair", code=2))
        self.assertIn("is no data folder", self.reproduce("--smoke", self.root, code=2))


unittest.main(argv=sys.argv[:1])
