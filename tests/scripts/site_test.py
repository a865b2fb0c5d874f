#!/usr/bin/env python3
"""scripts/site without its generator: a small tree made here, headers, the reference, the checks, and the tree itself:
site_test.py SCRIPTS [BRAID]"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = os.path.abspath(sys.argv[1])
BRAID = sys.argv[2] if len(sys.argv) > 2 else None
sys.path.insert(0, os.path.join(SCRIPTS, "site.d"))
import check  # noqa: E402
import headers  # noqa: E402
import pages  # noqa: E402
import reference  # noqa: E402

HEADER = """// A box: width and height in millimetres.
//
//     area = width height
#pragma once
#include <vector>

namespace braid {

class Forward;
namespace detail {
int hidden();
}

// --- making (of every kind) ---
// A box (W, H). Error(setting) when a side is negative.
Box box(int width, int height = 3);
inline Box square(int side) { return box(side, side); }  // of one side
template <class T>
std::vector<T> to_vector(const Box& box);

// What is counted.
struct Count {
  int64_t boxes = 0, lids = 0;  // of all boxes
  std::function<void(const Box& box)> seen;
  void (*call)(int) = nullptr;
  int64_t all() const { return boxes + lids; }

 private:
  int secret_ = 0;
};

class Long : public Count {
 public:
  Long() = default;
  explicit Long(int n) : n_(n) {}
  // How many.
  int n() const {
    if (n_ < 0) {
      return 0;
    }
    return n_;
  }
  bool operator==(const Long& other) const { return n_ == other.n_; }
  int a() const;
  int b() const;
  int c() const;
  int d() const;
  int e() const;
  int f() const;
  int g() const;
  int h() const;

 private:
  int n_ = 0;
};
enum class Side { left, right };
using Boxes = std::vector<Box>;
constexpr int kSides = 4;

}  // namespace braid
"""

TREE = {
    "README.md": "# Small\n\nText:\n- [a page](part/README.md#the-part)\n\n| `box.h` |\n|---|\n| `part/code.py` |\n\n![figure](part/a.svg)\n\n"
                 "1. first\n\n       box()  # [](not a link)\n",
    "part/README.md": "# Part\n\n## The part\n\nSee `code.py`, `part/box.h`, [home](../README.md), `none.py`.\n\n    [](code of an example)\n",
    "part/code.py": "print('```')\n",
    "part/a.svg": "<svg/>",
    "part/box.h": HEADER,
    "include/braid/part.h": '// All of part.\n#pragma once\n#include "braid/part/box.h"\n',
    "cmake/public-headers.cmake": "set(BRAID_FACADES part)  # facades\nset(BRAID_PUBLIC_HEADERS\n  part/box.h\n)\n",
    "wrong/README.md": "[nothing](none.md)\n",
    "scripts/site.d/navigation.txt": "Part\n  part/*.md\n- home\n  README.md\n- wrong on purpose\n  wrong/*.md\n",
}


class Small(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = os.path.join(folder.name, "tree"), os.path.join(folder.name, "site")
        for path, text in TREE.items():
            self.write(path, text)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def stage(self, *arguments):
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "site"), "--stage", "--root", self.root, "-o", self.out, *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def staged(self, path):
        with open(os.path.join(self.out + "-src/docs", path), encoding="utf-8") as file:
            return file.read()

    def test_links_lists_and_what_is_copied(self):
        code, said = self.stage()
        self.assertEqual(code, 0, said)
        self.assertIn("left out: command line and settings: no program", said)
        home = self.staged("index.md")
        self.assertIn("Text:\n\n- [a page](part/index.md#the-part)", home)
        self.assertIn("[`part/code.py`](source/part/code.py.md)", home)
        self.assertIn("![figure](part/a.svg)", home)
        self.assertIn("\n        box()  # [](not a link)", home)  # four spaces for the item, four for code
        part = self.staged("part/index.md")
        self.assertIn("See [`code.py`](../source/part/code.py.md), [`part/box.h`](../reference/cpp/part/box.h.md), [home](../index.md), `none.py`.", part)
        self.assertIn("    [](code of an example)", part)
        self.assertIn("````python\nprint('```')\n````", self.staged("source/part/code.py.md"))
        self.assertTrue(os.path.exists(os.path.join(self.out + "-src/docs/part/a.svg")))
        self.assertFalse(os.path.exists(os.path.join(self.out + "-src/docs/wrong")))

    def test_a_page_that_no_section_names_and_a_link_to_nothing_are_faults(self):
        self.write("more/README.md", "# More\n")
        self.write("scripts/site.d/navigation.txt", TREE["scripts/site.d/navigation.txt"] + "Other\n  gone/*.md\n")
        code, said = self.stage()
        self.assertEqual(code, 3)
        self.assertIn("more/README.md is in no section", said)
        self.assertIn("gone/*.md names no page that no other line names", said)
        self.write("scripts/site.d/navigation.txt", TREE["scripts/site.d/navigation.txt"] + "More\n  more/*.md\n")
        self.write("more/README.md", "# More\n\n[nothing](none.md)\n")
        code, said = self.stage()
        self.assertEqual(code, 3)
        self.assertIn("more/README.md: none.md does not exist", said)

    def test_headers(self):
        self.assertEqual(self.stage()[0], 0)
        facade = self.staged("reference/cpp/include/braid/part.h.md")
        self.assertIn("`#include <braid/part.h>`", facade)
        self.assertIn("[`part/box.h`](../../part/box.h.md) | A box: width and height in millimetres |", facade)
        names = self.staged("reference/cpp/names.md")
        for name in ("box", "Count.lids", "Long.n", "Long.operator==", "kSides", "Boxes"):
            self.assertRegex(names, r"(?m)^- `" + re.escape(name) + r"` \[box\.h\]\(part/box\.h\.md#")
        self.assertNotIn("hidden", names)
        self.assertNotIn("secret", names)


class Headers(unittest.TestCase):
    page = headers.Page("part/box.h", HEADER)
    text = page.text("source.md", "index.md")

    def test_declarations(self):
        for shown in ("## Making\n\n<p>(of every kind)</p>", "### `box`, `square`, `to_vector`",
                      "<p>A box <code>(W, H)</code>. <code>Error(setting)</code> when a side is negative.</p>",
                      "```cpp\nBox box(int width, int height = 3);\ninline Box square(int side);  // of one side\ntemplate <class T>\nstd::vector<T> to_vector",
                      "  int64_t boxes = 0, lids = 0;  // of all boxes", "  int64_t all() const;", "class Long : public Count;",
                      "explicit Long(int n);", "<p>How many.</p>", "int n() const;", "enum class Side { left, right };",
                      "<pre><code>area = width height\n</code></pre>"):
            self.assertIn(shown, self.text)
        for hidden in ("hidden", "secret_", "n_", "return", "Forward"):
            self.assertNotIn(hidden, self.text)

    def test_names(self):
        self.assertEqual([n for n in self.page.names if n.startswith("Count")],
                         ["Count", "Count.boxes", "Count.lids", "Count.seen", "Count.call", "Count.all"])
        for name, anchor in self.page.names.items():
            self.assertEqual(self.text.count(f'<span id="{anchor}"></span>'), 1, name)


class Reference(unittest.TestCase):
    def test_a_command(self):
        text = reference.command_page("cut", "braid cut: cut a text\n\nusage: braid cut TEXT [flags]\n\n  TEXT                    what is cut\n\n"
                                      "      --at N              where [0]\n      --attention [LAYERS]\n                          of all\n"
                                      "  -h, --help              this text\n\nA * in a text:\n  kept as it is\n\nexamples:\n  braid cut abc\n")
        for shown in ("Cut a text.", "| `TEXT` | what is cut |", '| <span id="--at"></span>`--at N` | where \\[0\\] |',
                      "`--attention [LAYERS]` | of all |", "A \\* in a text:\n\n```text\nkept as it is\n```", "## Examples\n\n```text\nbraid cut abc\n```"):
            self.assertIn(shown, text)

    def test_settings(self):
        text, rows = reference.settings_page('# All.\n\n[run]\nout = "a b"  # folder; a * in it\n# seed =      # of weights; not set; an integer\n')
        self.assertEqual(rows, 2)
        self.assertIn('`run.out` | `"a b"` | folder; a \\* in it |', text)
        self.assertIn("`run.seed` | not set | of weights; an integer |", text)

    def test_python(self):
        text, names = reference.python_page("m", 'class A(B):\n    """Holds <x>."""\n    @property\n    def x(self) -> int:\n        """Its x."""\n'
                                            '    def __add__(self, y: int) -> A: ...\n\ndef f(a: int = 1) -> A:\n    """Makes it."""\n')
        self.assertEqual(names, ["m.f", "m.A", "m.A.x"])
        for shown in ("### `f`\n\n```python\ndef f(a: int=1) -> A\n```\n\n<p>Makes it.</p>", "<p>Holds &lt;x&gt;.</p>", "@property\ndef x(self) -> int",
                      "Derived from `B`.", "Also `__add__`."):
            self.assertIn(shown, text)


class Checks(unittest.TestCase):
    def test_contrast(self):
        self.assertAlmostEqual(check.contrast("#000000", "#ffffff"), 21)
        self.assertAlmostEqual(check.contrast("#767676", "#ffffff"), 4.54, places=2)
        with open(os.path.join(SCRIPTS, "site.d/style.css"), encoding="utf-8") as file:
            found = check.contrasts(file.read())
        self.assertEqual({scheme for _, scheme, _, _ in found}, {"default", "slate"})
        self.assertGreaterEqual(found[0][0], 4.5, found[0])

    def test_links_and_hosts(self):
        with tempfile.TemporaryDirectory() as out:
            with open(os.path.join(out, "a.html"), "w", encoding="utf-8") as file:
                file.write('<p id="x"><a href="#x">1</a><a href="#y">2</a><a href="b.html">3</a><a href="https://arxiv.org/">4</a>'
                           '<script src="https://arxiv.org/a.js"></script>')
            faults, inside, outside = check.links(out, check.read_site(out))
        self.assertEqual(faults, ["a.html: #y: a.html has no such anchor", "a.html: b.html does not exist",
                                  "a.html: loads https://arxiv.org/a.js of another host"])
        self.assertEqual((inside, outside), (3, {"arxiv.org": 2}))

    def test_fences(self):
        count, faults, indented = check.fences({
            "README.md": "```cpp\nint a;\n```\n\n    braid train a\n\n    more\n\n1. `a.h`, new:\n\n       int a;\n",
            "a.md": "<!-- not run: needs a cluster -->\n```sh\nx\n```\n\n```toml\na = 1\n```\n\n```text\n```\n"})
        self.assertEqual(count, {"cpp": [1, 0, 0], "sh": [0, 1, 0], "toml": [0, 0, 1]})
        self.assertEqual(len(faults), 1)
        self.assertIn("a.md:6: no test runs this toml fence", faults[0])
        self.assertEqual(list(indented.values()), [1, 1, 0])

    def test_code_of_a_page(self):
        parts = pages.split_code("a\n\n    code\n\nb\n```sh\n[x](y)\n```\nc\n")
        self.assertEqual([is_code for is_code, _ in parts], [False, True, False, True, False])


class Whole(unittest.TestCase):
    def test_the_tree(self):
        """Each page is in a section, each link leads somewhere, each public header declares something; fences are run."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "site")
            done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "site"), "--stage", "-o", out, *(["--braid", BRAID] if BRAID else [])],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            docs = out + "-src/docs"
            root = os.path.dirname(SCRIPTS)
            with open(os.path.join(root, "cmake/public-headers.cmake"), encoding="utf-8") as file:
                listed = re.findall(r"^  (\S+\.h)$", file.read(), re.M)
            self.assertGreater(len(listed), 100)
            for path in listed:
                with open(f"{docs}/reference/cpp/{path}.md", encoding="utf-8") as file:
                    self.assertIn("```cpp", file.read(), path)
            if BRAID:
                with open(f"{docs}/reference/settings.md", encoding="utf-8") as file:
                    self.assertIn("`schedule.warmup`", file.read())
            tree = pages.Tree(root, [])
            count, faults, _ = check.fences({page: tree.read(page) for page in tree.pages if not page.startswith(("tests/lint/bad/", "tests/recipes/"))})
            self.assertEqual(faults, [])
            self.assertGreater(sum(row[0] for row in count.values()), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
