"""A browser for tests: Debian's Chromium behind its chromedriver, by the WebDriver protocol and nothing but the standard library."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
]


class BrowserError(Exception):
    pass


class Browser:
    """driver: the port of a chromedriver and its session, of a browser that runs already."""

    def __init__(self, width=1280, height=900, driver=None):
        self.width, self.height, self.driver = width, height, None
        if driver:
            port, self.session = driver
            self.base = f"http://127.0.0.1:{port}"
            self.fresh()
        else:
            self.start()

    def start(self):
        self.profile = tempfile.mkdtemp(prefix="memprof-page-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{self.port}"
        self.session = ""
        for _ in range(100):
            try:
                if self.call("GET", "/status")["ready"]:
                    break
            except OSError:
                time.sleep(0.1)
        shell = shutil.which("chromium-headless-shell")  # the same without a window to draw: a quarter cheaper
        options = {"args": FLAGS + [f"--user-data-dir={self.profile}"], "binary": shell or shutil.which("chromium")}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome-headless-shell" if shell else "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.session = "/session/" + answer["sessionId"]
        self.look()

    def look(self):
        self.resize(self.width, self.height)
        self.scheme("light")

    def fresh(self):
        """As if it had just been started: nothing of the page before is left."""
        self.open("/dev/null")
        self.call("DELETE", "/actions")
        self.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)
        self.cdp("Storage.clearDataForOrigin", origin="file://", storageTypes="all")
        self.look()
        self.console()
        self.requests()

    def call(self, method, path, body=None):
        data = None if method == "GET" or method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + self.session * (path[:8] != "/session" and path != "/status") + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as e:
            raise BrowserError(f"{method} {path}: {json.load(e)['value']['message'][:400]}") from None

    def cdp(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def resize(self, width, height, scale=1, mobile=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def scheme(self, value):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def open(self, path):
        self.call("POST", "/url", {"url": "file://" + path})

    def js(self, code, *args):
        return self.call("POST", "/execute/sync", {"script": code, "args": list(args)})

    def js_async(self, code, *args):
        return self.call("POST", "/execute/async", {"script": code, "args": list(args)})

    def wait(self, code, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            value = self.js("return " + code)
            if value:
                return value
            time.sleep(0.05)
        raise BrowserError("timed out waiting for: " + code)

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

    def element(self, css):
        found = self.call("POST", "/element", {"using": "css selector", "value": css})
        return next(iter(found.values()))

    def _show(self, css):
        """Scrolled there by us, so that the driver's own, smooth scrolling does not go on below the next click."""
        self.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", css)

    def click(self, css):
        """In the middle of the element's first line, as the driver does, which takes twice the processor time for it."""
        x, y, other = self.js("""const e = document.querySelector(arguments[0]);
            e.scrollIntoView({block: 'center', behavior: 'instant'});
            const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2, hit = document.elementFromPoint(x, y);
            return [x, y, e.contains(hit) ? '' : hit ? hit.outerHTML.slice(0, 200) : 'nothing']""", css)
        if other:
            raise BrowserError(f"a click on {css} would reach {other}")
        self.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, css, text):
        self._show(css)
        self.call("POST", f"/element/{self.element(css)}/value", {"text": text})

    def clear(self, css):
        self._show(css)
        self.call("POST", f"/element/{self.element(css)}/clear")

    def _origin(self, css):
        self._show(css)
        self.drawn() # nothing moves any more
        return self.js("const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", css)

    def pointer(self, css, points):
        """Presses at the first point (fractions of the element), moves over the rest, releases."""
        left, top, w, h = self._origin(css)
        at = [{"type": "pointerMove", "duration": 30, "x": round(left + x * w), "y": round(top + y * h)} for x, y in points]
        steps = [at[0], {"type": "pointerDown", "button": 0}, *at[1:], {"type": "pointerUp", "button": 0}]
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps}]})

    def hover(self, css, x, y):
        left, top, w, h = self._origin(css)
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(left + x * w), "y": round(top + y * h)}]}]})

    def wheel(self, css, x, y, delta):
        left, top, w, h = self._origin(css)
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "duration": 0, "x": round(left + x * w), "y": round(top + y * h), "deltaX": 0, "deltaY": delta}]}]})

    def keys(self, text):
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def screenshot(self, path, whole=False):
        clip = {}
        if whole:
            size = self.js("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}}
        data = self.cdp("Page.captureScreenshot", optimizeForSpeed=True, **clip)["data"]  # the same pixels, less deflated
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def console(self):
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Addresses that were asked for since the last call, other than files and data."""
        out = []
        for entry in self.call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                out.append(message["params"]["request"]["url"])
        return out

    def close(self):
        if not self.driver:
            return
        try:
            self.call("DELETE", self.session)
        except (BrowserError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def serve(path, parent):
    """Runs a browser until SIGTERM, or until that process is gone; the file says where it is."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    browser = Browser()
    try:
        with open(path + ".new", "w") as f:
            json.dump([browser.port, browser.session], f)
        os.rename(path + ".new", path)
        while os.path.exists(f"/proc/{parent}"):
            time.sleep(1)
    finally:
        browser.close()


def served(path, seconds=60):
    """The browser that serve() runs: its start may take a while."""
    for _ in range(seconds * 20):
        if os.path.exists(path):
            with open(path) as f:
                return Browser(driver=json.load(f))
        time.sleep(0.05)
    raise BrowserError("the browser did not start")


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
