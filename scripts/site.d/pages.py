"""The pages of the tree as sources of the generator: their list, their paths, and the links between them."""
import fnmatch
import os
import re
import subprocess

TEXTS = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".py": "python", ".pyi": "python", ".cmake": "cmake", ".toml": "toml",
         ".sh": "sh", ".js": "js", ".html": "html", ".css": "css", ".json": "json", ".jsonl": "text", ".txt": "text", ".csv": "text",
         ".yaml": "yaml", ".yml": "yaml", ".slurm": "sh", ".service": "ini", "": "text"}
IMAGES = (".svg", ".png", ".jpg")
MAX_SOURCE = 200_000  # bytes of a file that gets a page
LINK = re.compile(r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)|(?P<bang>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<target>[^()\s]+)\)", re.S)


def tracked(root):
    """The files of the tree: those that git knows, or all where there is no git."""
    done = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return [path for path in done.stdout.split("\n") if path and os.path.isfile(os.path.join(root, path))]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in (".git", "out", "build"))
        found += [os.path.relpath(os.path.join(folder, f), root) for f in sorted(files)]
    return found


class Navigation:
    """sections: (title, pages), left_out: page -> reason. Every page is in one of them, else ValueError."""

    def __init__(self, text, pages):
        self.sections, self.left_out = [], {}
        free, wrong, lines, heading = list(pages), [], [], None
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith(" "):
                lines.append((number, line.strip(), heading))
            else:
                heading = line.removeprefix("- ") if line.startswith("- ") else len(self.sections)
                if isinstance(heading, int):
                    self.sections.append((line.strip(), []))
        claimed = {}
        for line in sorted(lines, key=lambda x: (isinstance(x[2], int), "*" in x[1])):  # left out, by name, by pattern
            found = [page for page in free if fnmatch.fnmatchcase(page, line[1])]
            claimed[line] = sorted(found, key=lambda page: (os.path.dirname(page), os.path.basename(page) != "README.md", page))
            free = [page for page in free if page not in found]
            if not found:
                wrong.append(f"line {line[0]}: {line[1]} names no page that no other line names")
        for line in lines:
            if isinstance(line[2], int):
                self.sections[line[2]][1].extend(claimed[line])
            else:
                self.left_out.update((page, line[2]) for page in claimed[line])
        wrong += [f"{page} is in no section; add it, or leave it out with the reason" for page in free]
        if wrong:
            raise ValueError("navigation.txt: " + "\nnavigation.txt: ".join(wrong))


def split_code(text):
    """(is code, text) of the stretches of a page: fences and indented blocks, and what lies between. What belongs to the
    item of a list is set off by four spaces, as the generator's Markdown needs it."""
    out, code, fence, blank, width = [], False, None, True, 0

    def add(is_code, line):
        if out and out[-1][0] == is_code:
            out[-1][1].append(line)
        else:
            out.append((is_code, [line]))

    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        moved = " " * (4 - width) + line if 0 < width < 4 and line.strip() and indent >= width else line
        if fence:
            add(True, moved)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        elif match := re.match(r" *(```+|~~~+)", line):
            fence = match.group(1)
            add(True, moved)
        elif line.strip() and indent >= width + 4 and (blank or code):
            code = True
            add(True, moved)
        elif not line.strip():
            add(code, line)
        else:
            code = False
            if match := re.match(r"([-*+]|\d+\.) +", line):
                width = len(match[0])
                moved = line
            elif not line.startswith(" ") and blank:
                width = 0
            add(False, moved)
        blank = not line.strip()
    return [(is_code, "\n".join(lines)) for is_code, lines in out]


def spaced(text):
    """A blank line before lists and tables, which the generator's Markdown needs."""
    out = []
    for line in text.split("\n"):
        before = out[-1] if out else ""
        plain = before.strip() and not before.startswith((" ", "|", "#")) and not re.match(r"([-*+]|\d+\.) ", before)
        if plain and (re.match(r"([-*+]|1\.) ", line) or line.startswith("|")) and not continued_item(out):
            out.append("")
        out.append(line)
    return "\n".join(out)


def continued_item(lines):
    for line in reversed(lines):
        if not line.strip():
            return False
        if re.match(r"([-*+]|\d+\.) ", line):
            return True
    return False


class Tree:
    """Where each file of the tree is on the site. sources collects the files that pages link to."""

    def __init__(self, root, headers):
        self.root = root
        self.files = tracked(root)
        self.known = set(self.files)
        self.pages = [f for f in self.files if f.endswith(".md")]
        self.headers = set(headers)
        self.left_out, self.sources, self.images, self.broken = {}, set(), set(), []

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def staged(self, path):
        """The Markdown file of a file of the tree, below the folder of staged pages; None where it has none."""
        if path == "README.md":
            return "index.md"
        if path in self.left_out:
            return None
        if path.startswith("scripts/site.d/") and path.endswith(".md"):
            return os.path.basename(path)
        if path.endswith("README.md"):
            return path[:-len("README.md")] + "index.md"
        if path.endswith(".md"):
            return path
        if path in self.headers:
            return f"reference/cpp/{path}.md"
        if path in self.known and path.endswith(IMAGES):
            self.images.add(path)
            return path
        if path in self.known and os.path.splitext(path)[1] in TEXTS and os.path.getsize(os.path.join(self.root, path)) <= MAX_SOURCE:
            self.sources.add(path)
            return f"source/{path}.md"
        return None

    def find(self, page, target):
        """The file that a page means by this path: from its folder or from the root; of a folder its README.md."""
        for base in (os.path.dirname(page), ""):
            path = os.path.normpath(os.path.join(base, target))
            if path in self.known:
                return path
            if path != "." and path + "/README.md" in self.known:
                return path + "/README.md"
        return None

    def link(self, page, target, at):
        """The link from the staged file `at` to what `target` means on this page, or None."""
        path, _, anchor = target.partition("#")
        found = self.find(page, path)
        staged = found and found != page and self.staged(found)
        if not staged:
            return None
        return os.path.relpath(staged, os.path.dirname(at) or ".") + ("#" + anchor if anchor else "")

    def rewritten(self, page):
        """A page of the tree with links to the staged files; a path in backquotes of a file becomes a link to it."""
        at = self.staged(page)

        def replaced(match):
            if match["target"]:
                target, text = match["target"], match["text"]
                if target.startswith(("#", "http://", "https://", "mailto:")):
                    return match[0]
                link = self.link(page, target, at)
                if link is None:
                    if not os.path.exists(os.path.join(self.root, os.path.dirname(page), target.partition("#")[0])):
                        self.broken.append(f"{page}: {target} does not exist")
                    return text if text.startswith("`") else f"`{text}`"
                return f"{match['bang']}[{text}]({link})"
            code = match["code"]
            if re.fullmatch(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?", code) and ("/" in code or os.path.splitext(code)[1] in TEXTS):
                link = self.link(page, code, at)
                if link and not link.endswith(IMAGES):
                    return f"[{match[0]}]({link})"
            return match[0]

        out = []
        for is_code, text in split_code(self.read(page)):
            if not is_code:
                lines, blocks = spaced(text).split("\n"), []
                for line in lines:  # headings keep their words
                    if line.startswith("#") or not blocks or blocks[-1].startswith("#"):
                        blocks.append(line)
                    else:
                        blocks[-1] += "\n" + line
                text = "\n".join(block if block.startswith("#") else LINK.sub(replaced, block) for block in blocks)
            out.append(text)
        return "\n".join(out)

    def source_page(self, path):
        text = self.read(path).rstrip("\n")
        language = TEXTS[os.path.splitext(path)[1]]
        if text.startswith("#!"):
            language = "python" if "python" in text.split("\n")[0] else "sh"
        fence = "`" * max(3, 1 + max((len(x) for x in re.findall(r"`+", text)), default=0))
        return f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# `{path}`\n\n{fence}{language}\n{text}\n{fence}\n"
