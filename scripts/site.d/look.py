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
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const chain = []; for (let p = e; p; p = p.parentElement) chain.push(p);
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


def run(out, folder):
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("look      no Chromium: nothing was opened")
        return []
    os.makedirs(folder, exist_ok=True)
    faults, shots = [], 0
    with tempfile.TemporaryDirectory() as profile:
        browser = check_page().Browser(program, profile)
        try:
            for page in PAGES:
                if not os.path.exists(os.path.join(out, page)):
                    continue
                for width, height in ((1440, 900), (390, 844)):
                    for scheme in ("light", "dark"):
                        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
                        browser.prefer(scheme)
                        browser.call("Page.navigate", url=f"file://{os.path.abspath(out)}/{page}")
                        browser.wait("document.readyState === 'complete' && !document.documentElement.classList.contains('no-js')", page)
                        where = f"{page} at {width} pixels, {scheme}"
                        wide = browser.run("document.documentElement.scrollWidth - innerWidth")
                        if wide > 0:
                            faults.append(f"{where}: {wide} pixels wider than the window")
                        faults += [f"{where}: contrast: {text}" for text in browser.run(CONTRAST)]
                        data = browser.call("Page.captureScreenshot", format="png")["data"]
                        with open(os.path.join(folder, f"{page.replace('/', '_')}-{width}-{scheme}.png"), "wb") as file:
                            file.write(base64.b64decode(data))
                        shots += 1
            faults += keyboard_and_search(browser, out, folder)
            faults += [f"console: {text}" for text in browser.errors()]
            faults += [f"request to another host: {url}" for url in browser.outside("file:")]
        finally:
            browser.close()
    print(f"look      {shots} screenshots in {folder}, {len(faults)} faults")
    return faults


def keyboard_and_search(browser, out, folder):
    """The first Tab stops at the link that skips to the content, every stop has an outline, itself or its label; / opens the search, which answers."""
    faults = []
    browser.size(1440, 900)
    browser.call("Page.navigate", url=f"file://{os.path.abspath(out)}/index.html")
    browser.wait("document.readyState === 'complete' && !document.documentElement.classList.contains('no-js')", "index.html")
    stops = []
    for _ in range(12):
        browser.key("Tab", 9)
        stops.append(browser.run("(e => [e.tagName, e.textContent.trim().slice(0, 20), [e, e.nextElementSibling || e].map(x => getComputedStyle(x).outlineStyle)])"
                                 "(document.activeElement)"))
    if "Skip" not in stops[0][1]:
        faults.append(f"keyboard: expected the first stop to skip to the content, found {stops[0]}")
    faults += [f"keyboard: the stop {stop} has no outline" for stop in stops if set(stop[2]) == {"none"}]
    for words in ("talking heads", "LoRA", "resume"):
        browser.call("Page.navigate", url=f"file://{os.path.abspath(out)}/index.html")
        browser.wait("document.readyState === 'complete' && !document.documentElement.classList.contains('no-js')", "index.html")
        browser.click(".md-search__button")
        browser.wait("document.activeElement.tagName === 'INPUT' || document.activeElement.shadowRoot?.activeElement", "the search field")
        for letter in words:
            for kind in ("keyDown", "keyUp"):
                browser.call("Input.dispatchKeyEvent", type=kind, key=letter, **({"text": letter} if kind == "keyDown" else {}))
        typed = browser.run(FIELD + ".value")
        if typed != words:
            faults.append(f"search: typed {words!r}, the field has {typed!r}")
        found = browser.wait("[...document.querySelectorAll('a[href*=\"?h=\"], .md-search a[href]')].concat("
                             "[...document.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [...e.shadowRoot.querySelectorAll('a[href]')] : []))"
                             ".map(a => a.textContent.trim()).filter(t => t)", f"results of the search for {words}", 20)
        print(f"look      search \"{words}\": {len(found)} results, the first: {found[0][:60]}")
        with open(os.path.join(folder, f"search-{words.replace(' ', '-')}.png"), "wb") as file:
            file.write(base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"]))
    return faults
