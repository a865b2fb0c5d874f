"""The checks of scripts/site --check: links, anchors, hosts, weights, contrast, search, fences of code."""
import html.parser
import json
import os
import re
import urllib.parse

import pages

SEARCHED = ("talking heads", "LoRA", "resume", "dcmha", "schedule.warmup")
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data"), ("use", "href")}
# Pairs of colors that text is drawn with: foreground, background, both variables of style.css.
PAIRS = [(fg, bg) for fg in ("default-fg-color", "default-fg-color--light", "default-fg-color--lighter", "typeset-a-color", "accent-fg-color")
         for bg in ("default-bg-color", "code-bg-color")]
LANGUAGES = ("cpp", "python", "toml", "sh")
OPT_OUT = re.compile(r"<!-- not run: (.+?) -->\s*$")
MAX_OPT_OUT = 0.05
COMMAND = re.compile(r"(\$ |\./)?((/?[\w-]+/)*braid|scripts/\w+|build/\S+|[A-Z_]+=\S+"
                     r"|cmake|python3?|pip|mpirun|ctest|apt|export|cd|curl|git|ninja|lm_eval) ")


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name in ("id", "name"):
            if values.get(name):
                self.ids.add(values[name])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for name, value in attributes:
            if (tag, name) in LOADED and value:
                self.loads.append(value)
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload", "preconnect", "manifest"):
            self.loads.append(values["href"])
        self.loads += re.findall(r"url\(([^)]+)\)", values.get("style") or "")


def read_site(out):
    found = {}
    for folder, _, files in os.walk(out):
        for name in files:
            if name.endswith(".html"):
                path = os.path.relpath(os.path.join(folder, name), out)
                with open(os.path.join(out, path), encoding="utf-8") as file:
                    reader = Reader()
                    reader.feed(file.read())
                found[path] = reader
    return found


def links(out, site):
    """Faults of links, anchors and of what is loaded; the numbers of links of this site, and those to other hosts."""
    faults, inside, outside = [], 0, {}
    for page, reader in site.items():
        if page == "404.html":  # whose links are from the root of a server
            continue
        for link in reader.links + reader.loads:
            url = urllib.parse.urlsplit(link)
            if url.scheme == "data":
                continue
            if url.scheme or url.netloc:
                outside[url.netloc] = outside.get(url.netloc, 0) + 1
                if link in reader.loads:
                    faults.append(f"{page}: loads {link} of another host")
                continue
            inside += 1
            target = os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(url.path))) if url.path else page
            if os.path.isdir(os.path.join(out, target)):
                target = os.path.normpath(os.path.join(target, "index.html"))
            if not os.path.exists(os.path.join(out, target)):
                faults.append(f"{page}: {link} does not exist")
            elif url.fragment and target in site and urllib.parse.unquote(url.fragment) not in site[target].ids:
                faults.append(f"{page}: {link}: {target} has no such anchor")
    for folder, _, files in os.walk(out):
        for name in files:
            if name.endswith(".css"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    for url in re.findall(r"(?:url\(|@import )[\"']?(https?:[^\"')]+)", file.read()):
                        faults.append(f"{name}: loads {url} of another host")
    return faults, inside, outside


def luminance(color):
    channels = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    """The ratio of WCAG 2: 1 for equal colors, 21 for black and white."""
    a, b = sorted((luminance(a), luminance(b)))
    return (b + 0.05) / (a + 0.05)


def colors(css):
    """{scheme: {variable: #rrggbb}} of the style sheet."""
    return {scheme: dict(re.findall(r"--md-([\w-]+): (#[0-9a-f]{6});", body))
            for scheme, body in re.findall(r'data-md-color-scheme="(\w+)"\][^{]*\{([^}]*)\}', css)}


def contrasts(css):
    """[(ratio, scheme, foreground, background)], the lowest first."""
    out = []
    for scheme, values in colors(css).items():
        pairs = PAIRS + [(name, "code-bg-color") for name in values if name.startswith("code-hl") or name == "code-fg-color"]
        out += [(contrast(values[fg], values[bg]), scheme, fg, bg) for fg, bg in pairs]
    return sorted(out)


def what_runs(page, language):
    """The test that compiles or runs the fences of a page, or compares them with what it runs; None where there is none. Of the
    course's sh fences tests/course/run.cmake checks the form alone: the programs that they start are run by themselves."""
    if page == "README.md" and language == "cpp":
        return "tests/install (tests/lint/readme.cmake)"
    if re.match(r"course/\d+_\w+/chapter.md$", page):
        return "tests/course/run.cmake"
    return None


def fences(texts):
    """{language: [tied to a test, opted out, neither]} and faults of the pages (path -> text); indented blocks, which name no language, by kind."""
    count, faults, indented = {}, [], {"steps that tests/recipes compiles": 0, "commands": 0, "output, formulas and others": 0}
    for page, text in texts.items():
        lines, inside = text.split("\n"), False
        for i, line in enumerate(lines):
            if match := re.match(r"```+([a-z+]*)\s*$", line):
                inside = not inside
                language = match[1]
                if inside and language in LANGUAGES:
                    row = count.setdefault(language, [0, 0, 0])
                    if what_runs(page, language):
                        row[0] += 1
                    elif i and OPT_OUT.match(lines[i - 1]):
                        row[1] += 1
                    else:
                        row[2] += 1
                        faults.append(f"{page}:{i + 1}: no test runs this {language} fence; tie it to one, or say <!-- not run: REASON --> above it")
        before = ""
        for is_code, block in pages.split_code(text):
            if is_code and not block.lstrip().startswith(("```", "~~~")):
                kind = 0 if re.search(r"(?m)^\d+\. `[^`]+`, (before `[^`]+`|new):\s*\Z", before) else 1 if COMMAND.match(block.strip()) else 2
                indented[list(indented)[kind]] += 1
            before = "" if is_code else block
    return count, faults, indented


def run(stage, out, look):
    faults = []
    site = read_site(out)
    wrong, inside, outside = links(out, site)
    faults += wrong
    print(f"links     {len(site)} pages, {inside} links inside, {len(wrong)} faults; to other hosts: "
          + ", ".join(f"{host} {n}" for host, n in sorted(outside.items())))
    sizes = sorted(((os.path.getsize(os.path.join(folder, name)), os.path.relpath(os.path.join(folder, name), out))
                    for folder, _, files in os.walk(out) for name in files), reverse=True)
    print(f"weights   {sum(s for s, _ in sizes) / 1e6:.1f} MB in {len(sizes)} files; KB of the largest:")
    for size, path in sizes[:8]:
        print(f"          {size / 1e3:8.0f}  {path}")
    shared = sum(s for s, p in sizes if p.startswith("assets") and not p.endswith(".html") and "classic" not in p)
    print(f"          {os.path.getsize(os.path.join(out, 'index.html')) / 1e3:8.0f}  index.html; {shared / 1e3:.0f} of scripts and style sheets, once")
    with open(os.path.join(stage.docs, "assets-style.css"), encoding="utf-8") as file:
        ratios = contrasts(file.read())
    print("contrast  %d pairs of colors, the lowest %.2f (%s: %s on %s)" % (len(ratios), *ratios[0]))
    faults += [f"contrast {ratio:.2f} in {scheme}: {fg} on {bg}, expected at least 4.5" for ratio, scheme, fg, bg in ratios if ratio < 4.5]
    with open(os.path.join(out, "search.json"), encoding="utf-8") as file:
        items = [re.sub(r"<[^>]+>|-", " ", item["title"] + " " + item["text"]).lower() for item in json.load(file)["items"]]
    found = {words: sum(words.lower() in item for item in items) for words in SEARCHED}
    print(f"search    {len(items)} sections; " + ", ".join(f'"{words}" in {n}' for words, n in found.items()))
    faults += [f'search: no section has "{words}"' for words, n in found.items() if not n]
    tree = stage.tree
    count, wrong, indented = fences({page: tree.read(page) for page in tree.pages if page not in tree.left_out})
    faults += wrong
    total, out_of = sum(map(sum, count.values())), sum(row[1] for row in count.values())
    print("fences    " + ", ".join(f"{language} {sum(row)} (tied to a test {row[0]}, not {row[1] + row[2]})" for language, row in sorted(count.items()))
          + f"; opted out {100 * out_of / max(1, total):.1f} %")
    print(f"          {sum(indented.values())} indented blocks, which name no language: " + ", ".join(f"{n} {kind}" for kind, n in indented.items()))
    if out_of > MAX_OPT_OUT * total:
        faults.append(f"fences: {out_of} of {total} opted out, expected at most {100 * MAX_OPT_OUT:.0f} %")
    if look:
        import look as browser
        faults += browser.run(out, look)
    for fault in faults:
        print(f"FAULT     {fault}")
    return 1 if faults else 0
