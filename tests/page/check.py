#!/usr/bin/env python3
"""check.py PAGE DATABASE NAME SHOTS [--events] [--hostile] [--basic] [--says TEXT]...: opens a page in a browser and compares what it shows with the database.

--events: also compares a chosen instant and range with v_event, read by `memprof sql` ($MEMPROF). --basic: tables and looks
alone. --says: the page has this text.
Screenshots go to SHOTS/NAME-*.png."""
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time
import urllib.parse
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

failures = []


def expect(what, condition, detail=""):
    if condition:
        print("  ok   " + what)
    else:
        failures.append(what)
        print("  FAIL " + what, detail)


def equal(what, expected, got):
    expect(f"{what}: {str(expected)[:90]}", expected == got, f"got {str(got)[:300]}")


def bytes_text(value):
    size, unit = abs(value), 0
    while size >= 1023.995 and unit < 5:
        size /= 1024
        unit += 1
    number = str(int(size)) if unit == 0 else f"{size:.2f}"
    return ("\u2212" if value < 0 else "") + number + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]


def count_text(value):
    return f"{value:,}"


class Check:
    def __init__(self, page, database, name, shots, flags):
        self.page, self.database, self.name, self.shots, self.flags = os.path.abspath(page), database, name, shots, flags
        self.db = sqlite3.connect(f"file:{urllib.parse.quote(os.path.abspath(database))}?mode=ro", uri=True)
        self.db.text_factory = lambda b: b.decode("utf-8", "replace")
        self.browser = Browser()

    def sql(self, query, *args):
        return self.db.execute(query, args).fetchall()

    def shot(self, what, whole=False):
        self.browser.screenshot(os.path.join(self.shots, f"{self.name}-{what}.png"), whole)

    def settle(self, action):
        before = int(self.browser.js("return document.documentElement.dataset.settled || '0'"))
        action()
        self.browser.wait(f"Number(document.documentElement.dataset.settled || 0) > {before}", 20)

    def text(self, css):
        return self.browser.js("return document.querySelector(arguments[0]).textContent", css)

    def rows(self):
        """The table's rows: name, place, then cells."""
        return self.browser.js("""return [...document.querySelectorAll('#table tbody tr')].map((r) => [r.querySelector('.name .fn').textContent,
            (r.querySelector('.name .at') || {textContent: ''}).textContent, ...[...r.querySelectorAll('td')].slice(1).map((c) => c.textContent)])""")

    def start(self):
        b = self.browser
        b.requests()
        b.open(self.page)
        b.wait("document.documentElement.dataset.ready === 'true'")
        b.wait("document.documentElement.dataset.settled")
        paint = b.js("return performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0] || 0")
        times = b.js("return {...document.documentElement.dataset}")
        size = os.path.getsize(self.page)
        print(f"  page {size} bytes, first paint {paint:.0f} ms, timeline {times['timelineMs']} ms, ready {times['readyMs']} ms")
        expect("first paint under 1 s", 0 < paint < 1000, paint)
        expect("size under 5 MB", size < 5_000_000, size)
        self.host = self.sql("SELECT name FROM device ORDER BY device_id")[0][0]
        self.device_id = self.sql("SELECT device_id FROM device ORDER BY device_id")[0][0]

    def header(self):
        text = self.text("#summary")
        for name, peak, end, allocs in self.sql("SELECT device, peak_active_bytes, end_active_bytes, alloc_count FROM v_total WHERE kind = 'all'"):
            for value in (bytes_text(peak), bytes_text(end), count_text(allocs)):
                expect(f"header of {name} has {value}", value in text)
        command = self.sql("SELECT value FROM meta WHERE key = 'command'")[0][0]
        equal("command", command, self.text("p.command code"))
        images = self.sql("SELECT command_line, pid FROM process ORDER BY process_id")
        for line, _ in [i for i in images if i[1] == images[0][1]][-1:]: # what the first process became, as it was called
            try:
                called = shlex.split(line)[0]
            except ValueError: # a made recording may end within quotes
                called = line.split(" ")[0]
            equal("title", called.rsplit("/", 1)[-1], self.text("h1"))

    def scope_rows(self, inclusive, column, scope="line"):
        return self.sql(f"SELECT a.key_id, a.{column}, a.alloc_count FROM account a WHERE a.scope = ? AND a.inclusive = ? AND a.device_id = ? AND a.kind = 'all'",
                        scope, inclusive, self.device_id)

    def line_table(self, what, column):
        """The rows of the lines table are v_line's, largest first."""
        expected = self.sql(f"""SELECT sum({column}), sum(alloc_count), file, line FROM v_line WHERE device = ? AND kind = 'all'
            GROUP BY function, file, line, CASE WHEN function_id IS NULL THEN line_id END ORDER BY 1 DESC""", self.host)
        got = [r for r in self.rows() if r[0] != "(smaller lines)"]
        place = lambda f, l: f.rsplit("/", 1)[-1] + ":" + str(l) if f else ""
        equal(f"{what}: values", [bytes_text(r[0]) for r in expected[:len(got)]], [r[2] for r in got])
        wanted = {(bytes_text(r[0]), place(r[2], r[3])) for r in expected}
        expect(f"{what}: each row is one of v_line", all((r[2], r[1]) in wanted for r in got), [r for r in got if (r[2], r[1]) not in wanted][:3])
        return expected

    def tables(self):
        b = self.browser
        expected = self.line_table("lines at the peak", "at_peak_bytes")
        peak = self.sql("SELECT peak_active_bytes FROM total WHERE device_id = ? AND kind = 'all'", self.device_id)[0][0]
        expect("sum at the peak is the peak", self.text("#selection-text strong") == bytes_text(peak), self.text("#selection-text"))
        own = {(r[0], r[1]): r[2] for r in self.sql("SELECT file, line, max(own_peak_bytes) FROM v_line WHERE device = ? AND kind = 'all' AND own_peak_bytes IS NOT NULL AND file IS NOT NULL GROUP BY file, line HAVING count(*) = 1", self.host)}
        short = lambda f, l: f.rsplit("/", 1)[-1] + f":{l}"
        alike = Counter(short(*r) for r in self.sql("SELECT DISTINCT file, line FROM v_line WHERE device = ? AND file IS NOT NULL", self.host)) # __init__.py:1 of two packages
        places = {short(f, l): v for (f, l), v in own.items() if alike[short(f, l)] == 1}
        shown = [(r[1], r[5]) for r in self.rows() if r[1] in places]
        expect("own peaks", all(bytes_text(places[p]) == v for p, v in shown), shown[:4])
        self.settle(lambda: b.click("[data-moment=end]"))
        self.line_table("lines at the end", "end_bytes")
        self.settle(lambda: b.click("[data-moment=run]"))
        self.line_table("lines, whole run", "alloc_bytes")
        self.settle(lambda: b.click("[data-moment=peak]"))
        folded = b.js("return model.core.folded.folded_sites")
        b.click("[data-tab=function]")
        b.click('[data-sort="callees"]')
        if not folded:
            want = sorted((r[1] for r in self.scope_rows(1, "at_peak_bytes", "function")), reverse=True)
            # functions without symbols have no row in the accounts: compare those that have a name
            names = {bytes_text(v) for v in want}
            got = b.js("return [...document.querySelectorAll('#table tbody tr')].filter((r) => !model.m.functions.unknown[Number(r.dataset.key)]).map((r) => r.querySelectorAll('td')[3].textContent)")
            expect(f"functions with callees ({len(got)} rows)", all(g in names for g in got) and (not got or not want or bytes_text(want[0]) in got), (got[:5], sorted(names)[:5]))
        for tab in ("file", "module", "thread", "leak", "temporary"):
            b.click(f"[data-tab={tab}]")
            expect(f"table of {tab}s", b.js("return !!document.querySelector('#table table')"))
            if tab == "leak":
                ends = self.sql("SELECT end_bytes FROM v_leak WHERE device = ? ORDER BY 1 DESC", self.host)
                rows = b.js("return Number(document.querySelector('#table table').dataset.rows)")
                expect("leaks: at most a row for each stack", rows <= len(ends) and (rows > 0) == (len(ends) > 0), (rows, len(ends)))
                total = self.sql("SELECT sum(end_bytes) FROM v_leak WHERE device = ?", self.host)[0][0] or 0
                equal("leaks: sum", total, b.js("return tables.rows.reduce((t, r) => t + r.self, 0)"))
            if tab == "thread":
                want = self.sql("SELECT at_peak_bytes FROM v_thread WHERE device = ? AND kind = 'all' ORDER BY 1 DESC LIMIT 5", self.host)
                equal("threads at the peak", [bytes_text(r[0]) for r in want], [r[2] for r in self.rows()][:5])
        b.click("[data-tab=line]")
        if expected:
            self.row(expected)

    def row(self, expected):
        b = self.browser
        b.click("#table tbody tr")
        expect("a row shows its stacks", b.js("return document.querySelectorAll('#detail .frames li').length") > 0)
        b.click('[data-sort="blocks"]')
        values = b.js("return [...document.querySelectorAll('#table tbody tr')].map((r) => Number(r.querySelectorAll('td')[2].textContent.replace(/,/g, '')))")
        expect("sorting by blocks", values == sorted(values, reverse=True), values[:5])
        b.click('[data-sort="self"]')
        name = self.rows()[0][0]
        b.type("#table-filter", name[:12])
        expect("filter keeps the row", name in [r[0] for r in self.rows()], self.rows()[:2])
        fewer = b.js("return Number(document.querySelector('#table table').dataset.rows)")
        every = b.js("return tables.rows.length")
        expect("filter leaves fewer rows", 1 <= fewer <= every, (fewer, every))
        b.js("const f = document.getElementById('table-filter'); f.value = ''; f.dispatchEvent(new Event('input'))")

    def events_between(self, low, high):
        """(allocated, left, grown) of the host's events in (low, high], by the program's own sql."""
        query = f"""SELECT coalesce(sum(CASE WHEN op IN ('alloc', 'realloc') THEN size_bytes END), 0),
            coalesce(sum(CASE WHEN op IN ('free', 'realloc_free', 'end') THEN size_bytes END), 0) FROM v_event
            WHERE device = '{self.host}' AND time_ns > {low} AND time_ns <= {high}"""
        out = subprocess.run([os.environ["MEMPROF"], "sql", self.database, query], check=True, capture_output=True, text=True).stdout
        numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", out.strip().splitlines()[-1])]
        return numbers

    def instants(self):
        b = self.browser
        slowest = 0.0
        for x in (0.3, 0.62, 0.9):
            self.settle(lambda: b.pointer(".panel canvas", [(x, 0.6)]))
            slowest = max(slowest, float(b.js("return document.documentElement.dataset.selectMs")))
            instant = b.js("return app.selection.moment === 'instant' ? model.instants.time[app.selection.instant] : -1")
            if instant < 0 or "--events" not in self.flags:
                continue
            allocated, left = self.events_between(-1, instant)
            equal(f"live at {instant} ns", bytes_text(allocated - left), self.text("#selection-text strong"))
        expect("click to table under 100 ms", slowest < 100, slowest)
        print(f"  slowest selection {slowest} ms")
        self.settle(lambda: b.pointer(".panel canvas", [(0.35, 0.5), (0.5, 0.5), (0.7, 0.5)]))
        equal("a drag selects a range", "range", b.js("return app.selection.moment"))
        if "--events" in self.flags:
            low, high = b.js("return [model.instants.time[app.selection.from], model.instants.time[app.selection.to]]")
            allocated, left = self.events_between(low, high)
            equal("allocated in the range", bytes_text(allocated), self.text("#selection-text strong"))
            grown = allocated - left
            expect("grew by", ("+" if grown > 0 else "") + bytes_text(grown) in self.text("#selection-text"), self.text("#selection-text"))
        self.settle(lambda: b.click("[data-moment=peak]"))

    def zoom(self):
        b = self.browser
        whole = b.js("return timeline.whole")
        b.hover(".panel canvas", 0.5, 0.5)
        for _ in range(4):
            b.wheel(".panel canvas", 0.5, 0.5, -240)
        span = b.js("return timeline.view.to - timeline.view.from")
        expect("the wheel zooms in", span < whole * 0.6, span / whole)
        b.js("document.querySelector('.panel canvas').focus()")
        b.keys("\ue014")  # right
        expect("keys move the cursor", b.js("return timeline.cursor !== null"))
        b.keys("0")
        equal("0 shows the whole run", whole, b.js("return timeline.view.to - timeline.view.from"))
        self.settle(lambda: b.keys("p"))
        equal("p goes to the peak", "peak", b.js("return app.selection.moment"))
        b.click("[data-tool=zoom]")
        b.pointer(".panel canvas", [(0.3, 0.5), (0.4, 0.5), (0.6, 0.5)])
        expect("a drag zooms", b.js("return timeline.view.to - timeline.view.from") < whole * 0.5)
        b.click("[data-tool=pan]")
        before = b.js("return timeline.view.from")
        b.pointer(".panel canvas", [(0.5, 0.5), (0.55, 0.5), (0.6, 0.5)])
        expect("a drag pans", b.js("return timeline.view.from") < before)
        b.click("#zoom-reset")
        b.click("[data-tool=select]")
        lost = b.js("""
            const lost = [];
            for (const panel of timeline.panels) {
              const peak = model.peak(panel.device, 'active');
              if (!peak) continue;
              for (let span = timeline.whole; span > 2000; span /= 1.7) {
                timeline.show(peak.time - span * 0.37, peak.time + span * 0.63);
                const v = timeline.visible(panel.pyramid, 1100);
                let max = 0;
                for (let i = v.first; i <= v.last; i++) max = Math.max(max, v.l.active_max[i]);
                if (max !== peak.value) lost.push([panel.pyramid.device, span, max, peak.value]);
              }
            }
            timeline.show(0, timeline.whole);
            return lost;""")
        expect("no zoom loses the peak", not lost, lost[:3])
        frame = b.js_async("""
            const done = arguments[0]; let n = 0, spent = 0;
            (function step() {
              const t = performance.now();
              timeline.zoom(n < 30 ? 0.9 : 1.11, timeline.whole * 0.4);
              drawNow();
              spent += performance.now() - t;
              if (++n < 60) requestAnimationFrame(step); else { timeline.show(0, timeline.whole); done(spent / n); }
            })();""")
        print(f"  {frame:.1f} ms a frame while zooming")
        expect("zooming at 60 frames a second", frame < 16.7, frame)

    def flame(self):
        b = self.browser
        peak = self.sql("SELECT peak_active_bytes FROM total WHERE device_id = ? AND kind = 'all'", self.device_id)[0][0]
        equal("flame graph's root", peak, b.js("return flame.root.value"))
        needle = b.js("return flame.children(flame.root)[0].name")[:20]
        b.type("#flame-search", needle)
        expect("search says its share", "Found in" in self.text("#flame-found"), needle)
        b.click("[data-flame=up]")
        equal("inverted, the root is the same", peak, b.js("return flame.root.value"))
        leaf = b.js("return flame.children(flame.root).reduce((t, k) => t + k.value, 0)")
        equal("by callee, all is accounted for", peak, leaf)
        b.click("[data-flame=down]")
        b.pointer(".flame-wrap", [(0.2, 30 / b.js("return document.querySelector('.flame-wrap').clientHeight"))])
        expect("a click zooms", b.js("return flame.zoomed !== flame.root"))
        b.js("document.getElementById('flame-canvas').focus()")
        b.keys("\ue00c")  # escape
        expect("Escape goes back", b.js("return flame.zoomed === flame.root"))
        b.keys("\ue015\ue015")  # down
        expect("arrows tell where they are", len(self.text("#flame-status")) > 5)
        for value in ("alloc_bytes", "alloc_count", "temporary_count", "end_bytes"):
            b.js("const s = document.getElementById('flame-measure'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", value)
            want = self.sql(f"SELECT {'end_active_bytes' if value == 'end_bytes' else value} FROM total WHERE device_id = ? AND kind = 'all'", self.device_id)[0][0]
            equal(f"flame graph by {value}", want, b.js("return flame.root.value"))
        b.js("const s = document.getElementById('flame-measure'); s.value = 'selection'; s.dispatchEvent(new Event('change'))")
        b.js("const s = document.getElementById('flame-search'); s.value = ''; s.dispatchEvent(new Event('input'))")

    def links(self):
        b = self.browser
        b.js("const more = document.querySelector('#findings button'); if (more) more.click()")
        n = b.js("return document.querySelectorAll('.finding a[href^=\"#line\"]').length")
        if n:
            self.settle(lambda: b.click('.finding a[href^="#line"]'))
            expect("a finding leads to its line", b.js("return tables.chosen && tables.chosen.scope === 'line'"))
        expect("findings end", b.js("return document.querySelectorAll('.finding').length") > 0)

    def looks(self):
        b = self.browser
        b.js("scrollTo(0, 0)")
        light = b.js("return getComputedStyle(document.body).backgroundColor")
        time.sleep(0.2)
        self.shot("light", True)
        b.click('[data-theme-choice="dark"]')
        dark = b.js("return getComputedStyle(document.body).backgroundColor")
        expect("the switch changes the theme", light != dark, (light, dark))
        time.sleep(0.2)
        self.shot("dark", True)
        b.click('[data-theme-choice="auto"]')
        b.scheme("dark")
        equal("the system's dark scheme is followed", dark, b.js("return getComputedStyle(document.body).backgroundColor"))
        b.scheme("light")
        equal("nothing sticks out at 1280 pixels", 1280, b.js("return document.documentElement.scrollWidth"))
        b.resize(390, 844, 1, True)
        time.sleep(0.4)
        self.shot("phone", True)
        wide = b.js("""const out = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 390.5 &&
                ![...function*(p) { while ((p = p.parentElement)) yield p }(e)].some(p => getComputedStyle(p).overflowX != 'visible'))
            return out.slice(-3).map(e => `${e.tagName}.${e.className}#${e.id} ${e.getBoundingClientRect().right} ${e.textContent.slice(0, 40)}`)""")
        expect("nothing sticks out on a phone", b.js("return document.documentElement.scrollWidth") == 390, wide)
        b.resize(1280, 900)
        unnamed = b.js("return [...document.querySelectorAll('canvas')].filter((c) => !c.hidden && !c.closest('[hidden]') && !c.getAttribute('aria-label')).map((c) => c.id)")
        expect("every figure has a text", not unnamed, unnamed)
        expect("the timeline is also a table", b.js("return document.querySelectorAll('#timeline-table td').length") > 20)

    def hostile(self):
        b = self.browser
        equal("nothing of the recording became an element", 0, b.js("return document.querySelectorAll('main img, main script').length"))
        expect("no dialog", b.js("return typeof window.owned === 'undefined'"))
        with open(self.page, "rb") as f:
            text = f.read()
        equal("scripts in the page", 7, len(re.findall(rb"<script\b", text)))
        expect("one policy, without the network", b"default-src 'none'" in text and b"connect-src" not in text)
        equal("attributes made of data that run", 0, b.js("return [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length"))

    def end(self):
        errors = self.browser.console()
        expect("no console error", not errors, errors[:3])
        others = [u for u in self.browser.requests() if not u.startswith("data:") and not u.startswith("file://" + urllib.parse.quote(self.page))]
        expect("no request", not others, others[:3])

    def run(self):
        try:
            self.start()
            self.header()
            for text in [t for f, t in zip(self.flags, self.flags[1:]) if f == "--says"]:
                expect("says: " + text, text in self.browser.js("return document.querySelector('main').textContent"))
            self.tables()
            if "--basic" not in self.flags:
                self.instants()
                self.zoom()
                self.flame()
                self.links()
            if "--hostile" in self.flags:
                self.hostile()
            self.looks()
            self.end()
        finally:
            self.browser.close()


def main():
    page, database, name, shots, *flags = sys.argv[1:]
    os.makedirs(shots, exist_ok=True)
    Check(page, database, name, shots, flags).run()
    if failures:
        print(f"{len(failures)} failed: " + "; ".join(failures))
        sys.exit(1)


main()
