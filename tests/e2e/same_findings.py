"""One engine: the page has the findings of JSON, in the same words, and the terminal's * lines are those of them that
are bad or a warning, three at most. Of report.txt, report.json and page.html."""
import html
import json
import re

found = json.load(open("report.json"))["findings"]
page = open("page.html").read()
lines = open("report.txt").read().split("\n")
SEVERITIES = {"bad": "bad", "warn": "warning", "info": "info"}


def plain(text):
    return html.unescape(re.sub("<[^>]*>", "", text))


cards = re.findall(r'<li class="finding (\w+)" data-rule="(\w+)"><h3>(.*?)</h3><p>(.*?)</p>(?:<p class="next">(.*?)</p>)?',
                   page)
assert len(cards) == len(found), (cards, found)
for (kind, rule, title, text, then), f in zip(cards, found):
    assert (SEVERITIES[kind], rule) == (f["severity"], f["rule"]), (kind, rule, f)
    assert re.sub(' <span class="device">.*', "", title) == f["title"], (title, f)
    assert plain(text).startswith(f["text"]) and plain(then) == (f["next"] or ""), (text, then, f)
starred = [line for line in lines if line.startswith("* ")]
alarms = ["* %s: %s" % (f["title"], f["text"]) for f in found if f["severity"] != "info"]
assert all(line in alarms for line in starred) and len(starred) == min(3, len(alarms)), (starred, alarms)
more = [line for line in lines if re.match(r"\(\d+ more like th", line)]
assert more == ([line for line in more if line.startswith("(%d " % (len(alarms) - 3))] if len(alarms) > 3 else []), more
for f in found:
    line = "%s: %s" % (f["title"], f["text"])
    assert not f["minor"] or (f["severity"] == "info" and line not in lines), f
