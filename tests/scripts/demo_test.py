#!/usr/bin/env python3
"""scripts/demo with a few steps on its own data: demo_test.py SOURCE BRAID

The script runs in a copy of the tree, where nothing is installed and the program is there already.
"""
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BRAID = (os.path.abspath(path) for path in sys.argv[1:3])
SHORT = ["train.steps=6", "schedule.warmup=2", "eval.interval=3", "eval.tasks=2", "train.batch_size=2", "run.threads=1",
         "eval.samples=4", "sample.interval=6", "sample.tokens=3"]


class Demo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "tree")
        self.tools = os.path.join(folder.name, "tools")
        os.makedirs(os.path.join(self.root, "scripts"))
        os.makedirs(os.path.join(self.root, "build/demo"))
        os.makedirs(self.tools)
        for script in ["demo", "stories"]:
            shutil.copy(os.path.join(SOURCE, "scripts", script), os.path.join(self.root, "scripts"))
        shutil.copytree(os.path.join(SOURCE, "configs"), os.path.join(self.root, "configs"))
        os.symlink(BRAID, os.path.join(self.root, "build/demo/braid"))
        for path, code in [(os.path.join(self.root, "scripts/setup"), 0), (os.path.join(self.tools, "cmake"), 0),
                           (os.path.join(self.tools, "nvidia-smi"), 1)]:
            with open(path, "w") as file:
                file.write(f"#!/bin/sh\nexit {code}\n")
            os.chmod(path, 0o755)

    def demo(self, *arguments, code=0):
        call = subprocess.run([os.path.join(self.root, "scripts/demo"), *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "PATH": self.tools + os.pathsep + os.environ["PATH"]})
        self.assertEqual(call.returncode, code, call.stdout)
        return call.stdout

    def log(self, run):
        with open(os.path.join(self.root, run, "log.csv"), newline="") as file:
            return list(csv.DictReader(file))

    def test_compare_trains_the_baseline_on_the_same_data(self):
        text = self.demo("--compare", *SHORT)
        self.assertRegex(text, r"(?m)^DCFormer\+\+: validation loss \d")
        self.assertRegex(text, r"(?m)^a Transformer\+\+ of its size, seed and data: validation loss \d")
        model, baseline = self.log("out/demo"), self.log("out/demo-transformer")
        self.assertEqual([row["step"] for row in model], [row["step"] for row in baseline])
        self.assertNotEqual([row["loss"] for row in model], [row["loss"] for row in baseline])
        settings = []
        for run in ["demo", "demo-transformer"]:
            with open(os.path.join(self.root, "out", run, "config.resolved.toml")) as file:
                settings.append(dict(re.findall(r"^(\w+) = (\S+)", file.read(), re.M)))
        different = {key for key in {*settings[0], *settings[1]} if settings[0].get(key) != settings[1].get(key)}
        self.assertEqual(different, {"out", "use_dcmha", "use_qk_norm"})
        for part in ["loss.svg", "loss.csv"]:
            self.assertTrue(os.path.exists(os.path.join(self.root, "out/demo/plots", part)))
        self.assertTrue(os.path.exists(os.path.join(self.root, "out/demo/report/index.html")))
        for line in ["    A letter for the robot Mila", "    < fox tea oak harp. Back:", "Right answers: "]:
            self.assertIn(line, text)
        self.assertRegex(text.splitlines()[-1], r"^how its heads compose, word by word: open /.*/out/demo/report/index.html$")

        again = self.demo("--compare", *SHORT)
        self.assertEqual(len(re.findall("already finished", again)), 2, again)
        self.assertEqual(self.log("out/demo-transformer"), baseline)
        # The stored run is compared with a model of the same settings only.
        self.assertNotIn("Transformer++ of its size", self.demo(*SHORT))
        shutil.copy(os.path.join(self.root, "out/demo/config.resolved.toml"), os.path.join(self.root, "configs/demo.toml"))
        text = self.demo()
        self.assertIn("already finished", text)
        self.assertIn("a Transformer++ of its size, seed and data: ", text)

    def test_arguments_that_do_not_fit_are_rejected_first(self):
        for argument, part in [("run.out=out/mine", "the runs are out/demo and out/demo-transformer"),
                               ("--comparison", "unknown argument '--comparison'"),
                               ("--train.steps=5", "unknown argument '--train.steps=5'"),
                               ("steps", "unknown argument 'steps'")]:
            text = self.demo("--compare", argument, code=2)
            self.assertIn(part, text)
            self.assertEqual(text.count("\n"), 1, text)
        self.assertFalse(os.path.exists(os.path.join(self.root, "out")))
        self.assertIn("--compare   also trains the Transformer++ baseline", self.demo("--help"))

    def test_build_builds_only(self):
        text = self.demo("--build")
        self.assertRegex(text.splitlines()[-1], r"^the program is build/demo/braid; .*PATH=/.*/tree/build/demo:\$PATH$")
        self.assertFalse(os.path.exists(os.path.join(self.root, "out/demo-data")))

    def test_stories_are_the_same_for_a_seed_and_all_different(self):
        def stories(*arguments):
            call = subprocess.run([os.path.join(SOURCE, "scripts/stories"), *arguments, os.path.join(SOURCE, "configs/stories.txt")],
                                  check=True, stdout=subprocess.PIPE, text=True)
            return [json.loads(line) for line in call.stdout.splitlines()]

        first = stories("-v", "n=2000", "-v", "seed=1")
        self.assertEqual(first, stories("-v", "n=2000", "-v", "seed=1"))
        texts = {line["text"] for line in first}
        self.assertEqual(len(texts), 2000)
        for text in texts:
            self.assertNotRegex(text, r"[{}\[\]~/]|  | [Aa] [aeiou]")
        graded = stories("-v", "n=200", "-v", "seed=2", "-v", "graded=1")
        self.assertFalse(texts & {line["texts"].replace("[ ", "").replace(" ]", "") for line in graded})
        for line in graded:
            self.assertRegex(line["texts"], r"\? \[ [^\[\]]+ \]\.$")

    def test_a_small_grammar_ends_with_what_it_has(self):
        for rules, words in [("story\n  A {x}.\nx\n  cat\n  dog\n", "expected 3 different stories, found 2"),
                             ("story\n  {a=x} and {b=x}\nx\n  one\n", "rule 'x' has too few alternatives")]:
            path = os.path.join(self.root, "rules.txt")
            with open(path, "w") as file:
                file.write(rules)
            call = subprocess.run([os.path.join(SOURCE, "scripts/stories"), "-v", "n=3", "-v", "seed=1", path],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((call.returncode, words in call.stderr), (1, True), call.stderr)

    def test_a_failed_evaluation_says_why(self):
        self.demo(*SHORT)
        path = os.path.join(self.root, "build/demo/braid")
        os.remove(path)
        with open(path, "w") as file:
            file.write('#!/bin/sh\n[ "$1" != eval ] || { echo "error: no such task" >&2; exit 2; }\n'
                       f'exec {BRAID} "$@"\n')
        os.chmod(path, 0o755)
        self.assertIn("error: no such task", self.demo(*SHORT, code=1))


unittest.main(argv=sys.argv[:1])
