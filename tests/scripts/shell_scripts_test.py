#!/usr/bin/env python3
"""Arguments of scripts/coverage, course, mutants, package, setup and upcycle, in copies: shell_scripts_test.py SCRIPTS"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.abspath(sys.argv[1])

# In place of braid: a data folder with the fingerprint of the texts, or a run with one loss.
BRAID = """#!/bin/sh
before= texts=
for argument in "$@"; do
  case "$argument" in run.out=*) out=${argument#run.out=} ;; *.txt | *.md) texts="$texts $argument" ;; esac
  [ "$before" != -o ] || out=$argument
  before=$argument
done
mkdir -p "$out"
[ "$1" != prepare ] || { printf '{\\n  "fingerprint": "%s"\\n}\\n' "$(cat $texts | cksum)" >"$out/dataset.json"; exit; }
printf 'step,val_loss\\n1,2.5\\n' >"$out/log.csv"
"""
# A course of one chapter, whose example says which Braid was found.
COURSE = """cmake_minimum_required(VERSION 3.25)
project(course LANGUAGES NONE)
find_package(braid REQUIRED)
file(WRITE ${CMAKE_BINARY_DIR}/example_01_tensor "#!/bin/sh\\necho found ${braid_DIR}\\n")
file(CHMOD ${CMAKE_BINARY_DIR}/example_01_tensor PERMISSIONS OWNER_READ OWNER_EXECUTE)
add_custom_target(example_01_tensor)
"""


class ShellScripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.realpath(folder.name)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def script(self, name, *arguments, code=0, cwd=None, **environment):
        os.makedirs(os.path.join(self.root, "scripts"), exist_ok=True)
        shutil.copy(os.path.join(SCRIPTS, name), os.path.join(self.root, "scripts"))
        call = subprocess.run([os.path.join(self.root, "scripts", name), *arguments], cwd=cwd or self.root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        self.assertEqual(call.returncode, code, call.stdout)
        return call.stdout

    def test_mutants_says_its_options_and_begins_nothing_without_a_mutant(self):
        # No repository is here: a worktree cannot be made.
        self.assertIn("Usage: scripts/mutants [word ...]", self.script("mutants", "--help"))
        self.assertEqual(self.script("mutants", "no-such-file", "--again", code=2),
                         "scripts/mutants: no line of its list contains no-such-file --again; see scripts/mutants --help\n")

    def upcycle(self, *arguments, code=0, cwd=None):
        braid = self.write("braid", BRAID)
        os.chmod(braid, 0o755)
        for folder in ("", "tensor", "autograd", "nn", "models", "apps", "distributed"):
            self.write(os.path.join(folder, "README.md"), folder)
        return self.script("upcycle", "--seeds", "1", *arguments, code=code, cwd=cwd, BRAID=braid)

    def test_upcycle_notices_another_text(self):
        a, b = self.write("a.txt", "one text\n"), self.write("b.txt", "another text\n")
        for text in (a, a, shutil.copy(a, os.path.join(self.root, "same.txt"))):
            self.assertIn("2.5000", self.upcycle("--text", text))
        for other in (["--text", b], []):
            self.assertEqual(self.upcycle(*other, code=2),
                             "scripts/upcycle: the runs in out/upcycle are of another text; delete it to start again\n")
            self.assertNotIn("data.now", os.listdir(os.path.join(self.root, "out/upcycle")))

    def test_upcycle_reads_the_text_beside_its_caller(self):
        mine = self.write("mine/README.md", "my text\n")
        self.upcycle("--text", "README.md", cwd=os.path.dirname(mine))
        self.assertIn("2.5000", self.upcycle("--text", mine))
        self.assertIn("of another text", self.upcycle("--text", "README.md", code=2))
        self.assertEqual(self.upcycle("--text", code=2), "scripts/upcycle: --text needs a value\n")

    def test_a_wrong_argument_of_setup_and_package_is_no_help(self):
        for name in ("setup", "package"):
            self.assertEqual(self.script(name, "--none", code=2),
                             f"scripts/{name}: unknown argument '--none'; see scripts/{name} --help\n")
            self.assertIn(f"Usage: scripts/{name}", self.script(name, "--help"))

    def test_upcycle_notices_that_the_text_of_the_repository_changed(self):
        self.upcycle()
        self.assertEqual(sorted(os.listdir(os.path.join(self.root, "out/upcycle"))),
                         ["compose-1", "data", "origin-1", "plain-1", "staged-1", "table.txt"])
        self.upcycle()
        self.write("tensor/more.md", "more\n")
        self.assertIn("of another text", self.upcycle(code=2))

    def test_coverage_counts_lines_of_folders_files_and_places(self):
        self.assertIn("there are no counts in build/coverage", self.script("coverage", "--table", code=2))
        self.assertIn("--lines expects a number, found 'x'", self.script("coverage", "--lines", "x", code=2))
        self.assertIn("--table runs no tests: found 'nn'", self.script("coverage", "--table", "nn", code=2))
        line = lambda number, count, *ways: {"line_number": number, "count": count, "branches": [
            {"count": way, "throw": False} for way in ways] + [{"count": 0, "throw": True}]}
        lines = {"tensor/io/a.cpp": [line(1, 2, 2, 0), line(1, 0, 0, 0), line(2, 0), line(4, 0), line(5, 1)],
                 "include/braid/nn/b.h": [line(1, 0, 0, 1)], "nn/b.h": [line(1, 1, 1, 0), line(2, 1)]}
        for name in ("tensor/io/a.cpp", "nn/b.h"):
            self.write(name, "one\ntwo\nthree\nfour\nfive\n")
        counts = {"files": [{"file": name, "lines": of} for name, of in lines.items()]}
        self.write("build/coverage/counts.json", json.dumps(counts))
        rows = [row.split() for row in self.script("coverage", "--table").splitlines()]
        for row in ("nn/ 2 100.0% 0 2 100.0%", "tensor/ 4 50.0% 2 2 50.0%", "parsers 4 50.0% 2 2 50.0%",
                    "all 6 66.7% 2 4 75.0%", "tensor/io/a.cpp 4 50.0% 2 2 50.0%"):
            self.assertIn(row.split(), rows)
        with open(os.path.join(self.root, "build/coverage/uncovered.txt")) as places:
            self.assertEqual(places.read(), "tensor/io/a.cpp:2-4: 2 not passed: two\n"
                                            "tensor/io/a.cpp:1: 1 of 2 ways not passed: one\n")
        self.script("coverage", "--table", "--lines", "66.6", "--branches", "75")
        self.assertIn("expected at least 67 % of lines, found 66.67 %",
                      self.script("coverage", "--table", "--lines", "67", code=1))
        self.assertIn("a.cpp:2-4: 2 not", self.script("coverage", "--table", "--of", "tensor/", "--branches", "50"))
        self.script("coverage", "--table", "--of", "tensor/", "--branches", "51", code=1)
        self.assertIn("there are no counts of no/", self.script("coverage", "--table", "--of", "no/", code=2))
        self.assertEqual(self.script("coverage", "--table", "--of", code=2),
                         "scripts/coverage: --of expects a part of a path\n")
        # Sources that changed since: one is shorter, one is gone.
        self.write("tensor/io/a.cpp", "one\n")
        os.remove(os.path.join(self.root, "nn/b.h"))
        rows = [row.split() for row in self.script("coverage", "--table").splitlines()]
        self.assertIn("all 4 50.0% 2 2 50.0%".split(), rows)
        with open(os.path.join(self.root, "build/coverage/uncovered.txt")) as places:
            self.assertEqual(places.read(), "tensor/io/a.cpp:2-4: 2 not passed: \n"
                                            "tensor/io/a.cpp:1: 1 of 2 ways not passed: one\n")
        os.remove(os.path.join(self.root, "tensor/io/a.cpp"))
        self.assertIn("there are no counts of anything", self.script("coverage", "--table", code=2))

    def course(self):
        self.write("course/chapters.cmake", "set(COURSE_CHAPTERS\n  01_tensor\n)\n")
        self.write("course/CMakeLists.txt", COURSE)
        self.write("configs/a.svg", "")

    @unittest.skipUnless(shutil.which("cmake"), "needs cmake")
    def test_course_takes_the_braid_that_is_named_now(self):
        self.course()
        for name in ("one", "two", "one"):
            config = self.write(f"{name}/lib/cmake/braid/braidConfig.cmake", "")
            said = self.script("course", "1", BRAID=os.path.join(self.root, name))
            self.assertIn(f"found {os.path.dirname(config)}\n", said)

    def test_course_starts_where_configs_is_there_already(self):
        self.course()
        self.write("configs/b.svg", "")
        own = [self.write(f"work/configs/{name}", "mine") for name in ("own.toml", "b.svg")]
        self.assertIn("the course is in work", self.script("course", "--start", "work"))
        for path in ("work/configs/a.svg", "work/course/chapters.cmake", "work/scripts/course"):
            self.assertTrue(os.path.exists(os.path.join(self.root, path)), path)
        for path in own:
            with open(path) as file:
                self.assertEqual(file.read(), "mine")

    def test_course_leaves_no_part_of_it_where_a_copy_fails(self):
        self.course()
        full = self.write("full/cp", "#!/bin/sh\ncommand -p cp \"$@\"\nexit 1\n")  # as on a full disk
        os.chmod(full, 0o755)
        path = os.path.dirname(full) + os.pathsep + os.environ["PATH"]
        self.assertEqual(self.script("course", "--start", "work", code=1, PATH=path), "")
        self.assertFalse(os.path.exists(os.path.join(self.root, "work/course")))
        self.assertIn("the course is in work", self.script("course", "--start", "work"))

    def test_course_makes_nothing_where_a_part_of_it_is_there_already(self):
        self.course()
        for folder, own, part in (("a", "course/own", "course"), ("b", "scripts/course", "scripts/course")):
            self.write(f"{folder}/{own}", "mine")
            for _ in range(2):  # the same once more
                self.assertEqual(self.script("course", "--start", folder, code=2),
                                 f"course: {folder}/{part} exists already: it may hold your work\n")
            self.assertEqual(os.listdir(os.path.join(self.root, folder)), [own.split("/")[0]])


unittest.main(argv=sys.argv[:1])
