# What keeps a recording from saying much is said, with the next step: code without lines or symbols, cut stacks.
need strip
cp "$SAMPLES/net" whole
cp whole names && strip -g names
cp whole bare && strip -s bare
for name in whole names bare; do
    record_ok ./$name
    "$MEMPROF" report out.db >$name.txt
    "$MEMPROF" report out.db --json >$name.json
done
lacks "a program with debug information" whole.txt '! '
contains "a program with names only" names.txt "! 100 % of the peak is in code without line information, most of it\
 in names: compile it with -g (of a program that you did not build, take the debug information that its maker offers)"
contains "a program without symbols" bare.txt '! 100 % of the peak is in code without symbols, most of it in bare'
equal "in JSON" '0 1 1' \
    "$(for name in whole names bare; do python3 \
    -c 'import json, sys; print(len(json.load(sys.stdin)["advice"]))' <$name.json; done | paste -sd' ')"

# What a runtime maps for its objects: its own line is nobody's to change. It is known by its file's name.
cat >zend.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    size_t size = 32 << 20;
    void *heap = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *own = malloc(1 << 20);
    memset(heap, 1, size);
    return own == heap;
}
EOF
"$CC" -O1 -fno-builtin -o php8.2 zend.c
cp php8.2 phpx
for name in php8.2 phpx; do
    RUN_OPTIONS=
    record_ok ./$name
    "$MEMPROF" report out.db >$name.txt
    "$MEMPROF" report out.db --html=$name.html >page.out
    mv out.db $name.db
done
# 32 of 33 MiB and what the C library has beside them
contains "a runtime's maps" php8.2.txt "! 96 % of the peak was mapped by PHP for itself. PHP's values are inside these\
 maps: with USE_ZEND_ALLOC=0 in its environment each is a block of malloc, and memory_limit bounds them. memprof knows\
 no lines of PHP scripts"
contains "its line" php8.2.html "This was mapped by PHP for itself.</p><p class=\"next\">PHP&#39;s values are inside"
lacks "no advice on that line" php8.2.html "Making this one line hold less"
lacks "nor on its symbols" php8.2.txt "is in code without"
lacks "another program's" phpx.txt "for itself"
contains "another program's line" phpx.html "Making this one line hold less"
# no part is more than the whole, not in a damaged file either
sqlite3 php8.2.db "UPDATE account SET at_peak_bytes = 9223372036854775807 WHERE scope = 'module'"
"$MEMPROF" report php8.2.db >damaged.txt
contains "a damaged file's share" damaged.txt "! 100 % of the peak was mapped by PHP for itself"

# An interpreter's lines are its own C code's, and not what is asked for: what tells those of its scripts comes first.
cat >objects.c <<'EOF'
#include <stdlib.h>
#include <string.h>
int main(void)
{
    return memset(malloc(32 << 20), 1, 32 << 20) == NULL;
}
EOF
"$CC" -O1 -fno-builtin -o ruby3.1 objects.c
cp ruby3.1 php8.2
for name in ruby3.1 php8.2; do
    record_ok ./$name
    "$MEMPROF" report out.db >$name.txt
done
contains "Ruby's lines" ruby3.1.txt "% of the peak is in code without line information, most of it in ruby3.1. memprof\
 knows no lines of Ruby scripts, only those of Ruby's own code; with require 'objspace',\
 ObjectSpace.trace_object_allocations_start at the start and ObjectSpace.dump_all at the end give each object's. To see\
 Ruby's own lines, compile it with -g"
contains "PHP's lines" php8.2.txt "most of it in php8.2. memprof knows no lines of PHP scripts"

# samples/net: pool_alloc is called by forward and others, and they by main: one frame is not enough for anything
RUN_OPTIONS='--depth 1'
record_ok ./whole
"$MEMPROF" report out.db >cut.txt
contains "cut stacks" cut.txt \
    '% of the allocations have cut stacks, whose outer callers are not known: record again with a larger --depth'

# Python's arenas: nothing is missing. Stacks whose Python frames are the same are one.
if command -v python3 >/dev/null; then
    RUN_OPTIONS=
    cat >arenas.py <<'EOF'
import json
def load(n):
    return [json.loads('[%s]' % ','.join(str(k + i) for k in range(200))) for i in range(n)]
kept = load(4)
kept.append([bytearray(70000 + i) for i in range(3)])
EOF
    python=$(command -v python3)
    record_ok "$python" arenas.py
    "$MEMPROF" report out.db --json >python.json
    equal "Python's arenas" 'True False' \
        "$(python3 -c 'import json, sys; d = json.load(sys.stdin); 
print(*(any("inside its arenas" in t for t in d[k]) for k in ("advice", "notes")))' <python.json)"
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "on the page" page.html '<strong>Advice:</strong> Python'
    lacks "on the page" page.html 'Not whole:'
    cat >stacks.py <<'EOF'
def one(i):
    return [str(i)]
def load(n):
    return [one(i) for i in range(n)]
kept = load(400)
EOF
    PYTHONMALLOC=malloc
    export PYTHONMALLOC
    record_ok "$python" -S stacks.py # without site and json: a fifth of the stacks
    unset PYTHONMALLOC
    "$MEMPROF" leaks out.db --python-only --json --all --top 0 >merged.json
    "$MEMPROF" report out.db --by stack --python-only --sort end.bytes --top 0 --json >stacks.json
    "$MEMPROF" leaks out.db --json --all --top 0 >all.json
    python3 - <<'EOF' || fail "stacks of Python lines alone"
import collections, json
merged, stacks, every = (json.load(open(n + ".json")) for n in ("merged", "stacks", "all"))
def shown(rows):
    return collections.Counter((r["device"], r["kind"], r.get("before_main"),
                                *((f["function"], f["file"], f["line"]) for f in r["frames"])) for r in rows)
for rows in (merged["leaks"], stacks["rows"]):
    assert rows and max(shown(rows).values()) == 1, shown(rows).most_common(2)
for key in ("end_bytes", "end_count"):
    whole = sum(r[key] for r in every["leaks"])
    assert whole == sum(r[key] for r in merged["leaks"]) == sum(r[key] for r in stacks["rows"]), key
assert len(merged["leaks"]) < len(every["leaks"])
EOF
    for only in '' --python-only; do
        "$MEMPROF" leaks out.db $only --json |
            python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["library_bytes"], d["before_main_bytes"])'
    done | uniq >noise
    equal "noise, by whole stacks" 1 "$(wc -l <noise | tr -d ' ')"
fi

# a report takes of a line with blocks of many sizes their mean, not the first one's: (3 * 40 MB + 16 MB) / 1,000,003
cat >mixed.c <<'END'
#include <stdlib.h>
void *volatile p;
__attribute__((noinline)) static void churn(size_t size) { free(p = malloc(size)); }
int main(void)
{
    for (int i = 0; i < 3; i++)
        churn(40000000);
    for (int i = 0; i < 1000000; i++)
        churn(16);
}
END
"$CC" -g -O1 -fno-builtin -o mixed mixed.c
record_ok ./mixed
"$MEMPROF" report --json >report.json
contains "the mean of a line" report.json "allocated 1,000,003 blocks of 135 B in the mean"
