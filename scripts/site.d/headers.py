"""C++ headers as pages: each declaration as it is written, below its comment; no bodies, nothing private."""
import html
import re

HIDDEN = re.compile(r"namespace (\w+::)*(detail|internal)\b")


def code_of(line):
    """A line without strings, characters and its comment, of the same length up to there."""
    out, i = "", 0
    while i < len(line):
        if line.startswith("//", i):
            break
        if line[i] in "\"'" and not (line[i] == "'" and i and line[i - 1].isdigit()):
            end = i + 1
            while end < len(line) and line[end] != line[i]:
                end += 2 if line[end] == "\\" else 1
            out += "_" * (min(end, len(line) - 1) + 1 - i)
            i = end + 1
            continue
        out += line[i]
        i += 1
    return out


def comment_of(line):
    at = len(code_of(line))
    return line[at:].strip()


def depth_of(text):
    return sum(text.count(c) for c in "({[") - sum(text.count(c) for c in ")}]")


def without_arguments(code):
    """A declaration without the arguments of templates."""
    out, depth = "", 0
    for i, c in enumerate(code):
        if c == "<" and (depth or re.match(r"\w$", code[i - 1:i] or " ")) and not code[:i].endswith("operator"):
            depth += 1
        elif c == ">" and depth and code[i - 1] != "-":
            depth -= 1
        elif not depth:
            out += c
    return out


class Declaration:
    def __init__(self, lines):
        self.lines = lines
        self.code = " ".join(code_of(line).strip() for line in lines)
        match = re.match(r"(?:template <.*?> (?:requires .*? )?)?(?:typedef )?(class|struct|union|enum(?: class)?)\s+(?:\[\[\w+\]\] )?(\w+)"
                         r"(?:<[^{;]*>)?\s*(?:final\s*)?(?::[^{;(]*)?\{", self.code)
        self.kind = match.group(1) if match and self.code.rstrip().endswith(";") else None
        self.names = [match.group(2)] if self.kind else self.declared()

    def declared(self):
        code = re.sub(r"^template <(?:[^<>]|<[^<>]*>)*> ?", "", self.code)
        if re.match(r"#define (\w+)", code):
            return [re.match(r"#define (\w+)", code).group(1)]
        if match := re.match(r"using (\w+) =", code):
            return [match.group(1)]
        if re.match(r"(using|static_assert|friend|class|struct|enum)\b", code):
            return []
        flat = without_arguments(re.sub(r"\[\[[^\]]*\]\]", "", code))
        if match := re.search(r"\(\*\s*(\w+)\)", flat):  # a pointer to a function
            return [match.group(1)]
        head = re.split(r"[={]", re.sub(r"operator\s*(\(\)|\[\]|[^\w\s(]+)", lambda m: "operator" + "\0" * (len(m[0]) - 8), flat))[0]
        if match := re.search(r"(~?\w+)\0*\s*\(", head):
            if match.group(1).startswith("operator"):
                return [re.sub(r"\s", "", re.search(r"operator\s*(\(\)|\[\]|[^\w\s(]+|\w+)", flat)[0])]
            return [match.group(1)]
        names = []
        for part in flat.rstrip("; ").split(","):
            match = re.search(r"(\w+)\s*(\[\w*\])?\s*(=.*|\{.*)?$", part)
            if match:
                names.append(match.group(1))
        return names

    def shown(self):
        """Its lines, without the body of a function and what is private of a class."""
        if self.kind and not self.kind.startswith("enum"):
            return self.shown_class()
        end = code_of(self.lines[-1]).rstrip()
        if not end.endswith("}") or self.code.startswith("#define"):
            return self.lines
        shown, depth = [], 0
        for line in self.lines:
            code, cut = code_of(line), None
            for i, c in enumerate(code):
                if c in "([":
                    depth += 1
                elif c in ")]":
                    depth -= 1
                elif depth == 0 and (c == "{" or (c == ":" and code[i - 1:i + 2] == " : " and ")" in " ".join(shown) + code[:i])):
                    cut = i
                    break
            if cut is not None:
                note = comment_of(self.lines[-1])
                rest = code[:cut].rstrip()
                if not rest and shown:
                    shown[-1] = shown[-1].rstrip() + ";"
                else:
                    shown.append(rest + ";" + ("  " + note if note else ""))
                return shown
            shown.append(line)
        return shown

    def head_and_body(self):
        for i, line in enumerate(self.lines):
            if "{" in code_of(line):
                return self.lines[:i + 1], self.lines[i + 1:-1]
        return self.lines, []

    def public_lines(self):
        _, body = self.head_and_body()
        private, out = self.kind == "class", []
        for line in body:
            if match := re.match(r"\s*(public|protected|private):", code_of(line)):
                private = match.group(1) == "private"
                continue
            if not private:
                out.append(line[2:] if line.startswith("  ") else line)
        return out

    def shown_class(self):
        head, body = self.head_and_body()
        if not body:
            return self.lines
        out = list(head)
        for part in parts(self.public_lines()):
            if len(out) > len(head) and out[-1] and part[0] != "same":
                out.append("")
            out += ["  " + line if line else "" for line in part[1]]
            for declaration in part[2]:
                out += ["  " + line if line else "" for line in declaration.shown()]
        while out[-1] == "":
            out.pop()
        return out + [self.lines[-1]]


def declarations_end(lines, i):
    """The index behind the declaration that begins at line i."""
    depth, text = 0, ""
    while i < len(lines):
        code = code_of(lines[i])
        depth += depth_of(code)
        text += code + " "
        i += 1
        stripped = text.rstrip()
        if depth <= 0 and (stripped.endswith(";") or (stripped.endswith("}") and not continues(lines, i))):
            return i
    return i


def continues(lines, i):
    return i < len(lines) and re.match(r"\s*[{:]", lines[i]) is not None


def parts(lines):
    """(kind, comment lines, declarations): "section" has a comment alone, "text" too, "group" has declarations that one
    comment or blank lines set apart; "same" is a group that follows without a blank line."""
    out, comments, group, blank = [], [], [], True

    def flush():
        nonlocal comments, group, blank
        if group:
            out.append(("group" if blank else "same", comments, group))
        elif comments:
            out.append(("text", comments, []))
        comments, group = [], []

    i = 0
    while i < len(lines):
        line = lines[i]
        stripped = line.strip()
        if not stripped:
            flush()
            blank = True
            i += 1
        elif stripped.startswith("//"):
            if group:
                flush()
                blank = False
            if stripped.startswith("// --- "):
                flush()
                text = stripped
                while not text.endswith("---") and i + 1 < len(lines) and lines[i + 1].strip().startswith("//"):
                    i += 1
                    text += " " + lines[i].strip()[2:].strip()
                out.append(("section", [text[7:].rstrip("- ")], []))
                blank = True
            else:
                comments.append(stripped)
            i += 1
        elif HIDDEN.match(stripped):
            depth = depth_of(code_of(line))
            i += 1
            while i < len(lines) and depth > 0:
                depth += depth_of(code_of(lines[i]))
                i += 1
            comments = []
        elif re.match(r"(inline )?namespace\b|\}|extern \"C\" \{", stripped) or re.match(r"#(?!define)", stripped):
            flush()
            i += 1
            while stripped.endswith("\\"):
                stripped = lines[i].strip()
                i += 1
        elif stripped.startswith("#define"):
            end = i + 1
            while lines[end - 1].endswith("\\"):
                end += 1
            group.append(Declaration([lines[i].rstrip("\\ ")]))
            i = end
        else:
            end = declarations_end(lines, i)
            declaration = Declaration(lines[i:end])
            i = end
            if not declaration.names:
                continue
            if declaration.kind and group:  # a class has a part of its own
                flush()
                blank = False
            group.append(declaration)
            if declaration.kind:
                flush()
    flush()
    return out


def prose(comments, link=lambda path: None):
    """Comment lines as HTML: paragraphs, and lines set off by three spaces as preformatted text."""
    out, paragraph, pre = [], [], []

    def flush():
        nonlocal paragraph, pre
        if paragraph:
            out.append("<p>" + marked(" ".join(paragraph), link) + "</p>")
        if pre:
            least = min(len(x) - len(x.lstrip()) for x in pre)
            out.append("<pre><code>" + html.escape("\n".join(x[least:] for x in pre), quote=False) + "\n</code></pre>")
        paragraph, pre = [], []

    for line in comments:
        text = line[2:]
        if not text.strip():
            flush()
        elif text.startswith("   "):
            if paragraph:
                flush()
            pre.append(text)
        else:
            if pre:
                flush()
            paragraph.append(text.strip())
    flush()
    return "\n".join(out)


CODE = re.compile(r"`[^`]+`|\b[\w./]+\.(?:h|md|cpp|cu)\b|\b[a-z]\w*_?\(\)|\b(?:\w+::)+\w+(?:\(\))?|\bError\(\w+\)|\b[a-z][a-z0-9]*_[a-z0-9_]+\b"
                  r"|(?<![\w)])\((?:[A-Z]\w*|\.\.\.)(?:, (?:[A-Za-z0-9]\w*|\.\.\.))*\)")


def marked(text, link):
    out, at = "", 0
    for match in CODE.finditer(text):
        out += html.escape(text[at:match.start()], quote=False)
        word = match[0].strip("`")
        code = "<code>" + html.escape(word, quote=False) + "</code>"
        target = link(word) if "." in word else None
        out += f'<a href="{target}">{code}</a>' if target else code
        at = match.end()
    return out + html.escape(text[at:], quote=False)


def head_comment(lines):
    """The comment lines at the head of a header, and the rest."""
    i = 0
    while i < len(lines) and lines[i].startswith("//"):
        i += 1
    return lines[:i], lines[i:]


def anchor(name):
    return re.sub(r"[^\w.]", lambda m: f"-{ord(m[0]):x}", name)


class Page:
    """The page of one header as Markdown; names maps each declared name to its anchor."""

    def __init__(self, path, text, link=lambda path: None):
        self.path, self.link, self.names, self.out = path, link, {}, []
        comments, rest = head_comment(text.split("\n"))
        self.summary = " ".join(line[2:].strip() for line in comments).split(". ")[0].rstrip(".") if comments else ""
        self.intro = prose(comments, link)
        found = parts(rest)
        self.top = 2
        self.items(found, "", 3 if any(part[0] == "section" for part in found) else 2)

    def spans(self, names, scope):
        fresh = []
        for name in names:
            full = scope + name
            if full not in self.names:
                self.names[full] = anchor(full)
                fresh.append(f'<span id="{anchor(full)}"></span>')
        return "".join(fresh)

    def block(self, lines):
        while lines and not lines[0].strip():
            lines = lines[1:]
        least = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
        self.out += ["```cpp", *[line[least:] for line in lines], "```", ""]

    def items(self, found, scope, level):
        for kind, comments, group in found:
            text = prose(comments, self.link)
            if kind == "section":
                head, rest = re.match(r"(.+?)(?: (\(.*)|[:.,] (.*))?$", comments[0]).group(1), ""
                rest = comments[0][len(head):].lstrip(" :.,")
                self.out += [f"{'#' * self.top} {escape(head[0].upper() + head[1:])}", ""]
                if rest:
                    self.out += ["<p>" + marked(rest, self.link) + "</p>", ""]
                continue
            if kind == "text":
                self.out += [text, ""]
                continue
            names = list(dict.fromkeys(name for d in group for name in d.names))
            if level:
                shown = names if len(names) <= 6 else names[:5] + ["..."]
                self.out += [f"{'#' * level} " + ", ".join(f"`{name}`" for name in shown), ""]
            spans, one = self.spans(names, scope), group[0]
            record = one.kind and not one.kind.startswith("enum")
            long = record and not scope and len(one.public_lines()) > 14
            if record and not long:
                spans += self.spans([n for part in parts(one.public_lines()) for d in part[2] for n in d.names], scope + one.names[0] + ".")
            self.out += [f'<div class="names">{spans}</div>', ""]
            if text:
                self.out += [text, ""]
            if long:
                head, _ = one.head_and_body()
                self.block([*head[:-1], code_of(head[-1]).rstrip().rstrip("{").rstrip() + ";"])
                self.out += ['<div class="members" markdown="1">', ""]
                self.items(parts(one.public_lines()), one.names[0] + ".", 0)
                self.out += ["</div>", ""]
            else:
                self.block([line for d in group for line in d.shown()])

    def text(self, source, root_link):
        return "\n".join([f"# `{self.path}`", "", f"`#include \"braid/{self.path}\"` · [source]({source}) · [all headers]({root_link})",
                          "", self.intro, "", *self.out])


def escape(text):
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)
