"""A browser for tests: a page of Chromium's (serve.py), driven by its DevTools protocol."""
import base64
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from devtools import BrowserError, Devtools  # noqa: E402

KEYS = {"ArrowRight": 39, "ArrowDown": 40, "Escape": 27}
# what is kept of what the browser tells by itself
TOLD = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.requestWillBeSent", "Page.loadEventFired")


class Browser:
    """The page of a browser that runs already: its port, the page's path there, and whether it has frames only when asked."""

    def __init__(self, port, path, on_demand, width=1280, height=900):
        self.on_demand, self.width, self.height = on_demand, width, height
        self.page = Devtools(port, path, TOLD)
        self.fresh()

    def fresh(self):
        """As if it had just been started: nothing of the page before is left."""
        self.cdp("Page.navigate", url="file:///dev/null")  # first: where a page has crashed nothing else is answered
        for domain in ("Page", "Runtime", "Log"):
            self.cdp(domain + ".enable")
        self.cdp("Network.enable", maxTotalBufferSize=0, maxResourceBufferSize=0)
        self.wait("location.href === 'file:///dev/null' && document.readyState === 'complete'")
        self.cdp("Page.bringToFront")
        self.cdp("Page.resetNavigationHistory")
        self._inputs(self._mouse("Moved", 0, 0))
        self.cdp("Storage.clearDataForOrigin", origin="file://", storageTypes="all")
        self.resize(self.width, self.height)
        self.scheme("light")
        self.page.told.clear()

    def cdp(self, command, **params):
        return self.page.call(command, **params)

    def resize(self, width, height, scale=1, mobile=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.frame()

    def scheme(self, value):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])
        self.frame()

    def frame(self, is_shown=False):
        """What the page does before it is drawn: it is laid out, its canvases are drawn. Painting all of it, for nobody to
        look at, would take half as long again: only where it is to be shown."""
        if self.on_demand:
            self.cdp("HeadlessExperimental.beginFrame", noDisplayUpdates=not is_shown)

    def _answers(self, numbers, is_shown=False):
        """Of commands that may wait for a frame."""
        while self.on_demand and not self.page.answered(numbers):
            self.frame(is_shown)
            self.cdp("Runtime.evaluate", expression="0")  # what came before its answer is here
            time.sleep(0.002)
        return [self.page.answer(number) for number in numbers]

    def _call(self, command, is_shown=False, **params):
        return self._answers([self.page.send(command, params)], is_shown)[0]

    def open(self, path):
        """Until the page has been loaded; a path with another fragment alone opens nothing."""
        since = len(self.page.told)
        answer = self.cdp("Page.navigate", url="file://" + path)
        if answer.get("errorText"):
            raise BrowserError(f"{path}: {answer['errorText']}")
        if answer.get("loaderId"):
            self.page.wait_for("Page.loadEventFired", since)
            self.frame(is_shown=True)

    def _evaluate(self, expression, is_promise=False):
        call = self._call if is_promise else self.cdp  # it may be what a frame brings
        answer = call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=is_promise)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{details.get('exception', {}).get('description', details['text'])[:400]}, of: {expression[:400]}")
        return answer["result"].get("value")

    def js(self, code, *args):
        return self._evaluate("(function () {" + code + "\n}).apply(null, " + json.dumps(args) + ")")

    def js_async(self, code):
        """The code calls its one argument when it has done."""
        self._evaluate("new Promise((done) => (function () {" + code + "\n})(done))", is_promise=True)

    def wait(self, code, seconds=20):
        """Asks in the page itself: a question from outside takes longer than most of what is waited for."""
        value = self._evaluate("""new Promise((done) => {
            const end = performance.now() + %d;
            (function ask() {
              const value = %s;
              if (value || performance.now() > end) done(value); else setTimeout(ask, 10);
            })();
        })""" % (seconds * 1000, code), is_promise=True)
        if not value:
            raise BrowserError("timed out waiting for: " + code)
        return value

    def processor_ms(self, action, of="ScriptDuration"):
        """Milliseconds of processor time of the scripts that an action runs (TaskDuration: of all that the page's thread does): what
        else the machine does hardly counts."""
        def now():
            return next(m["value"] for m in self.cdp("Performance.getMetrics")["metrics"] if m["name"] == of) * 1000
        self.cdp("Performance.disable")
        self.cdp("Performance.enable", timeDomain="threadTicks")
        before = now()
        action()
        return now() - before

    def drawn(self):
        """Waits for the page as it is now to be shown."""
        self.js_async("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(0)))")

    def _inputs(self, *events, is_shown=False):
        """One after the other, without waiting in between: (kind of event, its parameters)."""
        self._answers([self.page.send(f"Input.dispatch{kind}Event", params) for kind, params in events], is_shown)
        self.frame()

    @staticmethod
    def _mouse(kind, x, y, **params):
        return "Mouse", {"type": "mouse" + kind, "x": x, "y": y, **params}

    def click(self, css):
        """In the middle of the element's first line. The page has handled it then: the browser's answer may come before that."""
        x, y, other = self.js("""const e = document.querySelector(arguments[0]);
            window.clickSeen = false;
            addEventListener('click', () => setTimeout(() => { window.clickSeen = true; }), { capture: true, once: true });
            e.scrollIntoView({block: 'center', behavior: 'instant'});
            const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2, hit = document.elementFromPoint(x, y);
            return [x, y, e.contains(hit) ? '' : hit ? hit.outerHTML.slice(0, 200) : 'nothing']""", css)
        if other:
            raise BrowserError(f"a click on {css} would reach {other}")
        self._inputs(self._mouse("Moved", x, y), *(self._mouse(kind, x, y, button="left", clickCount=1) for kind in ("Pressed", "Released")))
        self.wait("window.clickSeen")
        self.frame()

    def type(self, css, text):
        """Key by key."""
        self.js("const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center', behavior: 'instant'}); e.focus()", css)
        self.keys(*text)

    def keys(self, *keys):
        """Pressed and released: characters, and names of KEYS."""
        events = []
        for key in keys:
            code = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)}
            events += [("Key", {"type": "keyDown", **code, **({} if key in KEYS else {"text": key})}), ("Key", {"type": "keyUp", **code})]
        self._inputs(*events)

    def _places(self, css, points):
        """Points of an element, fractions of it, as they are on the screen when nothing moves any more."""
        self.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", css)
        self.drawn()
        left, top, w, h = self.js("const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", css)
        return [(round(left + x * w), round(top + y * h)) for x, y in points]

    def pointer(self, css, points):
        """Presses at the first point (fractions of the element), moves over the rest, releases."""
        at = self._places(css, points)
        self._inputs(self._mouse("Moved", *at[0]), self._mouse("Pressed", *at[0], button="left", buttons=1, clickCount=1))
        for place in at[1:]:
            self._inputs(self._mouse("Moved", *place, button="left", buttons=1))
        self._inputs(self._mouse("Released", *at[-1], button="left", clickCount=1))

    def hover(self, css, x, y):
        self._inputs(self._mouse("Moved", *self._places(css, [(x, y)])[0]))

    def wheel(self, css, x, y, delta):
        self._inputs(self._mouse("Wheel", *self._places(css, [(x, y)])[0], deltaX=0, deltaY=delta), is_shown=True)  # it scrolls what is shown

    def screenshot(self, path, whole=False):
        clip = {}
        if whole:
            size = self.js("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}}
        data = self._call("Page.captureScreenshot", is_shown=True, optimizeForSpeed=True, **clip)["data"]  # the same pixels, less deflated
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def _since_last(self, *names):
        """What was told of these since the last call."""
        self.cdp("Runtime.evaluate", expression="0")  # what came before its answer is here
        told, self.page.told[:] = ([e for e in self.page.told if (e["method"] in names) == is_ours] for is_ours in (True, False))
        return told

    def console(self):
        """Errors and warnings: of the page, of its scripts, and what no script caught."""
        def text(method, params):
            if method == "Log.entryAdded":
                return params["entry"]["text"] if params["entry"]["level"] in ("error", "warning") else ""
            if method == "Runtime.consoleAPICalled":
                return json.dumps(params["args"]) if params["type"] in ("error", "warning", "assert") else ""
            details = params["exceptionDetails"]
            return details.get("exception", {}).get("description", details["text"])
        told = self._since_last("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [said for said in (text(e["method"], e["params"]) for e in told) if said]

    def requests(self):
        """Addresses that were asked for since the last call."""
        return [e["params"]["request"]["url"] for e in self._since_last("Network.requestWillBeSent")]

    def close(self):
        self.page.close()


def served(path, seconds=60):
    """The browser that serve.py runs: its start may take a while."""
    for _ in range(seconds * 20):
        if os.path.exists(path):
            with open(path) as f:
                return Browser(*json.load(f))
        time.sleep(0.05)
    raise BrowserError("the browser did not start")
