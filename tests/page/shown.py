"""A page in a browser beside the database that it was made of: what the checks of both share."""
import csv
import io
import os
import sqlite3
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import served  # noqa: E402

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
    while size >= (999.995 if unit else 1024) and unit < 5:
        size /= 1024
        unit += 1
    number = str(int(size)) if unit == 0 else f"{size:.2f}"
    return ("\u2212" if value < 0 else "") + number + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]


def count_text(value):
    return f"{value:,}"


class Shown:
    def __init__(self, page, database, name, shots, flags):
        self.page, self.database, self.name, self.shots, self.flags = os.path.abspath(page), database, name, shots, flags
        self.db = sqlite3.connect(f"file:{urllib.parse.quote(os.path.abspath(database))}?mode=ro", uri=True)
        self.db.text_factory = lambda b: b.decode("utf-8", "replace")
        for table in ("stack", "site", "site_line"):
            self.unpack(database, table)
        for name, definition in self.db.execute("SELECT name, sql FROM main.sqlite_schema WHERE type = 'view'").fetchall():
            self.db.execute(definition.replace("CREATE VIEW", "CREATE TEMP VIEW", 1)) # over what was unpacked
        self.browser = served(os.environ["BROWSER"])

    def sql(self, query, *args):
        return self.db.execute(query, args).fetchall()

    def unpack(self, database, table):
        """Where there are many stacks, plain SQLite sees a part of them: all of them go into a table before the plain one."""
        if not self.db.execute("SELECT count(*) FROM packed").fetchone()[0]:
            return
        text = subprocess.run([os.environ["MEMPROF"], "sql", "--csv", database, f"SELECT * FROM {table}"], capture_output=True,
                              check=True, text=True).stdout
        head, *rows = csv.reader(io.StringIO(text))
        self.db.execute(f"CREATE TEMP TABLE {table} AS SELECT * FROM main.{table} WHERE 0")
        values = ["nullif(?, '')"] * len(head)  # what is a number becomes one by its column's type
        self.db.executemany(f"INSERT INTO temp.{table}({', '.join(head)}) VALUES({', '.join(values)})", rows)

    def told(self, flag):
        """What follows that flag, each time that it is given."""
        return [value for f, value in zip(self.flags, self.flags[1:]) if f == flag]

    def picture(self, what):
        """The whole page, where it is asked for: it takes longer than all that is compared with one look."""
        if "--pictures" in self.flags or os.environ.get("PICTURES"):
            time.sleep(0.4) # what fades in has come
            self.browser.screenshot(os.path.join(self.shots, f"{self.name}-{what}.png"), True)

    def settle(self, action):
        before = int(self.browser.js("return document.documentElement.dataset.settled || '0'"))
        action()
        self.browser.wait(f"Number(document.documentElement.dataset.settled || 0) > {before}", 20)
        self.browser.frame()

    def text(self, css):
        return self.browser.js("return document.querySelector(arguments[0]).textContent", css)

    def rows(self):
        """The table's rows: name, place, then cells."""
        return self.browser.js("""return [...document.querySelectorAll('#table tbody tr')].map((r) => [r.querySelector('.name .fn').textContent,
            (r.querySelector('.name .at') || {textContent: ''}).textContent, ...[...r.querySelectorAll('td')].slice(1).map((c) => c.textContent)])""")
