"""One engine: the page has the findings of `memprof advise`, in the same words, order and numbers, and behind them those of
the report that nothing is to be done about; the report's * lines are those of its JSON that are bad or a warning, three
at most. Of report.txt, report.json, advise.json and page.html."""
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
alarms = [f for f in advised if f["severity"] != "info"]
# failures come first; nothing is to be done about them but by what the others say
first = [c for c in cards if c.severity == "bad"]
assert cards[:len(first)] == first and all(c.rule == "failures" for c in first), first
cards = cards[len(first):]
assert len(cards) >= len(advised), (len(cards), advised)
for card, f in zip([c for c in cards if c.severity != "info"][:len(alarms)], alarms):
    assert card.same(f), (vars(card), f)
shown = [card for card in cards if any(card.same(f) for f in advised)]
assert len(shown) == len(advised), ([vars(c) for c in cards], advised)
for card, f in zip(shown, advised):
    assert card.same(f) and card.evidence == list(f["evidence"]), (vars(card), f)
    assert ("nothing" in card.saves) == (f["saved_bytes"] == 0) and bool(card.saves) == bool(f["saved"]), (vars(card), f)
for severity in ("warning", "info"):
    sums = [amount(f) for f in advised if f["severity"] == severity]
    assert sums == sorted(sums, reverse=True), sums
rest = {c.rule for c in cards if c not in shown}
told = {f["rule"] for f in found}
assert rest <= told | {f["rule"] for f in advised} | {"leaks", "growth", "phase"}, (rest, told)
assert told <= {c.rule for c in cards + first}, (told, cards)

starred = [line for line in lines if line.startswith("* ")]
alarms = ["* %s: %s" % (f["title"], f["text"]) for f in found if f["severity"] != "info"]
assert all(line in alarms for line in starred) and len(starred) == min(3, len(alarms)), (starred, alarms)
more = [line for line in lines if re.match(r"\(\d+ more like th", line)]
assert more == ([line for line in more if line.startswith("(%d " % (len(alarms) - 3))] if len(alarms) > 3 else []), more
for f in found:
    line = "%s: %s" % (f["title"], f["text"])
    assert not f["minor"] or (f["severity"] == "info" and line not in lines), f
