#!/usr/bin/env python3
"""Arguments of scripts/course, scripts/mutants and scripts/upcycle, in copies: shell_scripts_test.py SCRIPTS"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.abspath(sys.argv[1])

# In place of braid: a data folder, or a run with one loss.
BRAID = """#!/bin/sh
for argument in "$@"; do
  case "$argument" in run.out=*) out=${argument#run.out=} ;; esac
done
[ "$1" != prepare ] || { mkdir -p out/upcycle/data && touch out/upcycle/data/dataset.json; exit; }
mkdir -p "$out" && printf 'step,val_loss\\n1,2.5\\n' >"$out/log.csv"
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

    def script(self, name, *arguments, code=0, **environment):
        os.makedirs(os.path.join(self.root, "scripts"), exist_ok=True)
        shutil.copy(os.path.join(SCRIPTS, name), os.path.join(self.root, "scripts"))
        call = subprocess.run([os.path.join(self.root, "scripts", name), *arguments], cwd=self.root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        self.assertEqual(call.returncode, code, call.stdout)
        return call.stdout

    def test_mutants_says_its_options_and_begins_nothing_without_a_mutant(self):
        # No repository is here: a worktree cannot be made.
        self.assertIn("Usage: scripts/mutants [word ...]", self.script("mutants", "--help"))
        self.assertEqual(self.script("mutants", "no-such-file", "--again", code=2),
                         "scripts/mutants: no line of its list contains no-such-file --again; see scripts/mutants --help\n")

    def test_upcycle_notices_another_text(self):
        braid = self.write("braid", BRAID)
        os.chmod(braid, 0o755)
        a, b = self.write("a.txt", "one text\n"), self.write("b.txt", "another text\n")
        for text in (a, a, shutil.copy(a, os.path.join(self.root, "same.txt"))):
            self.assertIn("2.5000", self.script("upcycle", "--text", text, "--seeds", "1", BRAID=braid))
        for other in (["--text", b], []):
            self.assertEqual(self.script("upcycle", *other, "--seeds", "1", BRAID=braid, code=2),
                             "scripts/upcycle: the runs in out/upcycle are of another text; delete it to start again\n")

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
        own = self.write("work/configs/own.toml", "mine")
        self.assertIn("the course is in work", self.script("course", "--start", "work"))
        for path in (own, "work/configs/a.svg", "work/course/chapters.cmake", "work/scripts/course"):
            self.assertTrue(os.path.exists(os.path.join(self.root, path)), path)


unittest.main(argv=sys.argv[:1])
