#!/usr/bin/env python3
"""check_diff.py PAGE OLD NEW NAME SHOTS [--cache] [--hostile] [--folded]: opens the page of two recordings and compares
what it shows with both databases and with the rows of `memprof diff` ($MEMPROF). --cache: of the sample whose numbers
are known. --folded: there are more stacks than it shows. Screenshots go to SHOTS/NAME-*.png."""
import csv
import io
import os
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import served  # noqa: E402
from shown import equal, expect, failures  # noqa: E402

MEASURES = {"at_peak_bytes": "peak_active_bytes", "end_bytes": "end_active_bytes", "alloc_bytes": "alloc_bytes",
            "alloc_count": "alloc_count", "temporary_count": "temporary_count"}
COLUMNS = ["at_peak_bytes", "own_peak_bytes", "end_bytes", "alloc_bytes", "alloc_count", "temporary_count"]


def totals(path):
    db = sqlite3.connect(path)
    db.text_factory = lambda b: b.decode("utf-8", "replace")
    rows = db.execute("SELECT d.name, " + ", ".join(MEASURES.values()) + " FROM total JOIN device d USING(device_id) WHERE kind = 'all'")
    return {row[0]: row[1:] for row in rows}


def flame(b, old, new):
    """What the graph's root stands for, on each device and by each measure, is the recordings' own totals."""
    b.click("#flame-libraries")
    names = b.js("return app.devices().map((i) => [i, model.core.devices[i].name])")
    expect("a device", names)
    for number, name in names:
        got = b.js("""app.setDevice(arguments[0]);
            const out = [], wrong = [];
            for (const [width, up] of [['both', false], ['both', true], ['new', false], ['old', true]]) {
              flame.width = width;
              flame.up = up;
              out.push(flame.measures.map(([key]) => { flame.measure = key; flame.update(); return flame.root.sums.slice(1); }));
              for (const box of flame.boxes) {
                const below = flame.children(box.node).reduce((t, k) => t.map((v, i) => v + k.sums[i]), [0, 0, 0]);
                if (below.some((v, i) => v > box.node.sums[i])) wrong.push(box.node.name);
              }
            }
            Object.assign(flame, { width: 'both', up: false, measure: 'at_peak_bytes' });
            flame.update();
            return [out, wrong];""", number)
        nothing = [0] * len(MEASURES)
        wanted = [list(pair) for pair in zip(old.get(name, nothing), new.get(name, nothing))]
        # a width of one side leaves out what the other has alone
        equal(f"{name[:20]}: both sides of the flame graph", wanted, got[0][0])
        equal(f"{name[:20]}: by callee", wanted, got[0][1])
        equal(f"{name[:20]}: the new side", [w[1] for w in wanted], [g[1] for g in got[0][2]])
        equal(f"{name[:20]}: the old side", [w[0] for w in wanted], [g[0] for g in got[0][3]])
        equal(f"{name[:20]}: boxes whose callees are more than they", [], got[1])
        peaks = b.js("return [timeline.sideAt(0, 0), ...model.sides.map((s, k) => timeline.peakOf(k) ? timeline.peakOf(k).value : 0)]")[1:]
        equal(f"{name[:20]}: both peaks", [w for w in wanted[0]], peaks)
    b.click("#flame-libraries")


def rows(b, old, new):
    for key in ("line", "function", "file", "module"):
        text = subprocess.run([os.environ["MEMPROF"], "diff", old, new, "--by", key, "--csv"], check=True, capture_output=True).stdout
        want = list(csv.DictReader(io.StringIO(text.decode("utf-8", "replace"), newline="")))
        number = lambda v: int(v) if v else None
        wanted = [[r["device"], r["match"], *(number(r[f"{c}_{side}"]) for c in COLUMNS for side in ("old", "new"))] for r in want]
        got = b.js("return model.rows[arguments[0]].rows.map((r) => [model.core.devices[r.device].name, r.match, ...r.values])", key)
        equal(f"rows by {key}", len(wanted[:1000]), len(got))
        equal(f"all rows by {key}", len(wanted), b.js("return model.rows[arguments[0]].row_count", key))
        wrong = [(w, g) for w, g in zip(wanted, got) if w != g]
        expect(f"values of {len(got)} rows by {key}", not wrong, wrong[:2])


def cache(b):
    """50,000 bytes became 80,000, and the line moved by three."""
    cells = b.js("return [...document.querySelectorAll('#table tbody tr')].map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent))")
    equal("the row", [["makeb.c:6", "48.83 KiB", "78.12 KiB", "+29.30 KiB", "0 B", "+29.30 KiB", "0", "renamed, moved"]], cells)
    expect("how in full", "Matched: renamed from a.c, moved 3 -> 6." in b.js("return document.getElementById('detail').textContent"))
    expect("the total", "In all 48.83 KiB \u2192 78.12 KiB, +29.30 KiB." in b.js("return document.getElementById('table-note').textContent"))
    expect("before", "Before: make a.c:3" in b.js("return document.getElementById('detail').textContent"))
    equal("both sides of the box", [80000, 50000, 80000], b.js("return flame.boxes.find((x) => x.node.name === 'make').node.sums"))
    equal("its colour", "grown-1", b.js("return flame.change(flame.boxes.find((x) => x.node.name === 'make').node).color"))
    row = b.js("return flame.boxes.find((x) => x.node.name === 'make').row")
    height = b.js("return document.getElementById('flame-canvas').getBoundingClientRect().height")
    b.hover("#flame-canvas", 0.5, (row * 20 + 10) / height)
    tip = b.js("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")
    expect("the tip has both", "make" in tip and "48.83 KiB \u2192 78.12 KiB, +29.30 KiB" in tip, tip)
    series = b.js("return [...document.querySelectorAll('.series')].map((s) => s.textContent)")
    expect("both peaks are told", len(series) == 2 and "Oldpeak 48.83 KiB" in series[0] and "Newpeak 78.12 KiB" in series[1], series)
    said = b.js("""const said = [], say = timeline.say;
        timeline.say = (c, plot, x, y, text) => said.push(text);
        for (const f of figures) f.dirty = true;
        drawNow();
        timeline.say = say;
        return said;""")
    expect("and marked", [s.split(" at ")[0] for s in said] == ["old: 48.83 KiB", "new: 78.12 KiB"], said)
    b.click("#table-measure")
    b.js("const s = document.getElementById('table-measure'); s.value = 'alloc_count'; s.dispatchEvent(new Event('change'))")
    equal("no count changed, but bytes did", ["10", "10", "0"], b.js("return [...document.querySelectorAll('#table tbody tr td')].slice(1, 4).map((c) => c.textContent)"))
    before = b.js("return timeline.view.to - timeline.view.from")
    b.pointer(".panel canvas", [(0.3, 0.5), (0.4, 0.5), (0.6, 0.5)])
    expect("a drag zooms", b.js("return timeline.view.to - timeline.view.from") < before * 0.6)
    b.click("#zoom-reset")


def main():
    page, old, new, name, shots, *flags = sys.argv[1:]
    b = served(os.environ["BROWSER"])
    b.requests()
    b.open(os.path.abspath(page))
    b.wait("document.documentElement.dataset.ready === 'true' || !document.getElementById('failed').hidden")
    equal("no failure", "", b.js("return document.getElementById('failed').textContent"))
    expect("size under 5 MB", os.path.getsize(page) < 5_000_000, os.path.getsize(page))
    if "--cache" in flags:
        cache(b)
    if "--cache" in flags or os.environ.get("PICTURES"):
        b.screenshot(os.path.join(shots, name + ".png"), True)
    flame(b, totals(old), totals(new))
    rows(b, old, new)
    about = b.js("return document.getElementById('about').textContent")
    if "--folded" in flags:
        shown, said = b.js("return [model.m.nodeCount, /Of ([\\d,]+) places .* the ([\\d,]+) are shown/.exec(document.getElementById('about').textContent)]")
        expect("what is left out is said", said and int(said[1].replace(",", "")) > 40000 == int(said[2].replace(",", "")), about)
        expect("nodes are bounded", 40000 < shown < 80001, shown)
    else:
        expect("nothing is left out", "places in the stacks" not in about, about)
    if "--hostile" in flags:
        for tab in ("line", "function", "file", "module", "op"):
            b.js("tables.open(arguments[0]); document.querySelectorAll('#table tbody tr').forEach((r) => r.click())", tab)
        equal("nothing of the recordings became an element", 0, b.js("return document.querySelectorAll('main img, main script, head img').length"))
        expect("no dialog", b.js("return typeof window.owned === 'undefined'"))
        with open(page, "rb") as f:
            equal("scripts in the page", 5, len(re.findall(rb"<script\b", f.read())))
    cut = b.js("""for (const c of document.querySelectorAll('#detail .statistics td:not(.text)')) c.textContent = c.nextElementSibling ? '999.99 MiB' : '+999.99 MiB';
        return ['#detail', '#detail .statistics', '#table', '#summary .table-wrap'].filter((id) => { const e = document.querySelector(id); return e && e.scrollWidth > e.clientWidth; })""")
    equal("nothing is cut off, were the numbers larger", [], cut)
    b.resize(700, 900)
    cut = b.js("return [...document.querySelectorAll('.top nav')].filter((e) => e.scrollWidth > e.clientWidth).length")
    equal("sections cut off at 700 pixels", 0, cut)
    b.resize(1280, 900)
    asked = [u for u in b.requests() if not u.startswith(("file:", "data:", "blob:"))]
    equal("requests", [], asked)
    equal("messages in the console", [], b.console())
    return 1 if failures else 0


sys.exit(main())
