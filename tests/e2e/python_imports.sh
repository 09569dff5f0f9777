# What importing an installed package leaves (its modules' dicts, classes, tables and caches) is the interpreter's line
# in leaks, as its start-up is. What a function of a package keeps for who called it is the caller's, as is what a
# module of the user's own makes while it is imported.
need python3
mkdir -p site-packages/frames
for i in $(seq 30); do
    cat >site-packages/frames/part$i.py <<END
import functools, json, re
table = bytearray(${i}000)
words = {"%d word" % n: [n] for n in range(500)}
@functools.lru_cache(maxsize=None)
def cached(n):
    return bytearray(n)
cached(70_000)
class Frame$i(dict):
    pattern = re.compile("a+|b{$i}")
END
    echo "from .part$i import Frame$i" >>site-packages/frames/__init__.py
done
cat >>site-packages/frames/__init__.py <<'END'
store = []
def keep(size):
    store.append(bytearray(size))
def load():
    import frames.late
END
echo 'table = bytearray(123_000)' >site-packages/frames/late.py
echo 'import frames; mine = bytearray(90_000)' >mine.py
cat >job.py <<'END'
import frames, mine
leak = bytearray(1 << 20)
frames.keep(200_000)
frames.load()
text = open("text").read()
END
python3 -c 'open("text", "w").write("x" * 3_000_000)'
# rows: bytes and function of each
rows() {
    "$MEMPROF" leaks --json --by line "$@" | python3 -c '
import json, sys
for r in json.load(sys.stdin)["leaks"]:
    if r["end_bytes"] > 10_000:
        print(r["end_bytes"], (r["function"] or "?").split(".")[-1], (r["file"] or "?").split("/")[-1])'
}
root=${PYENV_ROOT:-$HOME/.pyenv}/versions
for python in /usr/bin/python3 "$root"/3.9.*/bin/python3 "$root"/3.1[13].*/bin/python3; do
    [ -x "$python" ] || continue
    record_ok env PYTHONPATH=site-packages "$python" job.py
    rows >rows
    # bytearray() has one byte more than it shows; str() a header, and from 3.13 on nothing between it and the file's
    grep -v ' decode \| job.py' rows >others || :
    equal "$python: the user's" "200001 keep __init__.py, 90001 <module> mine.py" \
        "$(sort -rn others | paste -sd, | sed 's/,/, /g')"
    contains "$python: its largest" rows "1048577 <module> job.py"
    equal "$python: a file that was read" 1 "$(awk '$1 > 3000000 && $1 < 3001000' rows | wc -l)"
    "$MEMPROF" leaks >leaks.txt
    contains "$python: the rest is one line" leaks.txt "of Python's own: its start-up, what it imported"
    rows --all >all
    for each in "123001 <module> late.py" "70001 cached part7.py" "30001 <module> part30.py"; do
        contains "$python: --all" all "$each"
    done
done

# A package's code that is run, not imported, is the program.
cat >site-packages/frames/__main__.py <<'END'
import frames
frames.keep(300_000)
END
record_ok env PYTHONPATH=site-packages python3 -m frames
equal "python3 -m" "300001 keep __init__.py" "$(rows)"
