#!/usr/bin/env python3
"""scripts/corpus on packages made here: corpus_test.py SCRIPTS BRAID"""
import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPTS, BRAID = sys.argv[1:3]
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def digits(value):
    text = DIGITS[value % 64]
    while value >= 64:
        value //= 64
        text = DIGITS[value % 64] + text
    return text


class Corpus(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.packages = os.path.join(self.folder.name, "packages")
        os.makedirs(self.packages)

    def package(self, name, files, version="1"):
        """A .deb with these files: path -> bytes."""
        root = os.path.join(self.folder.name, f"root-{name}-{version}")
        control = {"DEBIAN/control": f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <n@localhost>\nDescription: text\n".encode(),
                   f"usr/share/doc/{name}/copyright": b"free\n"}
        for path, content in {**files, **control}.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        subprocess.run(["dpkg-deb", "-b", root, os.path.join(self.packages, f"{name}_{version}_all.deb")], check=True, stdout=subprocess.DEVNULL)

    def corpus(self, *arguments, out="out"):
        out = os.path.join(self.folder.name, out)
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "corpus"), *arguments, "-o", out, "--packages", self.packages,
                               "--braid", BRAID], capture_output=True, text=True,
                              env={**os.environ, "PATH": self.folder.name + os.pathsep + os.environ["PATH"]})
        return done.returncode, done.stdout + done.stderr, out

    def documents(self, out, name):
        with open(os.path.join(out, "text", name + ".jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def dictionary(self):
        entries = [b"  About this dictionary\n", b"Apple\n  A fruit. [1913 Webster]\n", "Café\n  A house.\n".encode(), b"Pear\n  A fruit.\n"] * 1
        text, index, at = b"", "", 0
        words = [["00-database-info"], ["apple", "apples"], ["cafe"], ["pear"]]
        for names, entry in zip(words, entries):
            for word in names:
                index += f"{word}\t{digits(at)}\t{digits(len(entry))}\n"
            text, at = text + entry, at + len(entry)
        self.package("dict-gcide", {"usr/share/dictd/gcide.dict.dz": gzip.compress(text), "usr/share/dictd/gcide.index": index.encode()})

    def test_entries_of_a_dictionary_and_the_same_checksum_elsewhere(self):
        self.dictionary()
        code, said, out = self.corpus("gcide", "--val-fraction", "0.3")
        self.assertEqual(code, 0, said)
        self.assertEqual([(d["name"], d["text"]) for d in self.documents(out, "gcide")],
                         [("apple", "Apple\n  A fruit. [1913 Webster]\n"), ("cafe", "Café\n  A house.\n"), ("pear", "Pear\n  A fruit.\n")])
        self.assertTrue(os.path.exists(os.path.join(out, "text", "gcide.copyright")))
        self.assertIn("package  dict-gcide_1_all.deb", said)
        last = said.strip().splitlines()[-1]
        self.assertRegex(last, r"^checksum [0-9a-f]{64}$")
        again = self.corpus("gcide", "--val-fraction", "0.3", out="elsewhere")[1]
        self.assertEqual(again.strip().splitlines()[-1], last)
        other = self.corpus("gcide", "--val-fraction", "0.5", out="other")[1]
        self.assertNotEqual(other.strip().splitlines()[-1], last)
        self.assertIn("gcide: there already", self.corpus("gcide", "--val-fraction", "0.3")[1])

    def test_sources_and_manuals(self):
        archive = os.path.join(self.folder.name, "linux.tar.xz")
        with tarfile.open(archive, "w:xz") as tar:
            for name, content in {"a/main.c": b"int main;\n", "a/x.h": b"\xe9\n", "a/README": b"no\n", "a/boot.S": b"nop\n"}.items():
                path = os.path.join(self.folder.name, "member")
                with open(path, "wb") as file:
                    file.write(content)
                tar.add(path, name)
        with open(archive, "rb") as file:
            self.package("linux-source-6.1", {"usr/src/linux-source-6.1.tar.xz": file.read()})
        self.package("perl-doc", {"usr/share/perl/pod/b.pod": b"=head1 B\n", "usr/share/perl/pod/a.pod": b"=head1 A\n", "usr/share/perl/x.pm": b"1;\n"})
        self.package("linux-doc-6.1", {"usr/share/doc/linux-doc-6.1/i.rst.gz": gzip.compress(b"Title\n"), "usr/share/doc/linux-doc-6.1/empty.txt": b"\n"})
        code, said, out = self.corpus("linux", "perl-doc", "linux-doc", "--val-fraction", "0.3", "--bpe", "300")
        self.assertEqual(code, 0, said)
        self.assertEqual([(d["name"], d["text"]) for d in self.documents(out, "linux")],
                         [("a/main.c", "int main;\n"), ("a/x.h", "é\n"), ("a/boot.S", "nop\n")])
        self.assertEqual([d["text"] for d in self.documents(out, "perl-doc")], ["=head1 A\n", "=head1 B\n"])
        self.assertEqual([d["text"] for d in self.documents(out, "linux-doc")], ["Title\n"])
        self.assertTrue(os.path.exists(os.path.join(out, "data", "tokenizer.json")))

    def test_the_newest_of_several_versions(self):
        for version in ("1.9", "1.10"):
            self.package("perl-doc", {"usr/share/perl/pod/a.pod": version.encode()}, version)
        code, said, out = self.corpus("perl-doc")
        self.assertEqual([d["text"] for d in self.documents(out, "perl-doc")], ["1.10"], said)

    def apt_get(self, command):
        path = os.path.join(self.folder.name, "apt-get")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + command + "\n")
        os.chmod(path, 0o755)

    def test_a_download_that_was_cut_is_no_package(self):
        self.package("perl-doc", {"usr/share/perl/pod/a.pod": b"=head1 A\n"})
        whole = os.path.join(self.folder.name, "whole.deb")
        os.rename(os.path.join(self.packages, "perl-doc_1_all.deb"), whole)
        self.apt_get(f"head -c 100 {whole} >perl-doc_1_all.deb; kill -9 $PPID")
        self.assertEqual(self.corpus("perl-doc")[0], -9)
        self.apt_get(f"head -c 100 {whole} >perl-doc_1_all.deb; echo no network >&2; exit 100")
        code, said, out = self.corpus("perl-doc")
        self.assertEqual(code, 3, said)
        self.assertIn("apt-get cannot download perl-doc: no network", said)
        self.apt_get(f"cp {whole} perl-doc_1_all.deb")
        code, said, out = self.corpus("perl-doc")
        self.assertEqual(code, 0, said)
        self.assertEqual([d["text"] for d in self.documents(out, "perl-doc")], ["=head1 A\n"])
        with open(os.path.join(self.packages, "perl-doc_1_all.deb"), "r+b") as file:
            file.truncate(100)
        code, said, out = self.corpus("perl-doc", out="other")
        self.assertEqual(code, 3, said)
        self.assertIn(f"error: cannot unpack {self.packages}/perl-doc_1_all.deb: ", said)

    def test_a_package_without_text_and_a_wrong_name(self):
        self.package("perl-doc", {"usr/share/perl/x.pm": b"1;\n"})
        code, said, out = self.corpus("perl-doc")
        self.assertEqual(code, 3)
        self.assertIn("no text in", said)
        self.assertFalse(os.path.exists(os.path.join(out, "text", "perl-doc.jsonl")))
        self.assertEqual(self.corpus("novels")[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
