# Lines of documents, scripts and tables (.def) have at most 120 columns. Exempt are lines with an address, which cannot
# be broken, and rows of Markdown tables (they begin with `|`): a row is one line by Markdown's rules, and a sentence
# split over two rows reads as two cells. Manual pages are made by tools/man.c and wrapped by man.
cd "$ROOT"
list=$(ls README.md CHANGELOG.md CONTRIBUTING.md docs/*.md check demo .ci/run tools/* tests/*.sh tests/*/*.sh \
    */*.def */*/*.def */*/*/*.def 2>/dev/null | grep -v '\.c$\|^build')
at_least "documents, scripts and tables" 100 "$(printf '%s\n' "$list" | wc -l)"
# gawk and mawk count bytes in some locales; python3 counts characters
need python3
printf '%s\n' "$list" | python3 -c '
import sys
for path in sys.stdin.read().split():
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        table = path.endswith(".md") and line.startswith("|")
        if len(line) > 120 and not table and "://" not in line:
            print(f"{path}:{number}: {len(line)} columns")' >"$OLDPWD/wide"
[ ! -s "$OLDPWD/wide" ] || {
    cat "$OLDPWD/wide"
    fail "lines of more than 120 columns"
}
