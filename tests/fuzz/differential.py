#!/usr/bin/env python3
"""Changed safetensors and tokenizer files through Braid and through the packages safetensors and tokenizers of PyPI.

    PYTHON tests/fuzz/differential.py build/clang/tests/fuzz/fuzz_answers [N [SEED]]     (scripts/fuzz --differential)

N files of each kind, 2000 without it, are made from those of seeds.py by a fixed seed. What both accept must have the
same tensors, or ids and texts. What one alone accepts must have its reason in the tables below. Exit code 1 otherwise."""
import collections
import copy
import json
import random
import re
import struct
import subprocess
import sys

import safetensors
import tokenizers
from seeds import crc32c, seeds

# Braid alone rejects: a part of its message, and why that is meant.
STRICTER = {
    "safetensors": [
        (r"every name once", "a name twice: the package takes the last one, another reader the first"),
        (r"an object with dtype, shape and data_offsets", "unknown members of an entry: the package ignores them"),
        (r"a JSON object, from its first byte on", "a blank before the header, which the published format forbids"),
        (r"a shape of at most", "more axes than a tensor of Braid has"),
        (r"a known dtype", "types that Braid does not know"),
        (r"sizes that are integers", "sizes of 2^63 and more, beside a size of 0"),
    ],
    "tokenizer": [
        (r"every name once", "a name twice: the package takes the last one, another reader the first"),
        (r"one token with id", "two tokens of one id: the package decodes it to one of them by the order of a hash table"),
        (r"type: expected a text|unsupported tokenizer in file|merges: expected a list|vocab: expected an object",
         "a part without type or of an unknown one: the package tries which part its fields fit, else Braid lacks it"),
        (r"added_tokens\[\d+\]\.id: expected", "ids of added tokens that the package does not give but replaces"),
        (r"expected ids from|an id from|expected an integer from", "ids of 2^31 and more, lengths of more than 2^20"),
        (r"pattern.String: expected at least", "an empty pattern, which the package finds everywhere"),
        (r"begins with continuing_subword_prefix", "merges without the prefix: the package cuts the first bytes off"),
    ],
}
# The package alone rejects: a part of its message.
LOOSER = {
    "safetensors": [],
    "tokenizer": [
        (r"PaddingParams|TruncationParams|`max_length`|`strategy`|`stride`|`direction`|`pad_\w+`|BatchLongest|`Left`|expected value",
         "padding and truncation, which Braid ignores with a note"),
        (r"missing field|did not match any variant|invalid type: null|expected a boolean",
         "members that change no ids, or are missing and have a default"),
    ],
}

STRANGE = [0, 1, -1, 2, 7, 256, 2**31, 2**63, 2**64 - 1, 0.5, 1e300, None, True, False, "", "a", "ü", "\0", "F32", [], {}, [0],
           [1, 2], {"a": 1}]


def places(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], path + (key,))


def changed_value(rng, document):
    """The document with one to three changes, each a value, a member, a name or an order."""
    document = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice([p for p in places(document)][1:] or [()])
        if not path:
            break
        at = document
        for key in path[:-1]:
            at = at[key]
        key, kind = path[-1], rng.randrange(7)
        if kind == 0:
            at[key] = rng.choice(STRANGE)
        elif kind == 1:
            del at[key]
        elif kind == 2 and isinstance(at[key], bool):
            at[key] = not at[key]
        elif kind == 2 and isinstance(at[key], int):
            at[key] += rng.choice((-2, -1, 1, 2, 8))
        elif kind == 2 and isinstance(at[key], str):
            letters = list(at[key])
            letters.insert(rng.randint(0, len(letters)), rng.choice("ab 1▁Ġ'ü\n#<>\\$(["))
            at[key] = "".join(letters)
        elif kind == 3 and isinstance(at, list):
            at.insert(key, copy.deepcopy(rng.choice(at)))
        elif kind == 4 and isinstance(at, list):
            rng.shuffle(at)
        elif kind == 5 and isinstance(at, dict):
            at[str(key) + rng.choice(("x", "", " "))] = at.pop(key)
        elif kind == 6:
            other = document
            for step in rng.choice([p for p in places(document)]):
                other = other[step]
            if len(json.dumps(other)) < 400:
                at[key] = copy.deepcopy(other)
    return document


def changed_text(rng, text):
    """JSON in another spelling, or no longer JSON."""
    kind = rng.randrange(6)
    at = rng.randint(0, len(text))
    if kind == 0:
        return text[:at] + rng.choice((" ", "\n", "\t", ",", '"', "0", "-", "}", "\0", "\ufeff", "1e0")) + text[at:]
    if kind == 1:
        return text[:at] + text[at + 1:]
    if kind == 2:  # a member once more
        members = re.findall(r'"[^"{}\[\]]*":(?:"[^"]*"|[-\d.]+|\[[^\[\]{}]*\]|\{[^{}]*\})', text)
        return text.replace("{", "{" + rng.choice(members) + ",", 1) if members else text
    if kind == 3:
        return re.sub(r"(?<=[\[,:])\d+", lambda m: rng.choice((m[0], m[0] + ".0", m[0] + "e0", "0" + m[0], "-" + m[0])), text, count=1)
    if kind == 4:
        return text + rng.choice((" ", "  \n", "x", "{}", "\0"))
    return rng.choice((" ", "\n", "")) + text


def changed_safetensors(rng, data):
    length = struct.unpack("<Q", data[:8])[0]
    head, rest = data[8:8 + length].decode(), data[8 + length:]
    kind = rng.randrange(8)
    if kind < 4:
        try:
            head = json.dumps(changed_value(rng, json.loads(head)), separators=(",", ":"), ensure_ascii=rng.random() < 0.5)
        except RecursionError:
            pass
    if kind in (3, 4, 5):
        head = changed_text(rng, head)
    if kind == 6:
        rest = rest[:rng.randint(0, len(rest))] if rng.random() < 0.5 else rest + bytes(rng.randint(1, 9))
    text = head.encode("utf-8", "surrogatepass")
    count = len(text)
    if kind == 7:
        count = rng.choice((count - 1, count + 1, 0, 1, 2, count + len(rest), 2**63, 2**64 - 1, 100_000_001))
    return struct.pack("<Q", max(count, 0)) + text + rest


def package_safetensors(data):
    names = {}
    for name, entry in safetensors.deserialize(data):
        names[name] = {"dtype": entry["dtype"], "shape": list(entry["shape"]), "crc": crc32c(bytes(entry["data"]))}
    return {"tensors": names}


TEXTS = ["abc", "It's 12  <s>\n caf\u00e9 e\u0301 \u2581x", "ab ABC abcab\tI'T 123 \u4e2d\u6587 \U0001f600a", "", " a  b ",
         "<s>abc<unk>[UNK]?", "\ufb01\u00bd\u212b \u1e9b\u0323"]


def package_tokenizer(text):
    made = tokenizers.Tokenizer.from_str(text)
    made.no_truncation()
    made.no_padding()
    ids = [made.encode(t).ids for t in TEXTS]
    return {"ids": ids, "texts": [made.decode(i, skip_special_tokens=True) for i in ids]}


class Braid:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, kind, data):
        self.process.stdin.write(f"{kind} {len(data)}\n".encode() + data)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended at {data[:2000]!r}")
        return json.loads(line)


def reason_of(message, table):
    return next((why for part, why in table if re.search(part, message)), None)


def compare(braid, kind, cases, call, package):
    counts, reasons, wrong = collections.Counter(), collections.Counter(), []
    for data in cases:
        ours = braid.ask(kind, call(data))
        try:
            theirs = package(data)
        except BaseException as error:  # of the package's own kind for a panic
            if isinstance(error, KeyboardInterrupt):
                raise
            theirs = {"error": f"{type(error).__name__}: {error}"}
        if "error" in ours and "error" in theirs:
            counts["both reject"] += 1
        elif "error" in ours:
            counts["Braid alone rejects"] += 1
            why = reason_of(ours["error"], STRICTER[kind])
            reasons["Braid alone rejects: " + why if why else None] += 1
            if not why:
                wrong.append(("Braid alone rejects", ours["error"], data))
        elif "error" in theirs:
            counts["the package alone rejects"] += 1
            why = reason_of(theirs["error"], LOOSER[kind])
            reasons["the package alone rejects: " + why if why else None] += 1
            if not why:
                wrong.append(("the package alone rejects", theirs["error"], data))
        else:
            counts["both accept"] += 1
            for name in theirs:
                if ours[name] != theirs[name]:
                    counts["other results"] += 1
                    wrong.append((f"other {name}", f"Braid {ours[name]}, the package {theirs[name]}", data))
                    break
    print(f"{kind}: {sum(counts.values()) - counts['other results']} files: " +
          ", ".join(f"{n} {what}" for what, n in counts.most_common()))
    for why, n in reasons.most_common():
        if why:
            print(f"  {n:6}  {why}")
    seen = collections.Counter()
    for what, message, data in wrong:
        key = (what, re.sub(r"[\d\"'].*", "", message)[:60])
        seen[key] += 1
        if seen[key] <= 2:
            print(f"  WRONG: {what}: {message[:300]}\n    {data[:1500]!r}")
    if wrong:
        print("  " + "; ".join(f"{n} {what}: {message}" for (what, message), n in seen.most_common()))
    return len(wrong)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    braid = Braid(sys.argv[1])
    of = collections.defaultdict(list)
    for target, _, data in seeds():
        of[target].append(data)
    wrong = compare(braid, "safetensors", of["safetensors"] + [changed_safetensors(rng, rng.choice(of["safetensors"]))
                    for _ in range(count)], lambda data: data, package_safetensors)
    files = [json.loads(data) for data in of["tokenizer_json"]]

    def made():
        for file in files:
            yield json.dumps(file)
        for _ in range(count):
            text = json.dumps(changed_value(rng, rng.choice(files)), ensure_ascii=rng.random() < 0.5)
            yield changed_text(rng, text) if rng.random() < 0.1 else text

    wrong += compare(braid, "tokenizer", made(), lambda text: json.dumps({"file": text, "texts": TEXTS}).encode(),
                     package_tokenizer)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
