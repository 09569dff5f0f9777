#!/usr/bin/env python3
"""check.py PAGE DATABASE NAME SHOTS [FLAG]...: opens a page in a browser and compares what it shows with the database.

--alone                 a child was gone at all that is shown
--addresses             the page's address has its state, for each device
--apart                 of processes that end one after another
--basic                 the page as it opens, its tables, and a row: not instants and other widths (but with --pictures or
                        --hostile), nor what hands do
--devices               everything follows each device in turn
--ended                 of a Python program that is one process: the layers at its end
--child                 of one with a child that ended before it
--events                a chosen instant and range against v_event, too, as `memprof sql` ($MEMPROF) has it
--failure CSV           of the last out-of-memory error, with what `report --at` said of its instant
--hands                 what a pointer, the wheel and keys do to the timeline, the tables and the flame graph, and themes:
                        it is of the page's scripts, so pages that have something else to offer to them have it
--hostile               nothing of the recording became an element
--limits                how long a click and a frame take
--opens FORK FILE:LINE  of a known program, where the flame graph and the source open
--pictures              of the page, its dark scheme, and a phone's
--resident              what was on the pages
--same-sites            but for its rows of segments the recording is another one's that has its own check: not what is
                        made of sites
--says TEXT             the page has this text
--segments CSV          live bytes and blocks of each, as `report --segments` has them
Screenshots go to SHOTS/NAME-*.png."""
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.parse
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_hands import Hands  # noqa: E402
from shown import bytes_text, count_text, equal, expect, failures  # noqa: E402


class Check(Hands):
    def start(self):
        b = self.browser
        b.requests()
        opened = b.processor_ms(lambda: (b.open(self.page), b.wait("document.documentElement.dataset.ready === 'true'"),
                                         b.wait("document.documentElement.dataset.settled")), "TaskDuration")
        paint = b.wait("performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]")
        times = b.js("return {...document.documentElement.dataset}")
        size = os.path.getsize(self.page)
        print(f"  page {size} bytes, first paint {paint:.0f} ms, timeline {times['timelineMs']} ms, ready {times['readyMs']} ms, of "
              f"which {opened:.0f} ms of the processor")
        most = int(os.environ.get("READY_MS", "1000"))
        expect(f"painted, and ready in {most} ms of the processor", paint > 0 and opened < most, (paint, opened))
        expect("size under 5 MB", size < 5_000_000, size)
        devices = self.sql("SELECT d.name, d.device_id, coalesce(t.peak_active_bytes, 0), coalesce(t.alloc_count, 0) FROM device d LEFT JOIN total t ON t.device_id = d.device_id AND t.kind = 'all' ORDER BY 2")
        failed = self.sql("SELECT device_id, time_ns FROM v_oom JOIN device ON name = device WHERE NOT is_handled ORDER BY time_ns DESC, oom_id DESC LIMIT 1")
        gpus = sorted((d for d in devices if d[0].startswith("cuda:") and d[2] > 0), key=lambda d: (-d[2], d[1]))
        opens = [d for d in devices if failed and d[1] == failed[0][0]] or gpus or [d for d in devices if d[3] > 0] or devices
        self.host, self.device_id = opens[0][:2]  # whatever it is: the device that the page opens on
        equal("opens on", self.host, b.js("return model.core.devices[app.device].name"))
        equal("opens at", "instant" if failed else "peak", b.js("return app.selection.moment"))
        if failed:
            equal("where memory ran out last", failed[0][1], b.js("return app.selection.asked"))
            self.settle(lambda: b.click("[data-moment=peak]"))

    def header(self):
        text = self.text("#summary")
        for name, peak, end, allocs in self.sql("SELECT device, peak_active_bytes, end_active_bytes, alloc_count FROM v_total WHERE kind = 'all'"):
            for value in (bytes_text(peak), bytes_text(end), count_text(allocs)):
                expect(f"header of {name} has {value}", value in text)
        command = self.sql("SELECT value FROM meta WHERE key = 'command'")[0][0]
        equal("command", command, self.text(".command code"))
        images = self.sql("SELECT command_line, pid FROM process ORDER BY process_id")
        for line, _ in [i for i in images if i[1] == images[0][1]][-1:]: # what the first process became, as it was called
            try:
                words = shlex.split(line)
            except ValueError: # a made recording may end within quotes
                words = line.split(" ")
            is_script = re.fullmatch(r"(.*/)?(python[\d.]*|(ba|da)?sh)", words[0]) and len(words) > 1 and not words[1].startswith("-")
            equal("title", words[1 if is_script else 0].rsplit("/", 1)[-1], self.text("h1"))

    def figures(self):
        """Wide numbers, too, stand in one line at 1280 pixels."""
        b = self.browser
        tops = """const line = document.querySelector('.numbers .device'), divs = line ? [...line.querySelectorAll('div')] : [];
            const tops = () => new Set(divs.map((d) => Math.round(d.getBoundingClientRect().bottom / 8))).size;
            const one = divs.some((d) => d.textContent.includes('different times')) ? 1 : tops(), html = line ? line.innerHTML : '';
            const big = [null, '1001.55 MiB <span class="small">at 17.277 s, 188,563 blocks</span>', '&gt;= 1001.70 MiB <span class="small">at 17.269 s</span>',
                '1001.12 MiB <span class="small">145,018 blocks</span>', '22,512,142 <span class="small">101.16 GiB</span>', '5,570,223 <span class="small">22.7 %</span>'];
            divs.forEach((d, i) => { if (big[i]) d.querySelector('dd').innerHTML = big[i]; });
            const large = tops();
            if (line) line.innerHTML = html;
            return [one, large];"""
        if b.js("return innerWidth") >= 1200 and b.js("return app.device >= 0 && model.core.devices[app.device].name.length <= 7"):
            expect("a device's figures are in one line", max(b.js(tops)) <= 1, b.js(tops))

    def look(self):
        """What a reader sees first, at 1280x900, before anything is chosen."""
        b = self.browser
        b.js("scrollTo(0, 0)")
        b.drawn()
        blank = b.js("return figures.filter((f) => f.dirty && f.canvas.getBoundingClientRect().width).map((f) => f.canvas.id || f.canvas.parentElement.className)")
        equal("every figure is drawn", [], blank)
        box = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom]"
        if b.js("return timeline.panels.length"):
            top, bottom = b.js(box, ".panel")
            expect("the timeline is above the fold", top < 420 and bottom < 900, (top, bottom))
            if "--hands" in self.flags:
                self.wheel_scrolls()
            self.labels()
            self.peaks()
        self.figures()
        expect("advice is folded", b.js("return [...document.querySelectorAll('.note')].every((n) => !n.textContent.startsWith('Advice') || !n.checkVisibility())"))
        if b.js("return document.querySelectorAll('#table tbody tr').length"):
            equal("the first row is chosen", ["true", 1], b.js("return [document.querySelector('#table tbody tr').getAttribute('aria-selected'), document.querySelectorAll('#table tr[aria-selected=true]').length]"))
            expect("its stacks are shown", b.js("return document.querySelectorAll('#detail .frames li').length") > 0, self.text("#detail"))
        lefts = b.js("return [...new Set([...document.querySelectorAll('#table .track')].map((t) => Math.round(t.getBoundingClientRect().left)))]")
        expect("bars begin at one x", len(lefts) <= 1, lefts)
        expect("no column is cut off", b.js("const t = document.getElementById('table'); return t.scrollWidth <= t.clientWidth"))
        cut = b.js("""const t = document.getElementById('table'), row = t.querySelector('tbody tr'), cells = row ? [...row.querySelectorAll('td')].slice(1) : [];
            cells.forEach((c, i) => { (c.querySelector('.share') ? c.querySelector('.share').lastChild : c).textContent = /B$/.test(c.textContent) || !i ? '1001.55 MiB' : '100,000,000'; });
            const out = t.scrollWidth - t.clientWidth;
            tables.draw();
            return out;""")
        expect("nor one of larger numbers", cut <= 0, cut)
        raw = b.js("return [...document.querySelectorAll('#table .fn')].map((e) => e.textContent).concat(flame.boxes.map((x) => x.node.name))")
        expect("code without a symbol has a short name", not [r for r in raw if re.search(r"\.so[.\d]*\+0x", r)], [r for r in raw if "+0x" in r][:3])
        self.look_flame()

    def peaks(self):
        """However near one looks: each device's peak is drawn."""
        lost = self.browser.js("""
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

    def labels(self):
        """The panels are drawn with and without their labels: no pixel of a line's colour may differ."""
        hidden = self.browser.js("""
            const draw = () => { for (const f of figures) f.dirty = true; drawNow(); };
            const pixels = () => timeline.panels.map((p) => {
              const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
              Object.assign(copy.canvas, {width: p.canvas.width, height: p.canvas.height});
              copy.fillStyle = theme.colors.surface; /* or what is half transparent would have the line's own colour */
              copy.fillRect(0, 0, p.canvas.width, p.canvas.height);
              copy.drawImage(p.canvas, 0, 0);
              return copy.getImageData(0, 0, p.canvas.width, p.canvas.height).data;
            });
            const rgb = (name) => { const n = parseInt(theme.colors[name].slice(1), 16); return [n >> 16, n >> 8 & 255, n & 255]; };
            const lines = ['active', 'allocated', 'reserved', 'rss', 'failure', 'select'].map(rgb), is = (d, i, c) => Math.abs(d[i] - c[0]) + Math.abs(d[i + 1] - c[1]) + Math.abs(d[i + 2] - c[2]) < 24;
            const label = timeline.label;
            let said = 0, hidden = 0;
            timeline.label = () => { said++; };
            draw();
            const bare = pixels();
            timeline.label = label;
            draw();
            pixels().forEach((d, k) => { for (let i = 0; i < d.length; i += 4) if (lines.some((c) => is(bare[k], i, c)) && Math.abs(d[i] - bare[k][i]) + Math.abs(d[i + 1] - bare[k][i + 1]) + Math.abs(d[i + 2] - bare[k][i + 2]) > 60) hidden++; });
            return [said, hidden];""")
        equal(f"{hidden[0]} labels hide no line", 0, hidden[1])

    def look_flame(self):
        b = self.browser
        if not b.js("return flame.root.value"):
            return
        library = {r[0] for r in self.sql("SELECT name FROM function WHERE is_allocator AND name NOT LIKE '<%'")}
        drawn = lambda: b.js("return flame.boxes.filter((x) => x.node.fn !== undefined && x.node.color !== 'folded').map((x) => model.m.functions.name[x.node.fn])")
        shown, value = drawn(), b.js("return flame.root.value")
        expect("no frame of an allocator in the flame graph", not library.intersection(shown), library.intersection(shown))
        every = b.js("return model.m.sites.node.some((n, i) => model.m.sites.at_peak_bytes[i] > 0 && model.m.sites.device[i] === app.device)")
        b.click("#flame-libraries")
        b.js("flame.zoom(flame.root)")
        expect("the switch brings frames in", len(drawn()) >= len(shown) and (not every or bool(library.intersection(drawn())) or not library), (len(shown), len(drawn())))
        equal("and changes no sum", value, b.js("return flame.root.value"))
        b.click("#flame-libraries")
        for _ in range(100):  # it is drawn when the browser has time for it
            if drawn() == shown:
                break
            b.drawn()
        equal("as before without them", shown, drawn())
        expect("it is as high as its stacks", b.js("const w = document.querySelector('.flame-wrap'); return w.scrollHeight <= w.clientHeight && Math.max(...flame.boxes.map((x) => x.row + 1)) * 20 <= w.clientHeight"))
        keys = b.js("return [...document.querySelectorAll('#flame-legend .key')].map((k) => k.style.background.slice(6, -1))")
        colors = b.js("return [...new Set(flame.boxes.filter((x) => x.node.fn !== undefined).map((x) => x.node.color))]")
        expect("one legend, each of its colours once", sorted(keys) == sorted(colors) and not b.js("return document.querySelectorAll('.key').length - document.querySelectorAll('#flame-legend .key').length"), (keys, colors))
        expect("which are to be seen", b.js("return [...document.querySelectorAll('#flame-legend .key')].every((k) => k.getBoundingClientRect().width >= 8 && k.getBoundingClientRect().height >= 8)"))
        ours = {r[0] for r in self.sql("SELECT file.path FROM file JOIN frame USING(file_id) JOIN address USING(address_id) JOIN module m USING(module_id) WHERE m.path LIKE '%/libmemprof.so'")}
        expect("no source of memprof itself", not ours.intersection(b.js("return model.source.files.map((f) => model.m.files[f.file])")), ours)

    def opens(self, fork, place):
        """Of a program that is known: the fork that the flame graph opens at, and FILE:LINE that the source opens on."""
        b = self.browser
        equal("the flame graph opens at the first fork", fork, b.js("return flame.zoomed.name"))
        file, line = place.rsplit(":", 1)
        equal("the source opens on the program's own line", [file, line], b.js("const t = document.querySelector('#source-view tr.target'); return [baseName(document.querySelector('#source-view .at').textContent).replace(/:.*/, ''), t && t.dataset.line]"))
        equal("and in sight", True, b.js("const t = document.querySelector('#source-view tr.target').getBoundingClientRect(), w = document.querySelector('#source-view .table-wrap').getBoundingClientRect(); return t.top >= w.top && t.bottom <= w.bottom"))
        equal("the page stays on top", 0, b.js("return scrollY"))

    def scope_rows(self, inclusive, column, scope="line"):
        return self.sql(f"SELECT a.key_id, a.{column}, a.alloc_count FROM account a WHERE a.scope = ? AND a.inclusive = ? AND a.device_id = ? AND a.kind = 'all'",
                        scope, inclusive, self.device_id)

    def line_table(self, what, column):
        """The rows of the lines table are v_line's, largest first."""
        expected = self.sql(f"""SELECT sum({column}), sum(alloc_count), file, line FROM v_line WHERE device = ? AND kind = 'all'
            GROUP BY function, file, line, CASE WHEN function_id IS NULL THEN line_id END ORDER BY 1 DESC""", self.host)
        got = [r for r in self.rows() if r[0] != "(smaller lines)"]
        base = lambda f: "/".join(f.split("/")[-2 if f.endswith("/__init__.py") else -1:])
        place = lambda f, l: base(f) + ":" + str(l) if f else ""
        equal(f"{what}: values", [bytes_text(r[0]) for r in expected[:len(got)]], [r[2] for r in got])
        wanted = {(bytes_text(r[0]), place(r[2], r[3])) for r in expected}
        at = lambda r: "" if r[1].startswith("<- ") else r[1]  # code without a symbol shows its nearest named caller
        expect(f"{what}: each row is one of v_line", all((r[2], at(r)) in wanted for r in got), [r for r in got if (r[2], at(r)) not in wanted][:3])
        return expected

    def tables(self):
        b = self.browser
        expected = self.line_table("lines at the peak", "at_peak_bytes")
        peak = self.sql("SELECT peak_active_bytes FROM total WHERE device_id = ? AND kind = 'all'", self.device_id)[0][0]
        expect("sum at the peak is the peak", self.text("#selection-text strong") == bytes_text(peak), self.text("#selection-text"))
        own = {(r[0], r[1]): r[2] for r in self.sql("SELECT file, line, max(own_peak_bytes) FROM v_line WHERE device = ? AND kind = 'all' AND own_peak_bytes IS NOT NULL AND file IS NOT NULL GROUP BY file, line HAVING count(*) = 1", self.host)}
        over = b.js("return growth.layers.map((l, i, all) => [model.m.files[model.m.lines.file[l.line]], model.m.lines.line[l.line], document.querySelectorAll('#growth-legend .value')[all.length - 1 - i].textContent])")
        over = [(file, line, text) for file, line, text in over if (file, line) in own]
        if "could not be read" not in self.flags: # of damaged events only what is left is known
            equal("most of lines over time", [(f, n, "up to " + bytes_text(own[f, n])) for f, n, _ in over], over)
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
            if tab in ("file", "module"):
                equal(f"sum over the {tab}s", peak, b.js("return tables.rows.reduce((t, r) => t + r.self, 0)"))
                nowhere = {"file": "(no source position)", "module": "(no module)"}[tab]
                want = self.sql(f"SELECT at_peak_bytes FROM v_{tab} WHERE device = ? AND kind = 'all' AND NOT inclusive AND {tab} IS NULL", self.host)
                got = b.js("return tables.rows.filter((r) => tables.cell(r).name === arguments[0]).map((r) => r.self)", nowhere)
                if tab == "file" and b.js("return model.core.folded.folded_lines"): # those have no file there either
                    expect(f"{tab}: {nowhere}", sum(got) >= sum(r[0] for r in want), (got, want))
                else:
                    equal(f"{tab}: {nowhere}", [r[0] for r in want if r[0]], [v for v in got if v])
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
        names = b.js("return [...document.querySelectorAll('#detail .statistics dt')].map((e) => e.textContent)")
        values = b.js("return [...document.querySelectorAll('#detail .statistics dd')].map((e) => e.textContent)")
        told = dict(zip(names, values))
        expect("all statistics, those that follow from others too", told.get("allocations") not in (None, "0")
               and told.get("mean size of an allocation", "-") != "-", told)
        if "--hands" in self.flags:
            self.sort_and_filter()

    def events_between(self, low, high):
        """(allocated, freed, live as a process ended) of the host's events in (low, high], by the program's own sql."""
        query = f"""SELECT coalesce(sum(CASE WHEN op IN ('alloc', 'realloc') THEN size_bytes END), 0),
            coalesce(sum(CASE WHEN op IN ('free', 'realloc_free') THEN size_bytes END), 0),
            coalesce(sum(CASE WHEN op = 'end' THEN size_bytes END), 0) FROM v_event
            WHERE device = '{self.host}' AND time_ns > {low} AND time_ns <= {high}"""
        out = subprocess.run([os.environ["MEMPROF"], "sql", self.database, query], check=True, capture_output=True, text=True).stdout
        numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", out.strip().splitlines()[-1])]
        return numbers

    def instants(self):
        b = self.browser
        took = []
        for x in (0.62, 0.3, 0.9, 0.45, 0.75):
            if "--limits" not in self.flags and len(took) in (1, 3) and sorted(took)[len(took) // 2] < 100:
                break  # where one is over the limit, which may be the doing of the machine, it is the median of three or five
            took.append(round(b.processor_ms(lambda: self.settle(lambda: b.pointer(".panel canvas", [(x, 0.6)])))))
            instant = b.js("return app.selection.moment === 'instant' ? model.instants.time[app.selection.instant] : -1")
            if instant < 0 or "--events" not in self.flags:
                continue
            allocated, freed, ended = self.events_between(-1, instant)
            equal(f"live at {instant} ns", bytes_text(allocated - freed - ended), self.text("#selection-text strong"))
        median = sorted(took)[len(took) // 2]
        print(f"  {median} ms of processor time from click to table: {took}")
        expect("click to table under 100 ms", median < 100, took)
        self.settle(lambda: b.pointer(".panel canvas", [(0.35, 0.5), (0.5, 0.5), (0.7, 0.5)]))
        equal("a drag selects a range", "range", b.js("return app.selection.moment"))
        if "--events" in self.flags:
            low, high = b.js("return [model.instants.time[app.selection.from], model.instants.time[app.selection.to]]")
            allocated, freed, _ = self.events_between(low, high)
            equal("allocated in the range", bytes_text(allocated), self.text("#selection-text strong"))
            grown = allocated - freed
            expect("grew by", ("+" if grown > 0 else "") + bytes_text(grown) in self.text("#selection-text"), self.text("#selection-text"))
        self.settle(lambda: b.click("[data-moment=peak]"))

    def flame(self):
        b = self.browser
        peak = self.sql("SELECT peak_active_bytes FROM total WHERE device_id = ? AND kind = 'all'", self.device_id)[0][0]
        equal("flame graph's root", peak, b.js("return flame.root.value"))
        b.click("[data-flame=up]")
        equal("inverted, the root is the same", peak, b.js("return flame.root.value"))
        leaf = b.js("return flame.children(flame.root).reduce((t, k) => t + k.value, 0)")
        equal("by callee, all is accounted for", peak, leaf)
        b.click("[data-flame=down]")
        for value in ("alloc_bytes", "alloc_count", "temporary_count", "end_bytes"):
            b.js("const s = document.getElementById('flame-measure'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", value)
            want = self.sql(f"SELECT {'end_active_bytes' if value == 'end_bytes' else value} FROM total WHERE device_id = ? AND kind = 'all'", self.device_id)[0][0]
            equal(f"flame graph by {value}", want, b.js("return flame.root.value"))
        b.js("const s = document.getElementById('flame-measure'); s.value = 'selection'; s.dispatchEvent(new Event('change'))")

    def links(self):
        b = self.browser
        b.js("const more = document.querySelector('#findings button'); if (more) more.click()")
        n = b.js("return document.querySelectorAll('.finding a[href*=\"&line=\"]').length")
        if n:
            self.settle(lambda: b.click('.finding a[href*="&line="]'))
            expect("a finding leads to its line", b.js("return tables.chosen && tables.chosen.scope === 'line'"))
        expect("findings end", b.js("return document.querySelectorAll('.finding').length") > 0)

    def looks(self):
        b = self.browser
        b.js("scrollTo(0, 0)")
        equal("nothing sticks out at 1280 pixels", 1280, b.js("return document.documentElement.scrollWidth"))
        b.resize(390, 844, 1, True)
        b.drawn()
        self.picture("phone")
        wide = b.js("""const out = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 390.5 &&
                ![...function*(p) { while ((p = p.parentElement)) yield p }(e)].some(p => getComputedStyle(p).overflowX != 'visible'))
            return out.slice(-3).map(e => `${e.tagName}.${e.className}#${e.id} ${e.getBoundingClientRect().right} ${e.textContent.slice(0, 40)}`)""")
        expect("nothing sticks out on a phone", b.js("return document.documentElement.scrollWidth") == 390, wide)
        b.resize(700, 900)
        b.js("document.getElementById('nav-failures').dataset.was = document.getElementById('nav-failures').hidden; document.getElementById('nav-failures').hidden = false") # as many names as there may be
        cut = b.js("return [...document.querySelectorAll('.top nav, #table')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => [e.id || e.className, e.scrollWidth, e.clientWidth])")
        b.js("document.getElementById('nav-failures').hidden = document.getElementById('nav-failures').dataset.was === 'true'")
        expect("no name of a section and no column is cut off at 700 pixels", not cut, cut)
        b.resize(1280, 900)
        unnamed = b.js("return [...document.querySelectorAll('canvas')].filter((c) => !c.hidden && !c.closest('[hidden]') && !c.getAttribute('aria-label')).map((c) => c.id)")
        expect("every figure has a text", not unnamed, unnamed)
        expect("the timeline is also a table", b.js("return document.querySelectorAll('#timeline-table td').length") > 20)

    def hostile(self):
        b = self.browser
        for i in range(b.js("return model.core.devices.length")):
            if b.js("return app.device") != i:
                self.settle(lambda: b.js("app.setDevice(arguments[0])", i))
            b.js("tables.open('transfer')")
            b.js("document.querySelectorAll('#table tbody tr').forEach((r) => r.click())")
            b.js("model.core.failures.forEach((f, k) => failures.choose(k))")
            time.sleep(0.2)
            b.drawn()
        # the button of the last failure, on a device that has none, pressed before it is hidden
        b.js("failures.choose(failures.lastOf(-2)); document.getElementById('moment-failure').click()")
        equal("no error", "", b.js("return document.getElementById('failed').textContent"))
        equal("nothing of the recording became an element", 0, b.js("return document.querySelectorAll('main img, main script').length"))
        expect("no dialog", b.js("return typeof window.owned === 'undefined'"))
        with open(self.page, "rb") as f:
            text = f.read()
        equal("scripts in the page", 8, len(re.findall(rb"<script\b", text)))
        expect("one policy, without the network", b"default-src 'none'" in text and b"connect-src" not in text)
        equal("attributes made of data that run", 0, b.js("return [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length"))

    def end(self):
        errors = self.browser.console()
        equal("files named as in every directory", ["requests/__init__.py", "__init__.py", "net.py"], self.browser.js("return ['/usr/lib/requests/__init__.py', '__init__.py', '/w/net.py'].map(baseName)"))
        expect("no console error", not errors, errors[:3])
        others = [u for u in self.browser.requests() if not u.startswith("data:") and u != "file:///dev/null" and not u.startswith("file://" + urllib.parse.quote(self.page))]
        expect("no request", not others, others[:3])

    def run(self):
        try:
            self.start()
            self.header()
            for text in self.told("--says"):
                expect("says: " + text, text in self.browser.js("return document.querySelector('main').textContent"))
            if "--opens" in self.flags:
                self.opens(*self.flags[self.flags.index("--opens") + 1:][:2])
            hands, basic = "--hands" in self.flags, "--basic" in self.flags
            if "--same-sites" not in self.flags:
                self.look()
                self.tables()
            if not basic:
                self.instants()
                if hands:
                    self.zoom()
                self.flame()
                if hands:
                    self.flame_hands()
                self.links()
            for part in ("devices", "addresses", "segments", "failure", "hostile", "resident", "apart", "ended", "child", "alone"):
                if "--" + part in self.flags:
                    getattr(self, part)()
            if hands or "--pictures" in self.flags:
                self.themes()
            if not basic or {"--pictures", "--hostile"} & set(self.flags):
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
