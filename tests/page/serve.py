"""Runs a browser, Debian's Chromium, which one test after the other uses: serve.py FILE PROCESS. See serve()."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from devtools import BrowserError, Devtools  # noqa: E402

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
    "--allow-pre-commit-input", "--window-size=1280,900", "--remote-debugging-port=0", "about:blank",
]
ON_DEMAND = ["--enable-begin-frame-control", "--run-all-compositor-stages-before-draw"]  # browser.py: frame(); of the shell alone


def listening(profile):
    """Where a browser with that directory listens, (port, path of the whole browser), once it does; else None."""
    try:
        with open(os.path.join(profile, "DevToolsActivePort")) as f:
            lines = f.read().split("\n")
    except FileNotFoundError:
        return None
    return (int(lines[0]), lines[1]) if len(lines) > 1 and lines[1] else None


class Server:
    """A running Chromium; where its page is, and whether that has frames only when asked."""

    def __init__(self, on_demand=False):
        self.profile = tempfile.mkdtemp(prefix="memprof-page-")
        shell = shutil.which("chromium-headless-shell")  # it has no window to draw: a quarter cheaper
        program, on_demand = shell or shutil.which("chromium"), bool(shell) and on_demand
        self.process = subprocess.Popen([program, *(ON_DEMAND if on_demand else []), *FLAGS, f"--user-data-dir={self.profile}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (where := listening(self.profile)):
            if self.process.poll() is not None:
                raise BrowserError(f"{program} ended")
            time.sleep(0.05)
        self.where = where
        whole = Devtools(*where)
        page = next(t["targetId"] for t in whole.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        if on_demand:
            page = whole.call("Target.createTarget", url="about:blank", width=1280, height=900, enableBeginFrameControl=True)["targetId"]
        whole.close()
        self.place = [where[0], "/devtools/page/" + page, on_demand]

    def close(self):
        try:  # not by a signal: the program may be a script that started the browser
            Devtools(*self.where).call("Browser.close")
        except (BrowserError, OSError):
            self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def serve(path, parent):
    """Runs a browser until SIGTERM, or until that process is gone; the file says where it is."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = Server(on_demand=not os.environ.get("PICTURES"))
    try:
        with open(path + ".new", "w") as f:
            json.dump(server.place, f)
        os.rename(path + ".new", path)
        while os.path.exists(f"/proc/{parent}"):
            time.sleep(1)
    finally:
        server.close()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
