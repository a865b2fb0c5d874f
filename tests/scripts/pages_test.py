#!/usr/bin/env python3
"""What pages tell their readers to type: commands name programs, settings, flags and files that exist, settings in TOML
are read by the program, C++ is a recipe, an example or a chapter that other tests compile. What nothing checks is named
below, and has a limit.
Usage: pages_test.py TREE BRAID [PAGE]        BRAID: the program; PAGE: this one beside those of the tree"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

tree = pathlib.Path(sys.argv[1]).resolve()
braid = sys.argv[2]

LIMIT = 0.05  # of all blocks, the share of those that nothing checks
NOT_CHECKED = {  # pages with such a block, and why
    "cuda/dry/README.md": "a sketch with words in place of a model",
    "cuda/kernels/README.md": "a kernel that is no file of the tree",
    "tensor/io/README.md": "a sketch with names of files that are not there",
    "autograd/backward.md": "two lines of a gradient penalty, of which tests/install/examples has the whole",
    "apps/serve/deploying.md": "packages of the distribution",
    "packaging/README.md": "packages of the distribution",
    "apps/train/starting_from_weights.md": "two spellings of one setting",
}

faults = []
checked = {"shell": 0, "toml": 0, "cpp": 0}
unchecked = []


def blocks(text):
    """The line, the language (None: indented) and the lines of each code block of a page."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        if lines[at].lstrip().startswith("```"):
            end = at + 1
            while end < len(lines) and not lines[end].lstrip().startswith("```"):
                end += 1
            yield at + 1, lines[at].strip("` "), lines[at + 1:end]
            at = end + 1
        elif lines[at].startswith("    ") and lines[at].strip() and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield at + 1, None, [line[4:] for line in lines[at:end]]
            at = end
        else:
            at += 1


COMMAND = re.compile(r"^(\$ )?([A-Z_]+=\S+ +)*(braid|braid-course|mpirun|cmake|ctest|apt|sudo|pip|curl|python3|"
                     r"scripts/\w+|(build|env)/\S+)( |$)")


def language(given, lines):
    text = "\n".join(lines)
    if given:
        return {"sh": "shell"}.get(given, given)
    if any(COMMAND.match(line) for line in lines):
        return "shell"
    if re.search(r"[;{]( *//.*)?$|^ *(#include|struct|class|template) ", text, re.M) and "=>" not in text:
        return "cpp"
    if re.search(r"^(\[[\w.]+\]|[a-z_.]+ = [\"\[]).*$", text, re.M):
        return "toml"
    return "other"


def commands(lines):
    """The commands of a block of shell, as lists of words."""
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).split("\n"):
        line = re.sub(r"^\$ ", "", re.sub(r"(^|\s)#.*", "", line))
        for part in re.split(r"&&|\||;", line):
            try:
                words = shlex.split(part.strip("() "))
            except ValueError:
                continue
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words and words[0] == "mpirun":
                words = words[3:]  # -np N
            if words:
                yield words


def output_of(*words):
    return subprocess.run([braid, *words], cwd=tree, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def check_settings(where, settings):
    """Whether the program takes them; that the data of a reader are not here is no fault."""
    found = output_of("train", *settings, "--print-config")
    if found.returncode not in (0, 3) and not re.search(r"holds none|which is no folder", found.stderr):
        faults.append(f"{where}: {found.stderr.strip()}")


helps = {}


def help_of(command):
    if command not in helps:
        found = output_of(command, "--help")
        helps[command] = found.stdout if found.returncode == 0 else None
    return helps[command]


def flags_exist(where, words, text):
    for flag in words:
        if re.match(r"--?[a-z]", flag) and not re.search(re.escape(flag.split("=")[0]) + r"(?![\w-])", text):
            faults.append(f"{where}: no flag {flag} in the help of {words[0]}")


def is_known_file(word):
    return not re.match(r"(configs|scripts|tests|models|nn|apps|tensor|autograd)/", word) or list(tree.glob(word.split(":")[-1]))


def check_braid(where, words):
    if len(words) == 1 or words[1].startswith("--") or any(re.search(r"[\[\]]|\.\.\.$", w) for w in words):
        return  # (a synopsis, as of a help text, has brackets)
    command = words[1]
    if help_of(command) is None:
        faults.append(f"{where}: braid has no command {command}")
        return
    flags_exist(where, words[1:], help_of(command))
    for word in words[2:]:
        if not is_known_file(word) and word != "configs/mine.toml":
            faults.append(f"{where}: {word} is no file of the tree")
    if command == "train":  # settings and values, as the program reads them
        given = [word for word in words[2:] if not word.startswith("-")]
        if given and "=" not in given[0] and not (tree / given[0]).is_file():
            given[0] = "configs/text.toml"  # in place of a file or run of the reader
        # (my-...: what a recipe adds)
        given = [word for word in given if word.startswith("configs/") or ("=" in word and not re.search("=my[-_]", word))]
        check_settings(f"{where}: {' '.join(words)}", given)
    else:
        for before, word in zip(words[1:], words[2:]):
            if re.match(r"[a-z_.]+=", word) and not before.startswith("-"):
                prefix = "" if re.match(r"(data|train|model|eval|run|parallel)\.", word) else "model."
                preset = next((w for w in words if re.match(r"(dcformer|transformer|vit)-", w)), "dcformer-tiny")
                check_settings(f"{where}: {' '.join(words)}", [f"model.preset={preset}", prefix + word])


def check_shell(where, lines):
    """True where a command was checked."""
    found = False
    for words in commands(lines):
        name = words[0]
        if name in ("braid-course",):
            name = words[0] = "scripts/course"
        if re.fullmatch(r"(\S+/)?braid", name):
            check_braid(where, ["braid", *words[1:]])
        elif name.startswith("scripts/"):
            script = tree / name
            if not script.is_file():
                faults.append(f"{where}: no {name}")
                continue
            parts = [script, *script.parent.glob(script.name + ".d/*")]
            flags_exist(where, words, "\n".join(part.read_text() for part in parts if part.is_file()))
        elif name.startswith("build/"):
            program = name.split("/")[-1]
            folder = program.removeprefix("test_").removeprefix("bench_")
            lists = "\n".join(path.read_text() for path in tree.glob("tests/**/CMakeLists.txt"))
            if not (re.search(rf"\b{program}\b", lists) or (tree / "tests" / folder).is_dir() or
                    (tree / "tests/bench" / (folder + ".cpp")).is_file()):
                faults.append(f"{where}: no program {name}")
        elif name in ("cmake", "ctest"):
            presets = (tree / "CMakePresets.json").read_text()
            for flag, value in zip(words, words[1:]):
                if flag == "--preset" and f'"name": "{value}"' not in presets:
                    faults.append(f"{where}: no preset {value}")
            options = "\n".join(path.read_text() for path in [tree / "CMakeLists.txt", *tree.glob("cmake/*.cmake")])
            for word in words:
                option = re.match(r"-D(BRAID_\w+)=", word)
                if option and option[1] not in options:
                    faults.append(f"{where}: no option {option[1]}")
        elif name == "python3" and len(words) > 1 and words[1].startswith("tests/"):
            if not (tree / words[1]).is_file():
                faults.append(f"{where}: no {words[1]}")
        else:
            continue  # a program of the system
        found = True
    return found


def check_toml(where, lines):
    """True where the settings were read by the program."""
    if any(line.startswith("kind = ") for line in lines):  # tasks of braid eval, with the keys of those in configs/eval
        reader = "\n".join(path.read_text() for path in tree.glob("**/eval/**/*.cpp"))
        for key in re.findall(r"^(\w+) = ", "\n".join(lines), re.M):
            if f'"{key}"' not in reader:
                faults.append(f"{where}: no setting {key} of tasks")
        return True
    if not re.match(r"(\[|[a-z]+\.[a-z_]+ = )", lines[0]):
        return False
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("\n".join(lines))
        file.flush()
        check_settings(where, [file.name])
    return True


recipes = (tree / "tests/recipes/CMakeLists.txt").read_text()
pages = [page for page in sorted(tree.glob("**/*.md"))
         if page.relative_to(tree).parts[0] not in ("build", "out") and "/bad" not in str(page.relative_to(tree))]
pages += [pathlib.Path(page).resolve() for page in sys.argv[3:]]
others = 0
for page in pages:
    name = str(page.relative_to(tree))
    for line, given, lines in blocks(page.read_text()):
        kind, where = language(given, lines), f"{name}:{line}"
        if kind == "shell":
            done = check_shell(where, lines)
        elif kind == "toml":
            # (those of the course are lines of a file that its test reads)
            done = name.startswith("course/") or check_toml(where, lines)
        elif kind == "cpp":
            done = name == "README.md" or name.startswith("course/") or name in recipes
        elif kind == "python":
            done = False
        else:
            others += 1
            continue
        if done:
            checked[kind] += 1
        else:
            unchecked.append(f"{where} ({kind})")

for place in unchecked:
    page = place.split(":")[0]
    if page in NOT_CHECKED:
        print(f"not checked: {place}: {NOT_CHECKED[page]}")
    else:
        faults.append(f"{place}: nothing checks this block; write it as one that is checked, or name it in NOT_CHECKED")
faults += [f"NOT_CHECKED names {page}, where all is checked" for page in NOT_CHECKED
           if not any(place.startswith(page + ":") for place in unchecked)]
total = sum(checked.values()) + len(unchecked)
if len(unchecked) > LIMIT * total:
    faults.append(f"{len(unchecked)} of {total} blocks are not checked, at most {LIMIT:.0%} may be")
for fault in faults:
    print(fault)
print(f"pages: {len(pages)} pages, {total} blocks of code: " + ", ".join(f"{n} of {k}" for k, n in checked.items()) +
      f" checked, {len(unchecked)} not ({100 * len(unchecked) / total:.1f} %); {others} blocks are no code; "
      f"{len(faults)} faults")
sys.exit(1 if faults else 0)
