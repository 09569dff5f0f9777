"""What tests/e2e/top.sh drives. The current directory is empty."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from pty_screen import LIMIT, Screen

MEMPROF = os.environ["MEMPROF"]
PROGRAM = sys.argv[1]
HERE = os.getcwd()


def equal(what, expected, got):
    if expected != got:
        sys.exit("FAIL: %s: expected %r, got %r" % (what, expected, got))
    print("  %s = %s" % (what, str(got)[:100]))


class Recording:
    """The program, which waits for orders; its ledger is what it printed last."""

    def __init__(self, file, name="program"):
        self.file = file
        self.process = subprocess.Popen(
            [MEMPROF, "run", "-q", "-o", file, "--", PROGRAM, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.read()

    def read(self):
        words = self.process.stdout.readline().split()
        self.count, self.bytes = int(words[1]), int(words[2])

    def order(self, letter):
        self.process.stdin.write(letter.encode() + b"\n")
        self.process.stdin.flush()
        self.read()

    def end(self):
        self.process.stdin.close()
        equal("status of the program", 0, self.process.wait())


def top(*arguments, directory=HERE):
    done = subprocess.run([MEMPROF, "top", "--once", "--json", *arguments], cwd=directory, stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


def host(got):
    return next(d for d in got["devices"] if d["device"] == "host")


def wait_for(run, *arguments):
    """Until the file has what the program printed."""
    end = time.monotonic() + LIMIT
    while True:
        got = top(*arguments)
        if (sum(r["active_bytes"] for r in got["rows"]), host(got)["active_count"]) == (run.bytes, run.count):
            return got
        if time.monotonic() > end:
            sys.exit("FAIL: the ledger has %s, top %s" % (run.bytes, got))
        time.sleep(0.05)


def reported(by):
    """function, file, line -> live bytes and blocks, of a report of the running recording."""
    done = subprocess.run([MEMPROF, "report", "out.db", "--by", by, "--json", "--top", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    rows = json.loads(done.stdout)
    rows = rows["rows"] if isinstance(rows, dict) else rows
    return {(r["function"], r["file"], r["line"]): (r["end_bytes"], r["end_count"]) for r in rows if r["end_count"]}


def once(run):
    print("once")
    got = wait_for(run)
    for device in (host(got),):
        equal("active bytes", run.bytes, device["active_bytes"])
        equal("blocks", run.count, device["active_count"])
        assert device["used_bytes"] > device["active_bytes"], device
    equal("state", "recording", got["state"])
    for by in "line", "function":
        rows = top("--by", by, "out.db")["rows"]
        equal("as a report by " + by, reported(by),
              {(r["function"], r["file"], r["line"]): (r["active_bytes"], r["active_count"]) for r in rows})
    by_name = {r["function"]: (r["active_bytes"], r["active_count"], r["growth_bytes"])
               for r in top("--by", "function")["rows"]}
    equal("hold()", (100000, 100), by_name["hold"][:2])
    equal("one()", (4096, 1), by_name["one"][:2])
    collector = run.process.pid
    program = int(Path("/proc/%d/task/%d/children" % (collector, collector)).read_text().split()[0])
    for what in str(program), str(collector), "out.db", HERE + "/out.db":
        equal("top " + what.replace(HERE, "."), run.bytes, host(top(what))["active_bytes"])
    equal("of a type of devices", [], top("--device", "cuda")["rows"])


def growth(run):
    print("growth")
    run.order("g")
    run.order("g")
    run.order("f")
    got = wait_for(run, "--by", "function", "--sort", "growth")
    row = got["rows"][0]
    equal("grow()", ("grow", 500000, 10, 500000),
          (row["function"], row["active_bytes"], row["active_count"], row["growth_bytes"]))


def named(text):
    return "one" in text and "not looked up" not in text


def marks(file, name):
    """How many it has, once it has one."""
    end = time.monotonic() + LIMIT
    query = "SELECT count(*) FROM mark WHERE domain = 'outside' AND name = '%s'" % name
    while True:
        done = subprocess.run([MEMPROF, "sql", "--csv", file, query], stdout=subprocess.PIPE, check=True)
        count = int(done.stdout.split()[-1])
        if count or time.monotonic() > end:
            return count
        time.sleep(0.1)


def keys(run):
    print("keys")
    screen = Screen([MEMPROF, "top", "-n", "0.2"])
    screen.wait("rows by line", lambda t: named(t) and re.search(r"488\.28 KiB .* 10 +grow +\S*ledger_steps\.c:\d+", t))
    screen.wait("the host", lambda t: re.search(r"^host +active 589\.94 KiB  RSS .*reserved", t, re.M))
    screen.wait("its bar", lambda t: re.search(r"^\[█+▓*░* *\]$", t, re.M))
    screen.wait("it records", lambda t: t.startswith("recording "))
    screen.send("l")
    screen.wait("by function", lambda t: "by function, active first" in t)
    screen.send("ll")
    screen.wait("by line again", lambda t: "by line, active first" in t)
    screen.send("s")
    screen.wait("by growth", lambda t: "by line, growth first" in t)
    screen.send("s")
    screen.wait("most blocks first", lambda t: "count first" in t and re.search(r"blocks.*\n.* 100 +hold ", t))
    screen.send("s")
    screen.wait("most bytes first", lambda t: "active first" in t and re.search(r"blocks.*\n.* 10 +grow ", t))
    screen.send("d")
    screen.wait("of the host", lambda t: "active first of host" in t)
    screen.send("d")
    screen.wait("of all", lambda t: "first of" not in t)
    screen.send("?")
    screen.wait("help", lambda t: "any key goes back" in t and "hold the display" in t)
    screen.send("x")
    screen.wait("no help", lambda t: "any key" not in t)
    screen.send("m")
    screen.wait("a mark", lambda t: "mark 'top 1' is set" in screen.raw)
    equal("marks in the recording", 1, marks(run.file, "top 1"))
    run.order("g")
    screen.wait("it follows", lambda t: "976.56 KiB" in t)
    screen.send("p")
    screen.wait("held", lambda t: t.startswith("HELD"))
    run.order("f")
    wait_for(run)
    screen.send("l")
    screen.wait("held, it draws what it had", lambda t: "by function" in t and "976.56 KiB" in t)
    screen.send("lp")
    screen.wait("not held: grow()", lambda t: "HELD" not in t)
    screen.send("l")
    screen.wait("and has what is new", lambda t: re.search(r"488\.28 KiB .*grow", t))
    for width, height in (40, 10), (20, 4), (1, 1), (200, 60), (80, 24):
        screen.resize(width, height)
        screen.wait("%d columns, %d rows" % (width, height), lambda t: t.strip())
        screen.send("l")
        screen.read(0.3)
    screen.send("l")
    screen.resize(80, 6)
    screen.wait("rows that do not fit", lambda t: "by line" in t and "\nrows 1-2 of 3 " in t and "one" not in t)
    screen.send("\x1b[B")
    screen.wait("the next row", lambda t: "\nrows 2-3 of 3 " in t and "one" in t)
    screen.send("\x1b[A\x1b[F")
    screen.wait("the last rows", lambda t: "\nrows 2-3 of 3 " in t)
    screen.send("\x1b[5~")
    screen.wait("a page back", lambda t: "\nrows 1-2 of 3 " in t)
    screen.send("\x1b[6~\x1b[H")
    screen.wait("the first rows", lambda t: "\nrows 1-2 of 3 " in t)
    screen.send("q")
    equal("status of q", 0, screen.end())
    assert screen.is_restored(), screen.modes
    screen = Screen([MEMPROF, "top"], NO_COLOR="1")
    screen.wait("without colours", named)
    screen.send("\x03")
    equal("status of ^C", 0, screen.end())
    assert screen.is_restored() and not re.search("\x1b\\[[1-9][0-9]*m", screen.raw), screen.raw


def signals():
    print("signals")
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV:
        screen = Screen([MEMPROF, "top"])
        screen.wait("drawn", named)
        os.kill(screen.pid, number)
        equal("status of " + number.name, -number, screen.end())
        assert screen.is_restored(), (number, screen.modes)
    screen = Screen([MEMPROF, "top"])
    screen.wait("drawn", named)
    for number in signal.SIGTSTP, signal.SIGSTOP:
        os.kill(screen.pid, number)
        pid, status = os.waitpid(screen.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        while screen.read(0.2):
            pass
        if number == signal.SIGTSTP:
            assert screen.is_restored(), screen.modes
        screen.resize_screen(80, 24)
        os.kill(screen.pid, signal.SIGCONT)
        screen.wait("drawn after " + number.name, named)
        assert "1049" in screen.modes
    os.close(screen.fd)
    end = time.monotonic() + LIMIT
    while os.waitpid(screen.pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            sys.exit("FAIL: it outlives its terminal")
        time.sleep(0.05)
    print("  it ends with its terminal")


def ends(run):
    print("the program ends")
    screen = Screen([MEMPROF, "top", "-n", "0.2"])
    screen.wait("drawn", named)
    run.end()
    screen.wait("its end", lambda t: t.startswith("ended after") and "488.28 KiB" in t)
    screen.wait("its last state", lambda t: re.search(r"^host +active 589\.94 KiB", t, re.M))
    assert screen.read(1) is not None
    screen.send("q")
    equal("status", 0, screen.end())
    got = top("out.db")
    equal("a file that is finished", ("ended", run.bytes), (got["state"], host(got)["active_bytes"]))
    text = subprocess.run([MEMPROF, "top", "out.db"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert text.startswith("ended after") and "589.94 KiB" in text and "\x1b" not in text, text
    equal("nothing beside it", ["out.db"], sorted(os.listdir(".")))


def several():
    print("several recordings")
    evil = "\x1b]0;title\x07\u202ename"
    os.makedirs("a")
    os.makedirs("b")
    runs = [Recording("a/one.db", evil), Recording("b/two.db")]
    done = subprocess.run([MEMPROF, "top", "--once"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = done.stderr.decode().splitlines()
    equal("status", (2, 1, b""), (done.returncode, len(lines), done.stdout))
    for run, file in zip(runs, ("a/one.db", "b/two.db")):
        assert "%d (%s/%s)" % (run.process.pid, HERE, file) in lines[0], lines
        wait_for(run, str(run.process.pid))
    got = top(directory="b")
    assert got["file"].endswith("b/two.db"), got["file"]
    screen = Screen([MEMPROF, "top", "a/one.db"], width=300)
    screen.wait("a name that would be a command of the terminal", lambda t: named(t) and "title" in t)
    screen.send("q")
    equal("status", 0, screen.end())
    assert "\x1b]" not in screen.raw and "\u202e" not in screen.raw, screen.raw
    for run in runs:
        run.end()


run = Recording("out.db")
once(run)
growth(run)
keys(run)
signals()
ends(run)
several()
