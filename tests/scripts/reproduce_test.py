#!/usr/bin/env python3
"""scripts/reproduce on the files of configs/paper: reproduce_test.py SCRIPTS BRAID [--less]"""
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS, BRAID = (os.path.abspath(path) for path in sys.argv[1:3])
# A study of models with billions of parameters is traced by one thread: a quarter of an hour under a sanitizer.
LESS = unittest.skipIf("--less" in sys.argv[3:], "less under a sanitizer")


def write_tokenizer(folder, ids):
    """A tokenizer of words as tokenizer.json has them: letters, pairs of letters, and the token that ends a text."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(code) for code in kept] + [chr(256 + i) for i in range(256 - len(kept))]
    merges = [f"{first} {second}" for first in letters for second in letters][: ids - len(letters) - 1]
    words = letters + [pair.replace(" ", "") for pair in merges]
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    bytes_to_letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    os.makedirs(folder)
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump({"version": "1.0", "added_tokens": [{"id": ids - 1, "content": "<|endoftext|>", **flags}],
                   "pre_tokenizer": bytes_to_letters, "decoder": bytes_to_letters,
                   "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(words)}, "merges": merges}}, file)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"eos_token": "<|endoftext|>"}, file)


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

    @LESS
    def test_dry_run_states_the_cost_of_every_study(self):
        text = re.sub(" +", " ", self.reproduce("--dry-run", "pairs", "large", "pythia", "ablation"))
        for part in ["405m-dcformer-17.206x-s9876 420M 7.08G 13500 ", "1-4b-transformer-17.206x-s9876 1.44G ",
                     "2-8b-dcformer-143000-s9876 2.85G 300G ", "6-9b-dcpythia-143000-s9876 6.94G ",
                     "one-talking-heads-13500-s9876 411M "]:
            self.assertIn(part, text)
        self.assertEqual(len(re.findall("on 8 H100: ", text)), 4)
        self.assertEqual(len(re.findall("on 64 H100: ", text)), 4)
        self.assertFalse(os.path.exists(os.path.join(self.root, "out")))

    def prepare(self, folder, *arguments):
        text = os.path.join(self.root, "text.txt")
        with open(text, "w") as file:
            file.write("".join(f"line {i} of some text\n" for i in range(4000)))
        subprocess.run([BRAID, "prepare", text, "-o", folder, *arguments], check=True, stdout=subprocess.DEVNULL)

    def losses(self, name):
        with open(os.path.join(self.root, f"out/paper-smoke/{name}/report/losses.csv"), newline="") as file:
            return {row["variant"]: float(row["loss"]) for row in csv.DictReader(file)}

    @LESS
    def test_every_variant_of_the_ablation_and_the_large_pair_trains(self):
        data = os.path.join(self.root, "data")
        self.prepare(data)
        text = self.reproduce("ablation", "large", "--smoke", data)
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

    @LESS
    def test_studies_have_room_for_the_tokenizer_that_they_name(self):
        tokenizer, data = (os.path.join(self.root, path) for path in ("tokenizer", "out/pile"))
        write_tokenizer(tokenizer, 50277)  # as many ids as that of GPT-NeoX-20B
        self.prepare(data, "--tokenizer", tokenizer)
        text = self.reproduce("--dry-run", "pairs", "large", "pythia", "ablation")
        self.assertNotIn("the data are not here", text)
        study = os.path.join(self.root, "configs/paper/pairs.toml")
        with open(study) as file:
            small = file.read().replace("model.vocab_size = 50304", "model.vocab_size = 50256")
        with open(study, "w") as file:
            file.write(small)
        for mode in (["--dry-run"], ["--smoke", data]):  # the smoke size hides no error of a study
            self.assertIn("expected at least 50277, found 50256", self.reproduce("pairs", *mode, code=2))

    def test_smoke_size_ends_with_one_table_and_resumes(self):
        data = os.path.join(self.root, "data")
        self.prepare(data)
        text = self.reproduce("pairs", "pythia", "--smoke", data)
        # Nothing but the size differs from the studies of the paper: two variants, two seeds, no other size.
        table = text[text.rindex("study   size"):]
        self.assertEqual(len(re.findall("^pairs   405m  (transformer|dcformer) ", table, re.M)), 2, table)
        self.assertEqual(len(re.findall("^pythia  6-9b  (pythia|dcpythia) ", table, re.M)), 2, table)
        self.assertRegex(table, r"dcformer +2 +\d\.\d{4}  -?\d\.\d{4} \[-?\d+\.\d{4}, -?\d+\.\d{4}\] +1\.\d\d x")
        again = self.reproduce("pairs", "pythia", "--smoke", data)
        self.assertNotIn("run 1 of", again)
        self.assertEqual(again[again.rindex("study   size"):], table)

    def test_the_table_has_a_multiplier_for_each_size(self):
        report = os.path.join(self.root, "out/paper/pairs/report")
        os.makedirs(report)
        with open(os.path.join(report, "multipliers.csv"), "w") as file:
            file.write("budget,variant,size,pairs,flops,multiplier,low,high\n"
                       "20,dcformer,405m,2,1e18,1.5,1.2,1.9\n20,dcformer,834m,2,1e19,1.25,nan,nan\n")
        lines = [re.split("  +", line) for line in self.reproduce("--table", "pairs").splitlines()]
        self.assertEqual(lines[1:], [["pairs", "405m", "dcformer", "1.5000 [1.2000, 1.9000] x the compute"],
                                     ["pairs", "834m", "dcformer", "1.2500 x the compute"]])

    def test_a_missing_program_is_one_message(self):
        script = os.path.join(self.root, "scripts/reproduce")
        call = subprocess.run([sys.executable, script], capture_output=True, text=True)
        self.assertEqual(call.returncode, 2)
        self.assertEqual(call.stderr, "scripts/reproduce: there is no build/cpu/braid: scripts/demo builds it\n")

    def test_an_older_python_is_one_message(self):
        script = os.path.join(self.root, "scripts/reproduce")
        without = f"import runpy, sys; sys.modules['tomllib'] = None; runpy.run_path({script!r}, run_name='__main__')"
        call = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
        self.assertEqual(call.returncode, 1)
        self.assertRegex(call.stderr, "^scripts/reproduce: needs Python 3.11 or newer, found 3[.\\d]+\n$")

    def test_rejections_name_what_was_expected(self):
        self.assertIn("expected pairs, ablation, large, pythia", self.reproduce("pair", code=2))
        self.assertIn("is no data folder", self.reproduce("--smoke", self.root, code=2))


unittest.main(argv=sys.argv[:1])
