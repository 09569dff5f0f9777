#!/usr/bin/env python3
"""check_many.py PAGE NAME SHOTS [--ranks] [--hostile] [--more] -- FILE...: opens the page of several recordings and
compares what it shows with what `memprof report FILE... --json` ($MEMPROF) says, and timelines with the databases.
--ranks: of four recordings whose numbers are known. --more: of more than are drawn at once. Screenshots go to SHOTS."""
import json
import os
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import served  # noqa: E402
from shown import equal, expect, failures  # noqa: E402

KEYS = {"peak": "peak_bytes", "peak_ns": "peak_ns", "reserved": "peak_reserved_bytes", "end": "end_bytes",
        "alloc_count": "alloc_count", "alloc_bytes": "alloc_bytes", "temporary_count": "temporary_count"}


def timelines(b, files):
    """Each timeline's highest bucket is the peak in the file's own totals, and its last one what the file's timeline ends with."""
    for path, rows in files:
        if not os.path.exists(path) or os.path.getsize(path) < 40000:
            continue
        db = sqlite3.connect(path)
        db.text_factory = lambda t: t.decode("utf-8", "replace")
        for device, peak, last in rows:
            want = db.execute("""SELECT t.peak_active_bytes, (SELECT active_last_bytes FROM timeline l WHERE l.device_id = t.device_id AND
                level = 0 ORDER BY time_ns DESC LIMIT 1) FROM total t JOIN device d USING(device_id) WHERE kind = 'all' AND d.name = ?""",
                              (device,)).fetchone()
            if want[1] is not None:
                equal(f"{path[:20]} {device[:20]}: peak and end of the timeline", list(want), [peak, last])


def ranks(b):
    """2 to 5 blocks of 100,000 bytes: 200,000 to 500,000; 1,400,000 in all, 350,000 on average, 500,000 / 350,000 = 1.43."""
    cells = b.js("return [...document.querySelectorAll('.sums tbody td')].map((c) => c.textContent)")
    equal("sums", ["host", "4", "488.28 KiB", "run.3.db", "341.80 KiB", "1.43", "1.34 MiB"], cells[:7])
    cells = b.js("return [...document.querySelectorAll('#table tbody tr')].map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent))")
    equal("rows", [["run.3.db./step 5", "3", "488.28 KiB"], ["run.2.db./step 4", "2", "390.62 KiB"], ["run.1.db./step 3", "1", "292.97 KiB"], ["run.0.db./step 2", "0", "195.31 KiB"]],
          [row[:3] for row in cells])
    equal("the line", ["hold step.c:4"] * 4, [row[-1] for row in cells])
    b.wait("[...document.querySelectorAll('.small-one .value')].every((v) => v.textContent)")
    heads = b.js("return [...document.querySelectorAll('.small-one')].map((s) => [s.querySelector('.name').textContent, s.querySelector('.value').textContent, s.getAttribute('aria-selected')])")
    equal("the small ones", [["rank 0", "195.31 KiB", "false"], ["rank 1", "292.97 KiB", "false"], ["rank 2", "390.62 KiB", "false"], ["rank 3", "488.28 KiB", "true"]], heads)
    b.click(".small-one:nth-child(2)")
    expect("the detail", b.js("return document.getElementById('detail').textContent").startswith("rank 1run.1.db./step 3"))
    expect("its lines", "hold292.97 KiBstep.c:4" in b.js("return document.getElementById('detail').textContent"))
    expect("its page", "memprof report run.1.db --html" in b.js("return document.getElementById('detail').textContent"))
    equal("the row", "run.1.db", b.js("return document.querySelector('#table tr[aria-selected=\"true\"] .fn').textContent"))
    b.hover("#files-title", 0.5, 0.5)
    b.drawn()
    series = b.js("return [...document.querySelectorAll('.series')].map((s) => s.textContent)")
    expect("the chosen one's peak", series[1] == "rank 1peak 292.97 KiB", series)
    b.click("#table tbody tr:nth-child(4)")
    equal("by a row", "rank 0", b.js("return document.querySelector('.small-one[aria-selected=\"true\"] .name').textContent"))
    # the sum's highest bucket holds the common peak, which is as high as the highest of all
    sum_most, common = b.js("return [Math.max(...timeline.sum.levels[0].active_max), model.core.devices[0].common_least]")
    expect("the sum", 500000 <= common <= sum_most <= 1400000, (common, sum_most))
    said = b.js("""const said = [], say = timeline.say;
        timeline.say = (c, plot, x, y, text) => said.push(text);
        for (const f of figures) f.dirty = true;
        drawNow();
        timeline.say = say;
        return said;""")
    expect("both peaks are marked", len(said) == 2 and said[0].startswith("common peak: ") and said[1] == "rank 0: 195.31 KiB", said)
    b.click("[data-align='start']")
    whole = b.js("return [timeline.whole, Math.max(...model.files.map((f) => f.duration))]")
    equal("from each start", whole[1], whole[0])
    b.click("[data-align='clock']")
    b.click("[data-scale='own']")
    equal("own scales", "own", b.js("return timeline.scale"))
    b.js("const s = document.getElementById('order'); s.value = 'peak'; s.dispatchEvent(new Event('change'))")
    equal("by peak", "rank 3", b.js("return document.querySelector('.small-one .name').textContent"))
    b.hover(".small-one canvas", 0.5, 0.5)
    expect("a cursor for all", b.js("return timeline.cursor !== null && document.querySelector('.panel-time').textContent !== ''"))
    before = b.js("return timeline.view.to - timeline.view.from")
    b.pointer(".panel canvas", [(0.3, 0.5), (0.4, 0.5), (0.6, 0.5)])
    expect("a drag zooms", b.js("return timeline.view.to - timeline.view.from") < before * 0.6)
    b.click("#zoom-reset")


def main():
    page, name, shots, *rest = sys.argv[1:]
    flags, paths = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    text = subprocess.run([os.environ["MEMPROF"], "report", *paths, "--json"], check=True, capture_output=True).stdout
    said = json.loads(text)
    b = served(os.environ["BROWSER"])
    b.requests()
    b.open(os.path.abspath(page))
    b.wait("document.documentElement.dataset.ready === 'true' || !document.getElementById('failed').hidden")
    equal("no failure", "", b.js("return document.getElementById('failed').textContent"))
    expect("size under 5 MB", os.path.getsize(page) < 5_000_000, os.path.getsize(page))
    if "--ranks" in flags:
        ranks(b)
    if "--ranks" in flags or os.environ.get("PICTURES"):
        b.screenshot(os.path.join(shots, name + ".png"), True)
    names = b.js("return model.core.devices.map((d) => d.name)")
    want = [[f["file"], f["rank"], f["device"], *(f[k] for k in KEYS.values())] for f in said["files"]]
    got = b.js("""return model.files.flatMap((f) => f.rows.length ? f.rows.map((r) => [f.path, f.rank === undefined ? null : f.rank, model.core.devices[r.device].name, ...arguments[0].map((k) => r[k])])
        : [[f.path, f.rank === undefined ? null : f.rank, null, ...arguments[0].map(() => null)]])""", list(KEYS))
    equal("files and devices", len(want), len(got))
    wrong = [(w, g) for w, g in zip(want, got) if w != g]
    expect(f"values of {len(got)} rows", not wrong, wrong[:2])
    tops = b.js("return model.files.flatMap((f) => f.rows.map((r) => r.lines.length ? [r.lines[0].name, r.lines[0].bytes] : [null, null]))")
    equal("top lines", [[f["top_function"], f["top_bytes"]] for f in said["files"] if f["device"] is not None], tops)
    timelines(b, b.js("return model.files.map((f) => [f.path, f.rows.filter((r) => r.pyramid).map((r) => [model.core.devices[r.device].name, Math.max(...r.pyramid.levels[0].active_max), r.pyramid.levels[0].active_last[r.pyramid.count - 1]])])"))
    for i, device in enumerate(names):
        b.js("app.setDevice(arguments[0])", i)
        shown = b.js("return tables.rows.filter((r) => r.self !== null).length")
        equal(f"rows of {device[:20]}", sum(f["device"] == device for f in said["files"]), shown)
    notes = b.js("return document.getElementById('summary').textContent")
    for f in said["files"]:
        if f["problem"]:
            expect(f"{f['file'][:20]} is named", f["file"] in notes, notes)
    if "--more" in flags:
        equal("drawn", 60, b.js("return document.querySelectorAll('.small-one').length"))
        b.click("#multiples-more button")
        equal("all drawn", 200, b.js("return document.querySelectorAll('.small-one').length"))
        equal("figures", 202, b.js("return figures.length"))
        expect("the note goes", b.js("return document.getElementById('multiples-more').hidden"))
    if "--hostile" in flags:
        for i in range(len(names)):
            b.js("app.setDevice(arguments[0]); document.querySelectorAll('#table tbody tr').forEach((r) => r.click()); document.querySelectorAll('.small-one').forEach((r) => r.click())", i)
        equal("nothing of the recordings became an element", 0, b.js("return document.querySelectorAll('main img, main script, head img').length"))
        expect("no dialog", b.js("return typeof window.owned === 'undefined'"))
        with open(page, "rb") as f:
            equal("scripts in the page", 3, len(re.findall(rb"<script\b", f.read())))
    b.js("document.querySelectorAll('#table td:not(.name):not(:last-child)').forEach((c) => { c.textContent = '999.99 MiB'; })")
    cut = b.js("return ['#detail', '#table', '#summary .table-wrap'].filter((id) => { const e = document.querySelector(id); return e && e.scrollWidth > e.clientWidth; })")
    if "--hostile" not in flags:
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
