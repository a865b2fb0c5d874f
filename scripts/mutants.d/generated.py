"""Generated mutants: rewrites sources so that all their mutants lie in one build, finds out which test case passes
which of them, and runs those tests with one mutant turned on at a time. See --help."""
import argparse, collections, json, os, random, re, resource, signal, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rewriting import mutants_of, rewritten

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The sources of a group, and the test programs whose cases may notice, the nearest first.
GROUPS = {
    "kernels": (["tensor/cpu/softmax.cpp", "tensor/cpu/norm.cpp", "tensor/cpu/loss.cpp", "tensor/cpu/reduce.cpp",
                 "tensor/cpu/pointwise.cpp", "tensor/cpu/gemm/gemm.cpp", "tensor/cpu/gemm/packed.cpp",
                 "tensor/cpu/gemm/vector_product.cpp", "tensor/cpu/attention/attention.cpp",
                 "tensor/cpu/attention/forward.h", "tensor/cpu/attention/backward.h", "tensor/cpu/attention/block.h"],
                ["tensor", "autograd", "nn"]),
    "parsers": (["tensor/io/json.cpp", "tensor/io/safetensors.cpp", "tensor/io/npy_format.cpp", "tensor/io/npz.cpp",
                 "tensor/io/zip_file.cpp", "tensor/io/weight_index.cpp", "tensor/io/reader.cpp",
                 "tensor/io/line_reader.cpp", "tensor/io/checksum.cpp", "models/data/prepare/jsonl.cpp",
                 "models/data/text/shard.cpp", "apps/cli/config.cpp", "apps/cli/config_file.cpp"],
                ["tensor", "models", "apps"]),
    "tokenizers": (["models/data/tokenizers/" + name + ".cpp" for name in (
        "added_tokens bpe bpe_tokenizer byte_tokenizer decoder load normalizer pattern post_processor pre_tokenizer "
        "precompiled regex regex_rewriter section tokenizer unicode unigram word_piece").split()], ["models"]),
    "checkpoint": (["models/training/checkpoint/" + name + ".cpp" for name in (
        "checkpoint checkpoint_writer find_model manifest sharded_safetensors").split()] +
        ["tensor/io/atomic_file.cpp", "tensor/io/atomic_folder.cpp", "tensor/io/shared_file.cpp",
         "tensor/io/append_file.cpp"], ["tensor", "models", "apps"]),
    "serving": (["models/inference/" + name + ".cpp" for name in (
        "batch engine generate pass prefixes sampling scheduler sequence_pool text_stream token_score "
        "constraint/automaton constraint/constraint constraint/grammar constraint/json_grammar constraint/schema "
        "constraint/schema_objects constraint/schema_parts").split()] +
        ["apps/serve/" + name + ".cpp" for name in (
            "beginnings api/answer_format api/call_reader api/choice api/generation_call api/request_fields "
            "api/requests api/responses api/histograms api/service http/access http/http_reader http/http_text "
            "http/session").split()], ["models", "apps"]),
}
BY_FOLDER = {"tensor": ["tensor", "autograd"], "autograd": ["autograd"], "nn": ["nn", "models"],
             "models": ["models", "apps"], "apps": ["apps"], "distributed": ["distributed"]}


def flags_of(build):
    """Include folders of the whole build: sources are compiled several at a time, so none has an entry of its own."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = entry["command"].split()
        for i, word in enumerate(words):
            if word in ("-I", "-isystem"):
                word += words[i + 1]
            if re.match(r"-(I|isystem)\S", word):
                flags[re.sub(r"^(-I|-isystem)(?!/)", lambda m: m[1] + entry["directory"] + "/", word)] = 1
            elif re.match(r"-DBRAID_(HAVE|PNG|JPEG)", word):
                flags[word] = 1
    return ["-x", "c++", "-std=c++20", "-mavx2", "-mfma", "-mf16c", "-ferror-limit=0", *flags]


def run(command, **options):
    return subprocess.run(command, text=True, **options)


def prepare_tree(work):
    """A copy of the last commit in which unchanged files keep their times, so that a second build is short."""
    tree = work / "tree"
    fresh = work / "fresh"
    run(["rm", "-rf", fresh], check=True)
    fresh.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE)
    run(["tar", "x", "-C", fresh], stdin=archive.stdout, check=True)
    tree.mkdir(exist_ok=True)
    kept = {p.relative_to(tree) for p in tree.rglob("*")
            if (p.is_symlink() or p.is_file()) and "build" not in p.relative_to(tree).parts[:1]}
    for path in list(fresh.rglob("*")):
        name = path.relative_to(fresh)
        kept.discard(name)
        if path.is_symlink():
            if not (tree / name).is_symlink():
                os.replace(path, tree / name)
        elif path.is_dir():
            (tree / name).mkdir(exist_ok=True)
        elif not (tree / name).exists() or (tree / name).read_bytes() != path.read_bytes():
            os.replace(path, tree / name)
    for name in kept:
        (tree / name).unlink()
    run(["rm", "-rf", fresh], check=True)
    return tree


def put(path, text):
    if not path.exists() or path.read_bytes() != text:
        path.write_bytes(text)


def build_mutants(work, groups, jobs):
    """Rewrites and builds; mutants in lines that do not compile are taken out and listed."""
    tree = prepare_tree(work)
    env = dict(os.environ, CCACHE_BASEDIR=str(tree),
               CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,include_file_ctime")
    build, header = tree / "build/cpu", tree / "scripts/mutants.d/mutants.h"
    with open(work / "configure.log", "w") as log:
        run(["cmake", "--preset", "cpu", "-DBRAID_KERNELS=host", "-DBRAID_WERROR=OFF"], cwd=tree, env=env,
            stdout=log, stderr=log, check=True)
    flags = flags_of(build)
    programs = sorted({p for _, wanted in groups.values() for p in wanted})
    originals = {name: (tree / name).read_bytes() for files, _ in groups.values() for name in files}
    broken = set()
    for attempt in range(12):
        mutants, texts = {}, {}
        for name, text in originals.items():
            shadow = work / "originals" / name
            shadow.parent.mkdir(parents=True, exist_ok=True)
            put(shadow, text)
            chosen = []
            for key, line, what, shown, edits in mutants_of(shadow, name, flags + [f"-I{(tree / name).parent}"],
                                                            work / "parsed"):
                if (name, line) not in broken and key not in mutants:
                    mutants[key] = dict(number=len(mutants) + 1, file=name, line=line, what=what, text=shown)
                    chosen.append((len(mutants), edits))
            texts[name] = rewritten(text, chosen, header)
        for name, text in texts.items():
            put(tree / name, text)
        main = (tree / "tests/support/main.cpp")
        put(main, run(["git", "-C", str(ROOT), "show", "HEAD:tests/support/main.cpp"], capture_output=True)
            .stdout.encode() + (tree / "scripts/mutants.d/observer.cpp").read_bytes().replace(
                b'"mutants.h"', f'"{header}"'.encode()))
        targets = [f"test_{p}" for p in programs] + (["braid_program"] if "apps" in programs else [])
        print(f"{len(mutants)} mutants in {len(texts)} files; building {' '.join(targets)}", flush=True)
        done = run(["cmake", "--build", str(build), f"-j{jobs}", "--target", *targets, "--", "-k", "0"], env=env,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        (work / "build.log").write_text(done.stdout)
        if done.returncode == 0:
            return tree, mutants
        lines = {(m[1], int(m[2])) for m in re.finditer(
            r"(\S+?):(\d+):\d+: +(?:error|required|in .constexpr. expansion)", done.stdout)}
        wrong = {(name, line) for name in originals for path, line in lines if path.endswith("/" + name)} - broken
        if not wrong:
            sys.exit(f"the rewritten sources do not build: see {work / 'build.log'}")
        print(f"taken out, as they do not compile: {', '.join(f'{n}:{l}' for n, l in sorted(wrong))}", flush=True)
        broken |= wrong
    sys.exit("the rewritten sources do not build after 12 attempts")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setsid()


def cases_of(work, tree, programs, again):
    """Runs every test program once, or takes what its last run left: {number: [(seconds, program, case)]}."""
    passed = collections.defaultdict(list)
    seen = work / "seen"
    for program in programs:
        cases, log = work / f"cases_{program}", work / f"unchanged_{program}.log"
        if again or not log.exists():
            seen.write_bytes(bytes(1 << 17))
            cases.write_text("")
            env = dict(os.environ, BRAID_MUTANTS_SEEN=str(seen), BRAID_MUTANTS_CASES=str(cases), CUDA_VISIBLE_DEVICES="")
            log.write_text(run([f"./test_{program}", "--log_level=error", "--report_level=no"],
                               cwd=tree / "build/cpu/tests", env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT).stdout)
        failed = set(re.findall(r'error: in "([^"]*)"', log.read_text()))
        lines = cases.read_text().splitlines()
        for line in lines:
            name, micros, numbers = line.split("\t")
            if not any(name in f or f in name for f in failed):
                for number in map(int, numbers.split()):
                    passed[number].append((int(micros) / 1e6, program, name))
        print(f"test_{program}: {len(lines)} cases, {sum(int(l.split(chr(9))[1]) for l in lines) / 1e6:.0f} s"
              f"{'; left out, as they fail without a mutant: ' + ', '.join(sorted(failed)) if failed else ''}", flush=True)
    return passed


def try_mutant(tree, number, cases, nearest, budget):
    """The case that notices, or None. The cheap cases first, then more until `budget` seconds of them have run."""
    order = sorted(cases, key=lambda c: (c[0] + (0 if c[1] == nearest else 0.02)))
    chosen, total = [], 0.0
    for case in order:
        if chosen and total + case[0] > budget:
            break
        chosen.append(case)
        total += case[0]
    parts, part, at = [], [], 0.0
    for case in chosen:  # the first part takes a second, the next ones double
        part.append(case)
        at += case[0] + 0.01
        if at > 2 ** len(parts):
            parts, part, at = parts + [part], [], 0.0
    env = dict(os.environ, BRAID_MUTANT=str(number), CUDA_VISIBLE_DEVICES="")
    for part in parts + ([part] if part else []):
        for program in dict.fromkeys(c[1] for c in part):
            names = [c[2] for c in part if c[1] == program]
            limit = 15 + 8 * sum(c[0] for c in part if c[1] == program)
            process = subprocess.Popen([f"./test_{program}", "--log_level=error", "--report_level=no",
                                        *(f"--run_test={n}" for n in names)], cwd=tree / "build/cpu/tests", env=env,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limits)
            try:
                out, _ = process.communicate(timeout=limit)
                if process.returncode != 0:
                    found = re.search(rb'in "([^"]*)"', out)
                    return found[1].decode(errors="replace") if found else f"{names[0]} (ended with {process.returncode})"
            except subprocess.TimeoutExpired:
                return f"{names[0]} (no end in {limit:.0f} s)"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
    return None


def known_equivalents():
    """survivors.txt: file, line of the source, mutant, what it changes, reason; tabs between them."""
    known = {}
    for line in (HERE / "survivors.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, code, what, text, reason = line.split("\t")
            known[file, code, what, text] = reason
    return known


def source_line(tree, m):
    return (tree.parent / "originals" / m["file"]).read_text().splitlines()[m["line"] - 1].strip()


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutants generated", description=__doc__, epilog="Results are added "
                                     "to FOLDER/results.tsv. Exit code 1 where less than 95 %% are noticed.")
    parser.add_argument("files", nargs="*", help="sources; without them the groups " + ", ".join(GROUPS))
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants at random, as many of each group")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this group")
    parser.add_argument("--again", action="store_true", help="only those that survived the last time")
    parser.add_argument("--list", action="store_true", help="build, print the mutants and run none")
    parser.add_argument("--built", action="store_true", help="take the build of the last call as it is")
    parser.add_argument("--seconds", type=float, default=60, help="of tests per mutant, at most (default 60)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="mutants at a time")
    parser.add_argument("--work", type=Path, default=ROOT / "build/mutants", metavar="FOLDER")
    options = parser.parse_args()
    groups = {name: GROUPS[name] for name in options.group or GROUPS}
    if options.files:
        groups = {}
        for name in options.files:
            name = str(Path(name).resolve().relative_to(ROOT)) if Path(name).exists() else name
            groups.setdefault(name, ([name], BY_FOLDER[name.split("/")[0]]))
    options.work.mkdir(parents=True, exist_ok=True)
    listed = options.work / "mutants.json"
    if options.built:
        tree, mutants = options.work / "tree", json.loads(listed.read_text())
    else:
        tree, mutants = build_mutants(options.work, groups, os.cpu_count() or 1)
        listed.write_text(json.dumps(mutants))
    if options.list:
        for m in mutants.values():
            print(f"{m['number']:6} {m['file']}:{m['line']}: {m['what']}: {m['text']}")
        return 0
    programs = list(dict.fromkeys(p for _, wanted in groups.values() for p in wanted))
    passed = cases_of(options.work, tree, programs, not options.built)
    results = options.work / "results.tsv"
    last = {}
    if results.exists():
        for line in results.read_text().splitlines():
            key, result = line.split("\t")[:2]
            last[key] = result
    pick = random.Random(options.seed)
    chosen = []
    for at, (group, (files, wanted)) in enumerate(groups.items()):
        of_group = [(k, m) for k, m in mutants.items() if m["file"] in files]
        if options.again:
            of_group = [(k, m) for k, m in of_group if last.get(k) in ("survived", "not executed")]
        elif options.sample:
            share = options.sample // len(groups) + (at < options.sample % len(groups))
            of_group = pick.sample(of_group, min(share, len(of_group)))
        chosen += [(group, wanted, k, m) for k, m in of_group]
    known = known_equivalents()
    table = {group: collections.Counter() for group in groups}
    survivors, lock = [], threading.Lock()

    def one(item):
        group, wanted, key, m = item
        cases = [c for c in passed.get(m["number"], []) if c[1] in wanted]
        reason = known.get((m["file"], source_line(tree, m), m["what"], m["text"]))
        by = try_mutant(tree, m["number"], cases, wanted[0], options.seconds) if cases else None
        result = "killed" if by else "equivalent" if reason else "survived" if cases else "not executed"
        with lock:
            table[group][result] += 1
            if not by:
                survivors.append((result, m, reason or f"{len(cases)} cases pass it"))
            with results.open("a") as out:
                print(key, result, by or reason or "", m["text"], sep="\t", file=out)
            done = sum(sum(c.values()) for c in table.values())
            print(f"{done}/{len(chosen)} {result:12} {m['file']}:{m['line']}: {m['what']}: {m['text']}"
                  f"{'  by ' + by if by else ''}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, chosen))
    print(f"\n{'group':34} {'mutants':>8} {'run':>6} {'killed':>7} {'equivalent':>11} {'survived':>9} "
          f"{'not executed':>13} {'noticed':>8}")
    total = collections.Counter()
    for group, counts in table.items():
        counts["mutants"] = sum(m["file"] in groups[group][0] for m in mutants.values())
        total.update(counts)
    for group, counts in [*table.items(), ("all", total)]:
        ran = sum(n for name, n in counts.items() if name != "mutants")
        noticed = 100 * counts["killed"] / max(1, ran - counts["equivalent"])
        print(f"{group:34} {counts['mutants']:8} {ran:6} {counts['killed']:7} {counts['equivalent']:11} "
              f"{counts['survived']:9} {counts['not executed']:13} {noticed:7.1f}%")
    print()
    for result, m, why in sorted(survivors, key=lambda s: (s[0], s[1]["file"], s[1]["line"])):
        print(f"{result:12} {m['file']}:{m['line']}: {m['what']}: {m['text']} ({why})")
    return 0 if total["killed"] >= 0.95 * (sum(total.values()) - total["mutants"] - total["equivalent"]) else 1


if __name__ == "__main__":
    sys.exit(main())
