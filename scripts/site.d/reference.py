"""The reference of the program from its own --help and --print-config, and that of the Python module from its types."""
import ast
import html
import os
import re
import subprocess


def said(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"})
    if done.returncode:
        raise RuntimeError(f"{program} {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def cell(text):
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)


def commands(program):
    """[(name, summary)] of the list that `braid --help` prints."""
    return re.findall(r"^  ([a-z]+) {2,}(.+)$", said(program, "--help").partition("usage:")[2].partition("exit codes")[0], re.M)


def columns(lines):
    """Rows (left, right) of lines in two columns; a right column that continues in the next line is joined."""
    rows = []
    for line in lines:
        if match := re.match(r" {2,6}(\S(?:.*?\S)?) {2,}(\S.*)$", line):
            if len(line) - len(line.lstrip()) <= 6:
                rows.append([match[1], match[2]])
                continue
        if rows and line.startswith(" " * 20):
            rows[-1][1] = (rows[-1][1] + " " + line.strip()).strip()
        else:
            rows.append([line.strip(), ""])
    return rows


def command_page(name, text):
    """The page of a command from its --help: tables of what stands in two columns, examples as code."""
    title, _, rest = text.partition("\n")
    out = [f"# braid {name}", "", cell(title.partition(": ")[2].capitalize()) + ".", ""]
    for block in rest.strip("\n").split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("usage:"):
            out += ["```text", *[line.replace("usage: ", "", 1) for line in lines], "```", ""]
        elif lines[0] == "examples:":
            out += ["## Examples", "", "```text", *[line.strip() for line in lines[1:]], "```", ""]
        elif all(line.startswith("  ") for line in lines):
            flags = any(line.lstrip().startswith("-") for line in lines)
            out += ["## Flags" if flags else "## Arguments", "", "| | |", "|---|---|"]
            for left, right in columns(lines):
                flag = re.search(r"--[a-z][a-z0-9-]*", left)
                mark = f'<span id="{flag[0]}"></span>' if flag else ""
                out.append(f"| {mark}`{left}` | {cell(right)} |")
            out.append("")
        else:
            out += notes(lines)
    return "\n".join(out)


def notes(lines):
    out, table = [], []

    def flush():
        nonlocal table
        if table:
            out.extend(["", "```text", *table, "```", ""])
        table = []

    for line in lines:
        if line.startswith("  "):
            table.append(line[2:])
        else:
            flush()
            out.append(cell(line))
    flush()
    return ["## Notes", "", *out, ""]


def settings_page(text):
    """The page of all settings from `braid train --print-config`."""
    out = ["# Settings of braid train", "",
           "Every key of a configuration, from `braid train --print-config`, which prints the same with the values of a file:",
           "`braid train configs/demo.toml --print-config`. \"Not set\" keys follow from others, a preset or the family's defaults.", ""]
    section, rows = "", 0
    for line in text.split("\n"):
        if match := re.match(r"\[(.+)\]$", line):
            section = match[1]
            out += ["", f"## {section}", "", "| setting | value | meaning |", "|---|---|---|"]
        elif match := re.match(r"(?:# )?([a-z_0-9]+) =(.*?)\s+# (.+)$", line):
            key, value, meaning = match[1], match[2].strip(), match[3]
            meaning = re.sub(r"; not set(?=;|$)", "", meaning)
            out.append(f'| <span id="{section}.{key}"></span>`{section}.{key}` | {f"`{value}`" if value else "not set"} | {cell(meaning)} |')
            rows += 1
    if not rows:
        raise RuntimeError("braid train --print-config: expected lines KEY = VALUE  # MEANING, found none")
    return "\n".join(out) + "\n", rows


def signature(node):
    text = ast.unparse(node)
    head = text[text.index("def "):].split("\n")[0]
    return head.removesuffix(" ...").rstrip(":")


def described(node):
    return html.escape(" ".join((ast.get_docstring(node) or "").split()), quote=False)


def python_page(module, source, kind=(ast.ClassDef, ast.FunctionDef)):
    """The page of a module from the text of its .pyi: classes with their members, functions by their names."""
    out, functions, classes, names = [], {}, [], []
    body = ast.parse(source).body
    if body and isinstance(body[0], ast.Expr):
        out += [html.escape(body[0].value.value.strip(), quote=False), ""]
    for node in body:
        if not isinstance(node, kind):
            continue
        if isinstance(node, ast.ClassDef):
            classes.append(node)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            functions.setdefault(node.name, []).append(node)

    def entry(name, nodes, level, owner):
        names.append(f"{owner}.{name}")
        heading = [f"{'#' * level} `{name}`", ""] if level else [f'<div class="names"><span id="{owner}.{name}"></span></div>', ""]
        prefix = ["@property"] if any(ast.unparse(d) == "property" for d in nodes[0].decorator_list) else []
        text = [f"<p>{described(n)}</p>" for n in nodes if described(n)]
        return [*heading, "```python", *prefix, *dict.fromkeys(signature(n) for n in nodes), "```", "", *dict.fromkeys(text), ""]

    if functions:
        out += ["## Functions", ""] if classes else []
        for name in sorted(functions, key=str.lower):
            out += entry(name, functions[name], 3 if classes else 2, module)
    for node in classes:
        bases = ", ".join(ast.unparse(b) for b in node.bases)
        out += [f"## class `{node.name}`", "", f"<p>{described(node)}</p>", ""]
        if bases:
            out += [f"Derived from `{bases}`.", ""]
        names.append(f"{module}.{node.name}")
        members, values, special = {}, [], []
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                if re.match(r"__(?!init__|call__|getitem__|setitem__)", item.name):
                    special.append(item.name)
                elif not any(ast.unparse(d).endswith(".setter") for d in item.decorator_list):
                    members.setdefault(item.name, []).append(item)
            elif isinstance(item, (ast.Assign, ast.AnnAssign)):
                values.append(ast.unparse(item))
        if values:
            out += ["```python", *values, "```", ""]
        if members:
            out += ['<div class="members" markdown="1">', ""]
            for name, nodes in members.items():
                out += entry(name, nodes, 0, f"{module}.{node.name}")
            out += ["</div>", ""]
        if special:
            out += ["Also " + ", ".join(f"`{name}`" for name in dict.fromkeys(special)) + ".", ""]
    return "\n".join(out) + "\n", names
