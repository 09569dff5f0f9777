"""Checks of what only some recordings have: several devices or processes, segments, resident pages, out-of-memory errors."""
import csv
import json
import os
import re
import subprocess
import time
import urllib.parse

from shown import Shown, bytes_text, count_text, equal, expect


class Recorded(Shown):
    def devices(self):
        b = self.browser
        names = [r[0] for r in self.sql("SELECT name FROM device ORDER BY device_id")]
        equal("a button a device", names, b.js("return [...document.querySelectorAll('#device-switch button')].map((x) => x.textContent)"))
        for name in reversed(names):
            i = names.index(name)
            if b.js("return app.device") != i:
                self.settle(lambda: b.click(f'#device-switch [data-device="{i}"]'))
            self.settle(lambda: b.click("[data-moment=peak]"))
            self.follows(name, i)
            self.layers(name, i)
            self.transfers(name)
        if "--hands" in self.flags:
            self.switches()

    def switches(self):
        """By a button, by a panel's name, by a click on a panel."""
        b = self.browser
        self.settle(lambda: b.click("[data-moment=end]"))
        self.settle(lambda: b.click('#device-switch [data-device="1"]'))
        equal("another device, the same moment", [1, "end"], b.js("return [app.device, app.selection.moment]"))
        self.settle(lambda: b.click(".panel:nth-child(2) .panel-name"))
        second = b.js("return timeline.panels[1].pyramid.device")
        equal("the panel's name selects its device", second, b.js("return model.core.devices[app.device].name"))
        self.settle(lambda: b.pointer(".panel:nth-child(2) canvas", [(0.5, 0.6)]))
        equal("a click on a panel stays on it", second, b.js("return model.core.devices[app.device].name"))

    def follows(self, name, i):
        """Every part of the page is of this device, at its peak."""
        b = self.browser
        peak, ns = self.sql("SELECT t.peak_active_bytes, t.peak_active_ns FROM total t JOIN device d USING(device_id) WHERE d.name = ? AND t.kind = 'all'", name)[0]
        equal(f"{name}: sum of the tables", bytes_text(peak), self.text("#selection-text strong"))
        rows = b.js("return tables.rows.reduce((t, r) => t + r.self, 0)")
        equal(f"{name}: rows of the table", peak, rows)
        equal(f"{name}: flame graph", peak, b.js("return flame.root.value"))
        expect(f"{name}: every heading", b.js("return [...document.querySelectorAll('.of-device')].every((e) => e.textContent === ' ' + arguments[0])", name))
        equal(f"{name}: its panel stands out", [name], b.js("return [...document.querySelectorAll('.panel.chosen .panel-name')].map((e) => e.textContent)"))
        for note in ("growth-note", "blocks-note"):
            expect(f"{name}: {note}", f" {name}" in self.text("#" + note), self.text("#" + note))
        equal(f"{name}: lines over time are its own", True, b.js("return growth.layers.every((l) => l.line < 0 || model.m.sites.line.some((x, k) => x === l.line && model.m.sites.device[k] === app.device))"))
        segments = self.sql("SELECT count(*) FROM segment g JOIN device d USING(device_id) WHERE d.name = ? AND alloc_ns <= ? AND coalesce(free_ns, 1 << 62) > ? AND process_id NOT IN (SELECT process_id FROM process WHERE end_ns < ?)", name, ns, ns, ns)[0][0]
        shown = b.js("return document.getElementById('segments').hidden ? 0 : blocks.segments.length")
        equal(f"{name}: segments at the peak", segments, shown)
        expect(f"{name}: in the address", b.js("return location.hash").startswith("#device=" + urllib.parse.quote(name, safe=":") + "&at=peak"), b.js("return location.hash"))

    def layers(self, name, i):
        """At the peak and at the end, against the events and the driver's samples."""
        b = self.browser
        rows = b.js("return layers.rows(app.device).map(([label, time, l]) => [label, time, l])")
        equal(f"{name}: instants of the layers", ["At the peak", "At the end"], sorted((r[0] for r in rows), reverse=True))
        totals = self.sql("SELECT t.peak_active_bytes, t.end_active_bytes FROM total t JOIN device d USING(device_id) WHERE d.name = ? AND t.kind = 'all'", name)[0]
        several = self.sql("SELECT count(DISTINCT end_ns) > 1 FROM process WHERE end_kind <> 'exec'")[0][0]
        last = several and [r[0] for r in self.sql("SELECT active_bytes FROM v_layer WHERE device = ? AND instant = 'last'", name)]
        samples = self.sql("SELECT s.time_ns, s.used_bytes, s.reserved_bytes, s.total_bytes FROM device_sample s JOIN device d USING(device_id) WHERE d.name = ? ORDER BY 1", name)
        drawn = b.js("return [...document.querySelectorAll('.layer-row')].map((r) => r.textContent)")
        for (label, time_ns, l), text in zip(rows, drawn):
            equal(f"{name} {label}: active", last[0] if last and label == "At the end" else totals[label != "At the peak"], l["active"])
            expect(f"{name} {label}: drawn", bytes_text(l["active"]) in text and bytes_text(l["reserved"]) in text, text)
            if i and label == "At the peak":
                query = f"SELECT coalesce(sum(CASE op WHEN 'segment_alloc' THEN size_bytes WHEN 'segment_free' THEN -size_bytes END), 0) AS n FROM v_event WHERE device = '{name}' AND time_ns <= {time_ns} AND process_id NOT IN (SELECT process_id FROM process WHERE end_ns < {time_ns})"
                said = subprocess.run([os.environ["MEMPROF"], "sql", self.database, "--csv", query], check=True, capture_output=True, text=True).stdout
                reserved = int(said.strip().splitlines()[-1])
                if not self.sql("SELECT 1 FROM v_total WHERE device = ? AND kind = 'pool' AND alloc_count > 0", name):
                    expect(f"{name} {label}: reserved {reserved}", l["reserved"] >= reserved if l["about"] & 2 else l["reserved"] == reserved, l)
            if not i:
                looked = label == "At the peak" and l["usedOfLook"] # at the pages, at an instant of its own: resident()
                marked = "" if looked else "\u2248 "
                expect(f"host {label}: its mark is drawn", l["used"] is None or f"RSS {marked}{bytes_text(l['used'])}" in text, text)
            if not i and label == "At the end":
                rss = self.sql("SELECT rss_last_bytes FROM timeline WHERE device_id = 0 AND level = 0 AND rss_last_bytes > 0 ORDER BY time_ns DESC LIMIT 1")
                equal("host at the end: RSS", rss[0][0] if rss else None, l["used"])
            if i and not samples:
                expect(f"{name} {label}: not sampled", l["used"] is None and "not sampled: no NVML" in text, text)
            if i and samples:
                mine = [s for s in samples if s[0] == l["usedAt"]]
                equal(f"{name} {label}: the sample", 1, len(mine))
                equal(f"{name} {label}: not tracked", max(0, mine[0][1] - mine[0][2]), l["untracked"])
                equal(f"{name} {label}: used", l["reserved"] + l["untracked"], l["used"])
                equal(f"{name} {label}: free", mine[0][3] - l["used"], l["free"])
        if i:
            capacity = self.sql("SELECT max(total_bytes) FROM device WHERE name = ?", name)[0][0]
            panel = b.js("const p = timeline.panelOf(app.device); return p ? [p.pyramid.total, !!p.box.querySelector('[data-series=total]'), !!p.box.querySelector('[data-series=rss]')] : null")
            used = any(s[1] for s in samples) # a fast program may have ended before the first sample; what is 0 has no line
            equal(f"{name}: lines of capacity and use", [capacity, True, used], panel)

    def resident(self):
        """What was asked for and there, against the looks at the program's pages."""
        b = self.browser
        wanted = self.sql("SELECT what, resident_bytes FROM v_resident ORDER BY 1")
        equal("what was on the pages", [list(w) for w in wanted], sorted(b.js("return model.core.resident.rows.map((r) => [r.what, r.bytes])")))
        untouched = self.sql("SELECT untouched_bytes FROM v_resident WHERE what = 'blocks'")[0][0]
        text = self.text("#layers-resident")
        expect("drawn", all(bytes_text(v) in text for v in [untouched] + [w[1] for w in wanted if w[1]]), text)
        blocks = dict(wanted)["blocks"]
        # what was not tracked is what the look found, with its instant, as the terminal prints both
        said = subprocess.run([os.environ["MEMPROF"], "report", "--by", "line", "--sort", "resident", self.database], check=True, capture_output=True, text=True).stdout
        at = re.search(r"^Resident at ([^,]*),", said, re.M).group(1)
        outside = sum(bytes for what, bytes in wanted if what in ("file", "anonymous", "stack", "memprof", "shared"))
        expect("not tracked, in the terminal", f"; {bytes_text(outside)} of it was not tracked (" in said, said)
        listed = json.loads(subprocess.run([os.environ["MEMPROF"], "report", "--json", self.database], check=True, capture_output=True, text=True).stdout)
        equal("not tracked, in JSON", outside, listed["untracked_bytes"])
        equal("not tracked, in the view", [(outside,)], self.sql("SELECT untracked_bytes FROM v_layer WHERE device = 'host' AND untracked_bytes IS NOT NULL"))
        rows = b.js("return [...document.querySelectorAll('.layer-row')].map((r) => r.innerText.replace(/\\s+/g, ' '))")
        expect("not tracked, of the look", f"Not tracked {bytes_text(outside)} " in rows[-1] and f"Asked for and there {at} " in rows[-1], rows)
        expect("at the peak, which it speaks for", f"Not tracked {bytes_text(outside)} at {at} " in rows[0] + " ", rows)
        # RSS and the share are of that look, too, and not of a sample at another instant
        present = self.sql("SELECT sum(present_bytes) FROM resident_scan WHERE is_peak")[0][0]
        expect("RSS at the peak, of the look", f"RSS {bytes_text(present)} at {at} " in rows[0] + " ", rows)
        share = re.search(r"Not tracked \S+ \w+ at \S+ \w+ (\S+) %", rows[0])
        expect("its share", share and abs(float(share.group(1)) - 100 * outside / present) < 0.6, (rows[0], outside, present))
        equal("sum of the sites", blocks, b.js("return model.m.sites.resident_bytes.reduce((t, x) => t + x, 0)"))
        self.settle(lambda: b.click("[data-moment=peak]"))
        b.js("tables.open('function')")
        equal("sum of the table", blocks, b.js("return tables.rows.reduce((t, r) => t + r.resident, 0)"))
        look = b.js("return 'Resident\\nat ' + instant(arguments[0])", self.sql("SELECT min(time_ns) FROM resident_scan WHERE is_peak")[0][0])
        expect("its column, with its instant", look in self.text("#table thead"), (look, self.text("#table thead")))

    def apart(self):
        """Several processes, each with an end of its own: what was live at their ends, and how long their blocks lasted."""
        b = self.browser
        processes = self.sql("SELECT count(*), max(end_ns) FROM process WHERE end_kind <> 'exec'")[0]
        note = f"What each of {processes[0]} processes held at its own end is 81.00 MiB in all, not at one instant."
        row = b.js("return [...document.querySelectorAll('#layers-rows .layer-row')].filter((r) => r.textContent.startsWith('At the end')).map((r) => r.textContent)")
        expect("whose the layers at the end are", len(row) == 1 and note in row[0], row)
        expect("the same beside the table", note in self.text("#layers-table"), self.text("#layers-table"))
        last = self.sql("SELECT time_ns, active_bytes, reserved_bytes, used_bytes, NULL FROM v_layer WHERE device = 'host' AND instant = 'last'")[0]
        end = b.js("return layers.rows(app.device).filter((r) => r[0] === 'At the end').map((r) => [r[1], r[2].active, r[2].reserved, r[2].used, r[2].untracked])")
        equal("the layers at the end are of one instant", [list(last)], end)
        equal("of which only the last process is there", 1 << 20, end[0][1])
        expect("each layer holds the one before", end[0][1] <= end[0][2] <= end[0][3], end)
        want = self.sql("SELECT CASE WHEN free_ns IS NULL AND p.end_ns < ? THEN p.end_ns ELSE free_ns END FROM block JOIN process p USING(process_id) ORDER BY 1", processes[1])
        equal("blocks last as long as their process", [w[0] for w in want if w[0]], b.js("return blocks.shapes.map((s) => s.to).filter((t) => t < timeline.whole).sort((x, y) => x - y)"))
        expect("they are never above the peak", b.js("return Math.max(...blocks.outline.map((o) => o[1]))") <= self.sql("SELECT max(peak_active_bytes) FROM total")[0][0])

    def ended(self):
        """Of a Python program that is one process: which instants the layers at its end are of."""
        query = "SELECT sum(torn_down_bytes), sum(end_bytes) FROM v_leak WHERE device = 'host'"
        said = subprocess.run([os.environ["MEMPROF"], "sql", self.database, "--csv", query], check=True, capture_output=True, text=True).stdout
        torn, end = map(int, said.split()[-1].split(","))
        expect("it freed most of what was live at the end", torn > end // 2, (torn, end))
        row = self.browser.js("return [...document.querySelectorAll('#layers-rows .layer-row')].filter((r) => r.textContent.startsWith('At the end')).map((r) => r.textContent)")
        note = f"Active is of where Python began to take itself down, which then freed {bytes_text(torn)} of it; all else is of the end of the run."
        expect("which instant active is of", len(row) == 1 and note in row[0], row)
        expect("the same beside the table", note in self.text("#layers-table"), self.text("#layers-table"))
        rss = self.sql("SELECT rss_last_bytes FROM timeline WHERE device_id = 0 AND level = 0 AND rss_last_bytes > 0 ORDER BY time_ns DESC LIMIT 1")[0][0]
        expect("RSS is of a sample", f"RSS \u2248 {bytes_text(rss)}" in row[0], row)
        said = self.browser.js("return [...document.querySelectorAll('#layers-rows .layer-figures li')].map((e) => e.dataset.says).filter((s) => s && s.includes('the last sample before the end')).map((s) => s.split(':')[0])")
        equal("which is said at the end alone", ["RSS"], said)

    def child(self):
        """Of a Python program with a child that ended before it: what its interpreter freed is not the child's."""
        query = "SELECT sum(torn_down_bytes), sum(end_bytes) FROM v_leak WHERE device = 'host'"
        said = subprocess.run([os.environ["MEMPROF"], "sql", self.database, "--csv", query], check=True, capture_output=True, text=True).stdout
        torn, end = map(int, said.split()[-1].split(","))
        expect("it freed most of what was live at the end", torn > end // 2, (torn, end))
        note = f"The last instant with a sample. Live at the end is {bytes_text(end)} in all: with {bytes_text(torn)} that Python freed as it took itself down, and what processes that had ended before held then."
        row = self.browser.js("return [...document.querySelectorAll('#layers-rows .layer-row')].filter((r) => r.textContent.startsWith('At the end')).map((r) => r.textContent)")
        expect("whose the rest is", len(row) == 1 and note in row[0], row)

    def alone(self):
        """A child that was gone at the peak and at the end: no word of pages that are counted in two processes."""
        b = self.browser
        expect("the RSS counts them again", b.js("return model.core.rss_again"))
        self.settle(lambda: b.click("[data-moment=peak]"))
        equal("but not at the instants shown", None, b.js("return document.getElementById('layers-again')"))

    def transfers(self, name):
        b = self.browser
        want = self.sql("SELECT sum(transfer_bytes), direction, sum(transfer_count) FROM v_transfer WHERE device = ? GROUP BY direction, function, file, line ORDER BY 1 DESC, 3 DESC", name)
        equal(f"{name}: transfers", bool(want), not b.js("return document.querySelector('[data-tab=transfer]').hidden"))
        if not want:
            return
        b.click("[data-tab=transfer]")
        equal(f"{name}: {len(want)} lines that copy", sorted((bytes_text(w[0]), w[1], count_text(w[2])) for w in want), sorted((r[2], r[3], r[4]) for r in self.rows()))
        b.click("#table tbody tr")
        expect("a line that copies", "Direction" in self.text("#detail"))
        b.click("[data-tab=line]")

    def addresses(self):
        """The address has the whole state: a page that is opened with it, or gets it later, shows the same. Each kind of it is opened once."""
        b = self.browser
        names = [r[0] for r in self.sql("SELECT name FROM device ORDER BY device_id")]
        state = "return [model.core.devices[app.device].name, app.selection.moment, app.kind, tables.chosen, location.hash]"
        for number, name in enumerate(names):
            quoted = urllib.parse.quote(name, safe=":")
            for kind, what in enumerate((f"#device={quoted}&at=end", f"#device={quoted}&time=1000", f"#device={quoted}&at=run&line=0")):
                if kind == number % 3:
                    b.open("/dev/null")
                    b.open(self.page + what)
                    b.wait("document.documentElement.dataset.settled")
                else:
                    self.settle(lambda: b.js("location.hash = arguments[0]", what))
                moment = {"at=end": "end", "time=1000": "instant"}.get(what.split("&")[1], "run")
                got = b.js(state)
                equal(f"{'opened with' if kind == number % 3 else 'moved to'} {what}", [name, moment, what], [got[0], got[1], got[4]])
                expect("the row in it is chosen", ("line=" in what) == bool(got[3]), got)
        b.js("location.hash = '#timeline'")
        equal("a section's address changes nothing", "run", b.js("return app.selection.moment"))
        for junk in ("#device=none&at=x&line=1e9", "#device=%FF&time=1e99&from=a&to=b", "#at=", "#line=-1&kind=%00"):
            b.js("location.hash = arguments[0]", junk)
        time.sleep(0.3)
        expect("addresses of no sense", b.js("return app.device >= 0 && app.device < model.core.devices.length && !!app.selection"))
        self.settle(lambda: b.js("location.hash = arguments[0]", "#device=" + urllib.parse.quote(names[0], safe=":") + "&at=peak"))

    def segments(self):
        """What is live in each at the end, where blocks begin in one and go on in the next."""
        b = self.browser
        self.settle(lambda: b.click("[data-moment=end]"))
        with open(self.told("--segments")[0], newline="") as f:
            rows = [[int(r["size_bytes"]), int(r["live_bytes"]), int(r["live_count"])] for r in csv.DictReader(f)]
        equal("what is live in each segment", sorted(rows), sorted(b.js("return blocks.segments.map((g) => [g.segment[BLOCK.SIZE], g.used, g.inside.length])")))

    def failure(self):
        """The last out-of-memory error: its figures, who held the rest, and that choosing another one moves the page."""
        b = self.browser
        with open(self.told("--failure")[0], newline="") as f:
            lines = sorted(((int(r["live_bytes"]), r["function"]) for r in csv.DictReader(f) if int(r["live_bytes"]) > 0), reverse=True)
        ooms = self.sql("SELECT o.time_ns, o.size_bytes, o.active_bytes, o.device_free_bytes, o.device_total_bytes, o.device FROM v_oom o WHERE NOT is_handled ORDER BY o.time_ns")
        for n in (len(ooms) - 1, 0):
            time_ns, size, active, free, total, device = ooms[n]
            if b.js("return [failures.shown, app.selection.moment, app.selection.asked]") != [n, "instant", time_ns]:
                self.settle(lambda: b.click(f'[data-failure="{n}"]'))
            text = self.text("#failures-detail")
            for value in (size, active, free, total):
                expect(f"failure {n}: {bytes_text(value)}", bytes_text(value) in text, text)
            equal("the page is at that instant", [device, time_ns], b.js("return [model.core.devices[app.device].name, app.selection.asked]"))
            equal("what was live then", bytes_text(active), self.text("#selection-text strong"))
            equal("the button of that moment", "true", b.js("return document.getElementById('moment-failure').getAttribute('aria-pressed')"))
            if n:
                got = b.js("return [...document.querySelectorAll('.failure-lines li')].map((li) => [li.querySelector('.value').textContent.split(',')[0], li.querySelector('.fn').textContent])")
                equal("lines live then", [bytes_text(v) for v, _ in lines[:6]], [g[0] for g in got])
                expect("their functions", all(fn.split("(")[0] in g[1] for (_, fn), g in zip(lines, got)), (lines, got))
                expect("the stack that asked", b.js("return document.querySelectorAll('#failures-detail .frames li').length") > 1)
        b.click(".failure-lines button")
        expect("a line leads to its row", b.js("return tables.chosen && tables.chosen.scope === 'line'"))
