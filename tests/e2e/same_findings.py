"""One engine: page and JSON of a report have the same findings, in the same words, severity and order; the report's lines
are those of its JSON that are for terminals, three at most, first those that are bad or a warning, with a `*`; and what
`memprof advise` says they say, too. Of report.txt, report.json, advise.json and page.html."""
import html
import json
import re

found = json.load(open("report.json"))["findings"]
advised = json.load(open("advise.json"))["findings"]
page = open("page.html").read()
lines = open("report.txt").read().split("\n")
SEVERITIES = {"bad": "bad", "warn": "warning", "info": "info"}


def plain(text):
    return html.unescape(re.sub("<[^>]*>", "", text))


class Card:
    """A finding of the page."""

    def __init__(self, kind, rule, rest):
        def inner(pattern):
            got = re.search(pattern, rest)
            return plain(got.group(1)) if got else ""
        self.severity, self.rule = SEVERITIES[kind], rule
        self.title = re.sub(' <span class="device">.*', "", re.search("<h3>(.*?)</h3>", rest).group(1))
        self.text, self.next = inner("</h3><p>(.*?)</p>"), inner('<p class="next">(.*?)</p>')
        self.saves = inner('<p class="saves">(.*?)</p>')
        self.evidence = re.findall("<dt>(.*?)</dt>", rest)

    def same(self, f):
        return ((self.severity, self.rule, self.title, self.next) == (f["severity"], f["rule"], f["title"], f["next"] or "")
                and self.text.startswith(f["text"]))


def amount(f):
    return f["saved_bytes"] or 0


cards = [Card(*card) for card in re.findall(r'<li class="finding (\w+)" data-rule="(\w+)">(.*?)</li>', page)]
cards = [card for card in cards if card.rule]
assert len(cards) == len(found), (len(cards), found)
for card, f in zip(cards, found):
    assert card.same(f) and card.evidence == list(f["evidence"]), (vars(card), f)
    assert ("nothing" in card.saves) == (f["saved_bytes"] == 0) and bool(card.saves) == bool(f["saved"]), (vars(card), f)


def sentence(f):
    return (f["rule"], f["title"], f["device"], f["text"])


told = [sentence(f) for f in found]
assert all(sentence(f) in told for f in advised), (advised, told)
for severity in ("warning", "info"):
    sums = [amount(f) for f in advised if f["severity"] == severity]
    assert sums == sorted(sums, reverse=True), sums

starred = [line for line in lines if line.startswith("* ")]
alarms = ["* %s: %s" % (f["title"], f["text"]) for f in found if f["severity"] != "info"]
assert all(line in alarms for line in starred) and len(starred) == min(3, len(alarms)), (starred, alarms)
others = ["%s: %s" % (f["title"], f["text"]) for f in found if f["severity"] == "info" and not f["minor"]]
plain = [line for line in lines if line in others]
assert len(starred) + len(plain) == min(3, len(alarms) + len(others)), (starred, plain, alarms, others)
more = [line for line in lines if re.match(r"\(\d+ more like th", line)]
rest = len(alarms) + len(others) - 3
assert [line.split()[0] for line in more] == (["(%d" % rest] if rest > 0 else []), (more, rest)
for f in found:
    line = "%s: %s" % (f["title"], f["text"])
    assert not f["minor"] or (f["severity"] == "info" and line not in lines), f
