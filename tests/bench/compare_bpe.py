#!/usr/bin/env python3
"""Training a byte-level BPE tokenizer with `braid prepare --train-bpe` and with the package `tokenizers`, in turn on the
same documents: are the merges equal, time, peak memory; then ids of the documents by both.

Usage: compare_bpe.py BRAID FOLDER [--ids N] [--form gpt-neox|llama-3] [--cores 1 2]      (a Python that has tokenizers)

FOLDER: text files, each one document. The time of Braid is that until it begins to tokenise, its memory that of all.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def documents(folder):  # as braid prepare reads a folder
    paths = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [os.path.join(at, name) for name in names if not name.startswith(".")]
    for path in sorted(paths):
        with open(path, "rb") as file:
            data = file.read()
        if data and b"\0" not in data[:8192]:
            yield data.decode("utf-8", "replace")


def train(folder, form, ids, out):
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE(ignore_merges=form == "llama-3"))
    specials = []
    if form == "gpt-neox":
        specials = ["<|endoftext|>", "<|padding|>"]
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        ids -= 3
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(LLAMA), "isolated"),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=ids, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    begin = time.monotonic()
    tokenizer.train_from_iterator(documents(folder), trainer)
    print(time.monotonic() - begin)
    tokenizer.save(out)


def timed(command, until=None):
    """Seconds (until a line that begins with `until`), peak memory in MiB, output."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    seconds, output = None, ""
    for line in process.stdout:
        output += line
        if until and seconds is None and line.startswith(until):
            seconds = time.monotonic() - begin
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}\n{output}")
    return seconds, usage.ru_maxrss / 1024, output


def merges(path):
    with open(path) as file:
        found = json.load(file)["model"]["merges"]
    return [m if isinstance(m, str) else " ".join(m) for m in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("folder")
    parser.add_argument("--ids", type=int, default=8000)
    parser.add_argument("--form", default="gpt-neox")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--package", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.package:
        return train(options.folder, options.form, options.ids, options.package)
    print("| cores | Braid s | tokenizers s | Braid peak MiB | tokenizers peak MiB | merges |")
    print("|--:|--:|--:|--:|--:|---|")
    work = tempfile.mkdtemp()
    own, other = os.path.join(work, "own"), os.path.join(work, "other.json")
    for cores in options.cores:
        pinned = ["taskset", "-c", ",".join(str(i) for i in range(cores))]
        shutil.rmtree(own, ignore_errors=True)
        a = timed(pinned + [options.braid, "prepare", options.folder, "-o", own, "--train-bpe", str(options.ids),
                            "--bpe-form", options.form], "reading text")
        b = timed(pinned + [sys.executable, os.path.abspath(__file__), options.braid, options.folder, "--form",
                            options.form, "--ids", str(options.ids), "--package", other])
        x, y = merges(os.path.join(own, "tokenizer.json")), merges(other)
        same = f"{len(x)} equal" if x == y else f"DIFFERENT: {len(x)} and {len(y)}"
        print(f"| {cores} | {a[0]:.1f} | {float(b[2]):.1f} | {a[1]:.0f} | {b[1]:.0f} | {same} |", flush=True)
    from tokenizers import Tokenizer
    loaded, reference = Tokenizer.from_file(os.path.join(own, "tokenizer.json")), Tokenizer.from_file(other)
    different = count = 0
    for text in documents(options.folder):
        count += 1
        if count > 2000:
            break
        x = loaded.encode(text, add_special_tokens=False).ids
        y = reference.encode(text, add_special_tokens=False).ids
        different += x != y
    print(f"\nBraid's tokenizer.json, loaded by the package, and the package's own: different ids in {different} of "
          f"{min(count, 2000)} documents")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
