#!/usr/bin/env python3
"""Compares `braid tokenize` with the Python package `tokenizers`: ids and texts of random strings, and speed.

    python3 tests/bench/compare_tokenizers.py --braid build/cpu/braid --strings 100000 FOLDER...
    python3 tests/bench/compare_tokenizers.py --braid build/cpu/braid --speed TEXT FOLDER...

A FOLDER holds a tokenizer.json, or a tokenizer.json.zst as tests/golden/tokenizers/NAME does. The strings mix all planes of
Unicode, runs of one script, pieces of the vocabulary, added tokens, white space, marks, digits and contractions. Each is
compared with its template, without it, and with special tokens as text; ids and both decoded texts must be equal.
Speed: both on one thread, by the processor time of encoding, the texts of one file line by line and as a whole; the package with encode_batch_fast, which
makes no offsets. Exit code 1 when anything differs. Needs the package tokenizers 0.23, and zstd for compressed files.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers  # noqa: E402

SCRIPTS = [
    (0x20, 0x7E), (0x20, 0x7E), (0x20, 0x7E), (0x61, 0x7A), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF),
    (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF),
    (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x218F), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF), (0xFE00, 0xFFFF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01EF),
]
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\ufeff\u180e"
WORDS = ["'s", "'S", "'ll", "'\u017f", "don't", "I'VE", "e\u0301", "A\u030a", "\u1e9b\u0323", "\u0130", "\ufb01", "\u2581", "<0x41>",
         "<0xE2>", "123", "1234567", "\u0663\u0664", "\u2168", "\u00bd", "...", "!?", "``", "\r\n", "  ", "\n\n", "<", "|>", "ab\x00c"]


def code_point(rng):
    while True:
        c = rng.randrange(0x110000)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def text_of(rng, vocabulary, added):
    parts = []
    for _ in range(rng.choice((1, 1, 2, 3, 4, 6, 9, 14))):
        kind = rng.random()
        if kind < 0.30:
            low, high = rng.choice(SCRIPTS)
            parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.choice((1, 2, 3, 5, 9)))))
        elif kind < 0.50:
            parts.append(rng.choice(vocabulary))
        elif kind < 0.62:
            parts.append(rng.choice(WORDS))
        elif kind < 0.72 and added:
            token = rng.choice(added)
            parts.append(token if rng.random() < 0.8 else token[: rng.randint(1, len(token))])
        elif kind < 0.82:
            parts.append(rng.choice(SPACES) * rng.choice((1, 1, 1, 2, 3, 25)))
        elif kind < 0.90:
            parts.append(code_point(rng))
        elif kind < 0.97:
            parts.append(" ")
        else:
            parts.append("".join(code_point(rng) for _ in range(rng.choice((2, 4, 8)))))
    return "".join(parts)


def load(folder, scratch):
    name = os.path.basename(os.path.normpath(folder))
    target = os.path.join(scratch, name)
    os.makedirs(target, exist_ok=True)
    file = os.path.join(target, "tokenizer.json")
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        os.symlink(os.path.abspath(os.path.join(folder, "tokenizer.json")), file)
    else:
        subprocess.run(["zstd", "-dqf", os.path.join(folder, "tokenizer.json.zst"), "-o", file], check=True)
    package = tokenizers.Tokenizer.from_file(file)
    package.no_truncation()
    package.no_padding()
    return name, target, package


def braid_lines(braid, target, scratch, texts, flags):
    given, got = os.path.join(scratch, "in.jsonl"), os.path.join(scratch, "out.jsonl")
    with open(given, "w", encoding="utf-8") as file:
        for text in texts:
            file.write(json.dumps({"t": text}) + "\n")
    done = subprocess.run([braid, "tokenize", target, "--jsonl", given, got, *flags], check=True, capture_output=True)
    with open(got, encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    assert len(lines) == len(texts)
    return lines, done.stderr.decode()


def compare(braid, folder, count, seed, scratch):
    name, target, package = load(folder, scratch)
    rng = random.Random(f"{seed} {name}")
    content = json.load(open(os.path.join(target, "tokenizer.json"), encoding="utf-8"))
    vocabulary = [package.decode([i]) for i in content["model"]["vocab"].values()]
    vocabulary = [v for v in vocabulary if v and "\ufffd" not in v] or ["a"]
    added = [t["content"] for t in content["added_tokens"]]
    # A normalised added token decodes as its normalised content since 0.23: such texts are not compared.
    changed = {t["id"] for t in content["added_tokens"] if t["normalized"]} if content["normalizer"] else set()
    wrong = strings = 0
    while strings < count:
        texts = [text_of(rng, vocabulary, added) for _ in range(min(20000, count - strings))]
        strings += len(texts)
        for flags in ((), ("--special",), ("--as-text",)):
            package.encode_special_tokens = "--as-text" in flags
            expected = package.encode_batch_fast(texts, add_special_tokens="--special" in flags)
            lines, _ = braid_lines(braid, target, scratch, texts, flags)
            for text, line, encoding in zip(texts, lines, expected):
                out, ids = json.loads(line), encoding.ids
                same = out["ids"] == ids
                if same and not flags and not changed.intersection(ids):
                    same = out["d"] == package.decode(ids, False) and out["ds"] == package.decode(ids, True)
                if not same:
                    wrong += 1
                    if wrong <= 5:
                        print(f"{name} {flags}: {text!a}: expected {ids}, found {line}")
    print(f"{name}: {strings} strings in 3 modes, {wrong} differ", flush=True)
    return wrong


def speed(braid, folder, path, scratch):
    name, target, package = load(folder, scratch)
    with open(path, encoding="utf-8", errors="replace") as file:
        whole = file.read()
    lines = whole.splitlines(True)
    for what, texts in (("lines", lines), ("1 MB texts", [whole[i:i + 1000000] for i in range(0, len(whole), 1000000)])):
        size = sum(len(t.encode()) for t in texts)
        start = time.process_time()
        encodings = package.encode_batch_fast(texts, add_special_tokens=False)
        theirs = 1e-6 * size / (time.process_time() - start)
        out, notes = braid_lines(braid, target, scratch, texts, ("--threads", "1", "--stats"))
        found = float(re.search(r"([0-9.e+]+) MB/s", notes).group(1))
        same = all(json.loads(line)["ids"] == e.ids for line, e in zip(out, encodings))
        print(f"{name}, {what}: package {theirs:.2f} MB/s, braid {found:.2f} MB/s, {found / theirs:.1f} times; "
              f"{'same' if same else 'OTHER'} ids", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--braid", default="build/cpu/braid")
    parser.add_argument("--strings", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", metavar="TEXT")
    options = parser.parse_args()
    wrong = 0
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as scratch:
            if options.speed:
                speed(options.braid, folder, options.speed, scratch)
            else:
                wrong += compare(options.braid, folder, options.strings, options.seed, scratch)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
