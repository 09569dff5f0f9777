"""What a pointer, the wheel and keys do to the timeline, the tables and the flame graph, and themes. It is of the page's
scripts: check.py asks for it where a page has something else to offer to them."""
from check_recorded import Recorded
from shown import equal, expect


class Hands(Recorded):
    def wheel_scrolls(self):
        b = self.browser
        b.js("document.activeElement.blur(); document.documentElement.style.scrollBehavior = 'auto'")
        b.wheel(".panel canvas", 0.5, 0.5, 0)
        before, whole = b.js("return [scrollY, timeline.view.to - timeline.view.from]")
        b.wheel(".panel canvas", 0.5, 0.5, -240)
        equal("the wheel over the chart leaves it as it is", whole, b.js("return timeline.view.to - timeline.view.from"))
        b.js("scrollTo(0, 0)")
        b.js("""const c = document.querySelector('.panel canvas'), r = c.getBoundingClientRect();
            c.dispatchEvent(new WheelEvent('wheel', {deltaY: -240, ctrlKey: true, bubbles: true, cancelable: true, clientX: r.left + 300, clientY: r.top + 50}))""")
        expect("with Ctrl it zooms", b.js("return timeline.view.to - timeline.view.from") < whole or whole <= 1000)
        scrolls = b.js("""timeline.show(0, timeline.whole);
            const c = document.querySelector('.panel canvas'), r = c.getBoundingClientRect();
            timeline.show(0, timeline.whole / 2);
            const e = new WheelEvent('wheel', {deltaY: 240, bubbles: true, cancelable: true, clientX: r.left + 300, clientY: r.top + 50});
            c.dispatchEvent(e);
            timeline.show(0, timeline.whole);
            return !e.defaultPrevented;""")
        expect("without, the page scrolls", scrolls)
        b.js("document.documentElement.style.scrollBehavior = ''; scrollTo(0, 0)")

    def sort_and_filter(self):
        b = self.browser
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

    def zoom(self):
        b = self.browser
        whole = b.js("return timeline.whole")
        self.settle(lambda: b.pointer(".panel canvas", [(0.5, 0.5)])) # whoever clicked the chart means it
        for _ in range(4):
            b.wheel(".panel canvas", 0.5, 0.5, -240)
        span = b.js("return timeline.view.to - timeline.view.from")
        expect("after a click the wheel zooms in", span < whole * 0.6, span / whole)
        b.js("document.querySelector('.panel canvas').focus()")
        b.keys("ArrowRight")
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
        if "--limits" in self.flags:
            self.frames()

    def frames(self):
        b = self.browser
        frame = b.processor_ms(lambda: b.js_async("""
            const done = arguments[0];
            let frames = 0;
            (function step() {
              timeline.zoom(frames < 30 ? 0.9 : 1.11, timeline.whole * 0.4);
              drawNow();
              if (++frames < 60) requestAnimationFrame(step); else { timeline.show(0, timeline.whole); done(); }
            })();""")) / 60
        print(f"  {frame:.1f} ms of processor time a frame while zooming")
        expect("zooming at 60 frames a second", frame < 16.7, frame)

    def flame_hands(self):
        """Search, a click, keys."""
        b = self.browser
        needle = b.js("const k = flame.children(flame.root).find((x) => x.fn !== undefined); return k ? model.m.functions.name[k.fn] : 'alone'")[:20]
        b.type("#flame-search", needle)
        expect("search says its share", "Found in" in self.text("#flame-found"), needle)
        b.js("flame.zoom(flame.root)")
        b.pointer(".flame-wrap", [(0.2, 30 / b.js("return document.querySelector('.flame-wrap').clientHeight"))])
        expect("a click zooms", b.js("return flame.zoomed !== flame.root"))
        b.js("document.getElementById('flame-canvas').focus()")
        b.keys("Escape")
        expect("Escape goes back", b.js("return flame.zoomed === flame.root"))
        b.keys("ArrowDown", "ArrowDown")
        expect("arrows tell where they are", len(self.text("#flame-status")) > 5)
        b.js("const s = document.getElementById('flame-search'); s.value = ''; s.dispatchEvent(new Event('input'))")

    def themes(self):
        b = self.browser
        b.js("scrollTo(0, 0)")
        expect("a line that is not drawn is not struck out, and says so", b.js("const s = document.querySelector('.series'); s.setAttribute('aria-pressed', 'false'); const is = [getComputedStyle(s).textDecorationLine, getComputedStyle(s, '::after').content]; s.setAttribute('aria-pressed', 'true'); return is.join()") == 'none,"(not drawn)"')
        light = b.js("return getComputedStyle(document.body).backgroundColor")
        self.picture("light")
        b.click('[data-theme-choice="dark"]')
        dark = b.js("return getComputedStyle(document.body).backgroundColor")
        expect("the switch changes the theme", light != dark, (light, dark))
        self.picture("dark")
        b.click('[data-theme-choice="auto"]')
        b.scheme("dark")
        equal("the system's dark scheme is followed", dark, b.js("return getComputedStyle(document.body).backgroundColor"))
        b.scheme("light")
