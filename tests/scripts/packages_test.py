#!/usr/bin/env python3
"""What a package holds besides the program and the library: packages_test.py BRAID SPDX

Completions are compared with --help and tried in bash and fish, manual pages are set by man, and the list of what was
linked is compared with the program. A shell or man that is not installed is left out.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BRAID, SPDX = (os.path.abspath(path) for path in sys.argv[1:3])

# A command line, whose last word is completed, and the answer of bash.
CASES = [
    (["tr"], "train"),
    (["help", "ser"], "serve"),
    (["train", "--print"], "--print-config"),
    (["train", "train.batch_s"], "train.batch_size="),
    (["train", "train.steps", "=", ""], ""),
    (["train", "configs/"], ""),  # files
    (["generate", "folder", "--dtype", ""], "f32 f64 bf16 int8 int4"),
    (["generate", "folder", "--dtype", "=", "b"], "bf16"),
    (["generate", "folder", "--dtype", "="], "f32 f64 bf16 int8 int4"),
    (["bench", ""], "step decode comm"),
    (["bench", "d"], "decode"),
    (["bench", "decode", ""], ""),
    (["serve", "folder", "--port", ""], ""),
    (["serve", "folder", "--key-f"], "--key-file"),
]
BASH = """
compopt() { :; }  # works only while bash completes
source "$1"
shift
COMP_WORDS=(braid "$@") COMP_CWORD=$#
_braid
echo "${COMPREPLY[*]}"
"""


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def installed(*programs):
    return [program for program in programs if shutil.which(program)]


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        output(BRAID, "--shell-files", cls.folder.name)
        cls.paths = {shell: os.path.join(cls.folder.name, path) for shell, path in [
            ("bash", "bash-completion/completions/braid"), ("zsh", "zsh/vendor-completions/_braid"),
            ("fish", "fish/vendor_completions.d/braid.fish")]}
        cls.texts = {}
        for shell, path in cls.paths.items():
            with open(path) as file:
                cls.texts[shell] = file.read()
        cls.commands = re.findall(r"(?m)^  ([a-z]+) ", output(BRAID, "--help"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def page(self, name):
        return os.path.join(self.folder.name, "man/man1", name + ".1")

    def test_commands_and_flags_are_those_of_help(self):
        self.assertIn("train", self.commands)
        for command in self.commands:
            flags = re.findall(r"(?m)^  (?:-\w, |    )--([a-z0-9-]+)", output(BRAID, command, "--help"))
            self.assertIn("help", flags)
            words = re.search(rf"(?m)^    {command}\)\n      flags='([^']*)'", self.texts["bash"])[1].split()
            self.assertEqual(words, ["--" + flag for flag in flags])
            start = rf"complete -c braid -n '__fish_seen_subcommand_from {command}'(?: -s \w)? -l ([a-z0-9-]+) "
            self.assertEqual(re.findall(start, self.texts["fish"]), flags)
            rows = re.search(rf"(?ms)^    {command}\)\n(.*?);;", self.texts["zsh"])[1]
            self.assertEqual(re.findall(r"[)*]--([a-z0-9-]+)=?\[", rows), flags)
            with open(self.page("braid-" + command)) as file:
                text = file.read().replace("\\-", "-")
            self.assertEqual(re.findall(r"(?m)^\\fB(?:-\w, )?--([a-z0-9-]+)", text), flags)

    def test_shells_read_their_files(self):
        for shell in installed(*self.paths):
            self.assertEqual(output(shell, "-n", self.paths[shell]), "")

    def test_completion(self):
        for words, expected in CASES:
            found = output("bash", "-c", BASH, "bash", self.paths["bash"], *words).strip()
            self.assertEqual(found, expected, words)
        if installed("fish"):
            found = output("fish", "--no-config", "-c", "source $argv[1]; complete -C 'braid generate x --dtype '",
                           self.paths["fish"])
            self.assertEqual(re.findall(r"(?m)^\S+", found), ["bf16", "f32", "f64", "int4", "int8"])

    def test_man_sets_every_page(self):
        for name in ["braid", *("braid-" + command for command in self.commands)]:
            self.assertTrue(os.path.exists(self.page(name)), name)
            if installed("man", "groff") == ["man", "groff"]:
                text = output("man", "--warnings", "--local-file", self.page(name))
                self.assertNotRegex(text, "warning|error:")
                self.assertRegex(text, rf"NAME\n +{name}")

    def test_list_of_what_was_linked(self):
        with open(SPDX) as file:
            document = json.load(file)
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        names = {package["SPDXID"] for package in document["packages"]}
        self.assertEqual(len(names), len(document["packages"]))
        for relation in document["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], names)
        self.assertEqual(len(document["relationships"]), len(names))
        listed = set()
        for package in document["packages"]:
            self.assertTrue(package["licenseDeclared"])
            listed.update(re.sub(".*: ", "", package.get("comment", "")).split())
        needed = re.findall(r"NEEDED.*\[(.*?)[.]so", output("readelf", "-d", BRAID))
        self.assertIn("libc", needed)
        self.assertEqual([name for name in needed if name not in listed and name != "libbraid"], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
