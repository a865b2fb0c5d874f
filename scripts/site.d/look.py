"""Opens pages of the site in headless Chromium, from their files, and keeps screenshots: scripts/site --look DIR."""
import base64
import importlib.machinery
import importlib.util
import os
import shutil
import tempfile

PAGES = ("index.html", "start.html", "course/01_tensor/chapter.html", "configs/index.html", "reference/cpp/autograd/ops.h.html",
         "reference/settings.html", "reference/program/train.html", "reference/python/braid.functions.html", "source/tensor/cpu/softmax.cpp.html")
# Each element with text of its own whose contrast with what lies behind it is below 4.5 (3 for large text).
CONTRAST = """(() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const lum = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const out = {};
  const all = root => [...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
  for (const e of all(document.body)) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const chain = []; for (let p = e; p; p = p.parentElement || p.getRootNode().host) chain.push(p);
    let back = [255, 255, 255, 1];
    for (const p of chain.reverse()) back = over(parse(getComputedStyle(p).backgroundColor), back);
    const style = getComputedStyle(e), text = over(parse(style.color), back);
    const [a, b] = [lum(text), lum(back)].sort((x, y) => x - y), ratio = (b + 0.05) / (a + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) out[e.tagName + '.' + e.className + ' "' + e.textContent.trim().slice(0, 20) + '" ' + ratio.toFixed(2)] = 1;
  }
  return Object.keys(out).slice(0, 5);
})()"""

FIELD = "[...document.querySelectorAll('*')].map(e => e.shadowRoot && e.shadowRoot.querySelector('input[role=combobox]')).find(e => e)"


def check_page():
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check_page")
    loader = importlib.machinery.SourceFileLoader("check_page", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_page", loader))
    loader.exec_module(module)
    return module


class Look:
    def __init__(self, browser, out, folder):
        self.browser, self.out, self.folder, self.shots = browser, os.path.abspath(out), folder, 0

    def open(self, page):
        self.browser.call("Page.navigate", url=f"file://{self.out}/{page}")
        self.browser.wait("document.readyState === 'complete' && !document.documentElement.classList.contains('no-js')", page)

    def size(self, width, height):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def shot(self, name):
        with open(os.path.join(self.folder, name + ".png"), "wb") as file:
            file.write(base64.b64decode(self.browser.call("Page.captureScreenshot", format="png")["data"]))
        self.shots += 1

    def contrast(self, where):
        return [f"{where}: contrast: {text}" for text in self.browser.run(CONTRAST)]

    def page(self, page):
        faults = []
        for width, height in ((1440, 900), (390, 844)):
            for scheme in ("light", "dark"):
                self.size(width, height)
                self.browser.prefer(scheme)
                self.open(page)
                where = f"{page} at {width} pixels, {scheme}"
                wide = self.browser.run("document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    faults.append(f"{where}: {wide} pixels wider than the window")
                faults += self.contrast(where)
                self.shot(f"{page.replace('/', '_')}-{width}-{scheme}")
        return faults

    def keyboard(self):
        """The first Tab stops at the link that skips to the content; every stop has an outline, itself or its label."""
        self.size(1440, 900)
        self.open("index.html")
        stops = []
        for _ in range(12):
            self.browser.key("Tab", 9)
            stops.append(self.browser.run("""(e => [e.tagName, e.textContent.trim().slice(0, 20),
                [e, e.nextElementSibling || e].map(x => getComputedStyle(x).outlineStyle)])(document.activeElement)"""))
        faults = [f"keyboard: the stop {stop} has no outline" for stop in stops if set(stop[2]) == {"none"}]
        if "Skip" not in stops[0][1]:
            faults.append(f"keyboard: expected the first stop to skip to the content, found {stops[0]}")
        return faults

    def search(self, words, scheme):
        """The search answers what is typed letter by letter, and the field keeps it."""
        self.browser.prefer(scheme)
        self.open("index.html")
        self.browser.click(".md-search__button")
        self.browser.wait(f"(f => f && f.getRootNode().activeElement === f)({FIELD})", "the search field")
        for letter in words:
            self.browser.call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self.browser.call("Input.dispatchKeyEvent", type="keyUp", key=letter)
        found = self.browser.wait(f"[...{FIELD}.getRootNode().querySelectorAll('a[href]')].map(a => a.textContent.trim()).filter(t => t)",
                                  f"results of the search for {words}", 20)
        typed = self.browser.run(FIELD + ".value")
        print(f"look      search \"{words}\", {scheme}: {len(found)} results shown, the first: {found[0][:60]}")
        self.shot(f"search-{words.replace(' ', '-')}-{scheme}")
        faults = self.contrast(f"search for {words}, {scheme}")
        return faults + ([] if typed == words else [f"search: typed {words!r}, the field has {typed!r}"])


def run(out, folder):
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("look      no Chromium: nothing was opened")
        return []
    os.makedirs(folder, exist_ok=True)
    faults = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = check_page().Browser(program, profile)
        look = Look(browser, out, folder)
        try:
            for page in PAGES:
                if os.path.exists(os.path.join(out, page)):
                    faults += look.page(page)
            faults += look.keyboard()
            for words, scheme in (("talking heads", "light"), ("LoRA", "dark"), ("resume", "light")):
                faults += look.search(words, scheme)
            faults += [f"console: {text}" for text in browser.errors()]
            faults += [f"request to another host: {url}" for url in browser.outside("file:")]
        finally:
            browser.close()
    print(f"look      {look.shots} screenshots in {folder}, {len(faults)} faults")
    return faults
