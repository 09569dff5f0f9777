# Code without a symbol. A library that is called through a pointer is a line, a function and a module of its own, with
# its nearest named caller beside it; one that is called by name works for the line that calls it.
need strip python3
strip -o libplain.so "$PROGRAMS/lib_stripped.so"
cp "$PROGRAMS/stripped" lines
strip -g -o names "$PROGRAMS/stripped"
strip -o none "$PROGRAMS/stripped"

# by KEY WHAT: what the report says of the row of this many allocations of so many bytes in all
by() {
    "$MEMPROF" report out.db --by "$1" --json >by.json
    python3 -c '
import json, sys
for row in json.load(open("by.json"))["rows"]:
    if (row["alloc_count"], row["alloc_bytes"]) == (int(sys.argv[1]), int(sys.argv[2])):
        name = row["function"] or "%s+0x%x" % ((row["module"] or "").split("/")[-1], row["offset"] or 0)
        others = [row["other_callers"]] if row.get("other_callers") else []
        print(name, (row["file"] or row["module"] or "?").split("/")[-1], row.get("caller"), *others)
' "$2" "$3"
}
# adds_up: whatever the key, the rows of the report have every allocation once
adds_up() {
    rm -f rows.*.json
    for key in line function file module thread process device stack; do
        for how in "" "--at end" "--at $peak"; do
            case "$how $key" in *ns\ thread | *ns\ process) continue ;; esac
            # shellcheck disable=SC2086
            "$MEMPROF" report out.db --by $key $how --top 0 --json >"rows.--by $key $how.json"
        done
    done
    python3 - <<'END' || fail "rows do not add up"
import glob, json, sqlite3, sys
want = sqlite3.connect("out.db").execute("SELECT alloc_count, alloc_bytes, free_count, end_active_bytes, "
    "peak_active_bytes FROM v_total WHERE device = ? AND kind = ?", ("host", "all")).fetchone()
live = json.load(open("live.json"))["rows"][0]["live_bytes"]
columns = ("alloc_count", "alloc_bytes", "free_count", "end_bytes", "at_peak_bytes")
files = glob.glob("rows.*.json")
for file in files:
    rows = json.load(open(file))["rows"]
    if "live_bytes" in rows[0]:
        have, expected = sum(r["live_bytes"] for r in rows), live
    else:
        have, expected = tuple(sum(r[c] for r in rows if r[c] is not None) for c in columns), want
        if "--at end" in file:
            have, expected = have[3], want[3]
    if have != expected:
        sys.exit("%s: %s is not %s" % (file, have, expected))
sys.exit(None if len(files) == 22 else "%d reports" % len(files))
END
}

for program in lines names none; do
    record_ok ./$program ./libplain.so
    peak=$(value "SELECT peak_active_ns FROM v_total WHERE device = 'host' AND kind = 'all'")ns
    "$MEMPROF" report out.db --by device --at "$peak" --json >live.json
    case $program in lines) calls="10 10000" ;; *) calls="17 10700" ;; esac
    line=$(by line $calls)
    equal "$program: the library's line" 1 "$(echo "$line" | grep -c '^libplain.so+0x[0-9a-f]* libplain.so ')"
    equal "$program: the library's function" "$line" "$(by function $calls)"
    [ $program = names ] || adds_up
done
equal "without symbols: no caller" None "$(by line 17 10700 | cut -d' ' -f3)"
equal "without symbols: code in no module" "+0x0 ? None" "$(by module 5 250)"
equal "without symbols: the rest is the library's" 10700 \
    "$(value "SELECT alloc_bytes FROM v_module WHERE module LIKE '%/libplain.so' AND NOT inclusive AND kind = 'heap'")"

record_ok ./names ./libplain.so
equal "names: its caller" through_pointer "$(by line 17 10700 | cut -d' ' -f3)"
"$MEMPROF" report out.db --by function >text
contains "names: its caller in the table" text "<- through_pointer"

record_ok ./lines ./libplain.so
equal "lines: its caller" through_pointer "$(by line 10 10000 | cut -d' ' -f3)"
equal "lines: called by name" "by_name stripped.c None" "$(by line 7 700)"
equal "lines: by module" 10000 \
    "$(value "SELECT alloc_bytes FROM v_module WHERE module LIKE '%/libplain.so' AND NOT inclusive AND kind = 'heap'")"
"$MEMPROF" report out.db >text
contains "the advice names the library" text "most of it in libplain.so: compile it with -g (of"
# the same by --skip: what called it in the library, then the line of the program
address=$(by line 10 10000 | cut -d' ' -f1)
"$MEMPROF" report out.db --by line --skip "$address" >text
equal "skipped: its caller in the library" 1 "$(grep -c '10  *0 .*libplain.so+0x.* <- through_pointer' text)"
lacks "skipped: it is gone" text "$address"
"$MEMPROF" report out.db --by line --skip "$address" --csv >address.csv
"$MEMPROF" report out.db --by line --skip "libplain+${address#*+}" --csv >label.csv
equal "skipped: by the page's name" "$(cat address.csv)" "$(cat label.csv)"
pid=$(value "SELECT pid FROM process")
for key in line function file module; do
    "$MEMPROF" report out.db --by $key --csv | sort >whole.csv
    "$MEMPROF" report out.db --by $key --process "$pid" --csv | sort >process.csv
    equal "one process by $key" "$(cut -d, -f1-9,14-19 whole.csv)" "$(cut -d, -f1-9,14-19 process.csv)"
done

# of several callers the one that most of the peak came through, in tables and on the page
cat >plugin.c <<'EOT'
#include <stdlib.h>
static void *make(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("");
    return p;
}
void *(*const plugin_make)(size_t) = make;
EOT
cat >callers.c <<'EOT'
#include <dlfcn.h>
#include <stdlib.h>
static void *(*make)(size_t);
__attribute__((noinline)) static void *first_small(void)
{
    void *p = make(1000);
    __asm__ volatile("");
    return p;
}
__attribute__((noinline)) static void *then_large(void)
{
    void *p = make(5000);
    __asm__ volatile("");
    return p;
}
__attribute__((noinline)) static void *last_small(void)
{
    void *p = make(2000);
    __asm__ volatile("");
    return p;
}
int main(void)
{
    make = *(void *(**)(size_t))dlsym(dlopen("./plugin.so", RTLD_NOW), "plugin_make");
    for (int i = 0; i < 100; i++) /* most of all that is allocated, and nothing of the peak */
        free(first_small());
    return !then_large() + !last_small();
}
EOT
"$CC" -shared -fPIC -O1 -o plugin.so plugin.c
strip plugin.so
"$CC" -g -O1 -o callers callers.c -ldl
record_ok ./callers
equal "three callers" "then_large 2" "$(by line 102 107000 | cut -d' ' -f3-)"
# in each table of a report the same one, though it is not what that is sorted by: the most was allocated by another
"$MEMPROF" report out.db >tables.txt
"$MEMPROF" report out.db --by line --sort alloc.bytes >>tables.txt
"$MEMPROF" report out.db --by line --sort temporary >>tables.txt
"$MEMPROF" leaks out.db --by line >>tables.txt
at_least "tables with the line" 5 "$(grep -c 'plugin.so+0x.* <- ' tables.txt)"
equal "one caller in all tables" "then_large and 2 others" \
    "$(sed -n 's/.*plugin.so+0x.* <- \([a-z_]* and [0-9]* others\).*/\1/p' tables.txt | sort -u)"
"$MEMPROF" report out.db --html=page.html
python3 - >page.txt <<'EOT'
import base64, json, re, zlib
text = open("page.html").read()
data = {key: json.loads(zlib.decompress(base64.b64decode(packed), -15))
        for key, packed in re.findall(r'id="data-(\w+)">([A-Za-z0-9+/=\s]+)<', text) if key == "sites"}["sites"]
lines, names = data["lines"], data["functions"]["name"]
print(*[names[c] + " and " + str(n) for f, c, n in zip(lines["function"], lines["caller"], lines["other_callers"])
        if names[f].startswith("plugin.so+")])
peaks = data["line_peaks"]
print(*[peaks[i + 2] for i in range(0, len(peaks), 3)
        if names[lines["function"][peaks[i]]].startswith("plugin.so+")], file=open("own.txt", "w"))
EOT
equal "three callers, on the page" "then_large and 2" "$(cat page.txt)"
contains "a finding names it as the tables do" page.html ">plugin+0x"
contains "a finding names who called for what is live" page.html "</a> (&lt;- then_large and 1 other)"
lacks "one spelling" page.html "plugin.so+0x" # data is packed
equal "its own peak on the page" 7000 "$(cat own.txt)"
# however narrow its column, how many there are is a part that is not cut
if command -v chromium >/dev/null; then
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=20000 \
        --dump-dom "file://$PWD/page.html" >dom.html 2>chromium.err || { cat chromium.err; fail "chromium"; }
    contains "in the page's table" dom.html '<span>&lt;- then_large</span><span> and 2 others</span>'
fi

# what came through a function by several ways counts together
cat >ways.c <<'EOT'
#include <dlfcn.h>
#include <stdlib.h>
static void *(*make)(size_t);
#define FUNCTION(name)                                                                                                 \
    __attribute__((noinline)) static void *name(size_t size)                                                           \
    {                                                                                                                  \
        void *p = make(size);                                                                                          \
        __asm__ volatile("");                                                                                          \
        return p;                                                                                                      \
    }
FUNCTION(one_way)
FUNCTION(many_ways)
FUNCTION(small_1)
FUNCTION(small_2)
FUNCTION(small_3)
int main(int argc, char **argv)
{
    make = *(void *(**)(size_t))dlsym(dlopen("./plugin.so", RTLD_NOW), "plugin_make");
    int is_one = argc > 1 && *argv[1] == 'o';
    void *p[] = {one_way(3000),
                 many_ways(is_one ? 1000 : 2900), /* each a stack of its own */
                 many_ways(is_one ? 1100 : 1),
                 many_ways(is_one ? 1200 : 1),
                 small_1(is_one ? 1 : 2800),
                 small_2(is_one ? 1 : 2700),
                 small_3(is_one ? 1 : 2600)};
    return !p[0];
}
EOT
"$CC" -g -O1 -o ways ways.c -ldl
record_ok ./ways one # 3000 bytes of 6303; 3300 in three stacks
equal "by several ways" "many_ways 4" "$(by line 7 6303 | cut -d' ' -f3-)"
record_ok ./ways none # the most is 3000 bytes of 14002
equal "none has much" "one_way 4" "$(by line 7 14002 | cut -d' ' -f3-)"

# a finding of what grows names who called for that, whoever holds most
cat >grows.c <<'EOT'
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void *(*make)(size_t);
__attribute__((noinline)) static void *holds_much(void)
{
    void *p = make(50 << 20);
    __asm__ volatile("");
    return p;
}
__attribute__((noinline)) static void *takes_more(void)
{
    void *p = make(20000);
    __asm__ volatile("");
    return p;
}
int main(void)
{
    make = *(void *(**)(size_t))dlsym(dlopen("./plugin.so", RTLD_NOW), "plugin_make");
    int is_there = holds_much() != NULL;
    for (int i = 0; i < 300; i++) {
        is_there &= takes_more() != NULL;
        usleep(1000);
    }
    return !is_there;
}
EOT
"$CC" -g -O1 -o grows grows.c -ldl
record_ok ./grows
equal "holds most" "holds_much 1" "$(by line 301 58428800 | cut -d' ' -f3-)"
"$MEMPROF" report out.db --json >report.json
equal "what grows" "takes_more" "$(python3 -c '
import json, re
for f in json.load(open("report.json"))["findings"]:
    if f["rule"] == "growth":
        print(*re.findall(r"plugin.so\+0x[0-9a-f]+ \(<- (.*?)\)", f["text"]))')"

# a thread's function that is inlined into the C++ library's templates, as Rust's closures are into its library's: the
# instance in the program has it, in the terminal, in the findings and on the page
cat >inlined.cc <<'EOT'
#include <cstdlib>
#include <thread>
void *volatile kept[10];
int main()
{
    std::thread worker([] {
        for (int i = 0; i < 10; i++)
            kept[i] = malloc(1000000);
    });
    worker.join();
}
EOT
"$CXX" -O2 -o inlined inlined.cc -pthread
record_ok ./inlined
equal "inlined into a library's template" 10 "$(value "SELECT alloc_count FROM v_function WHERE function LIKE
    'std::thread::%::_M_run()' AND NOT inclusive AND kind = 'heap' AND alloc_bytes = 10000000")"
"$MEMPROF" report out.db >text
equal "in tables and findings" 0 "$(grep -c '9\.54 MiB.*+0x' text)"
at_least "in tables and findings" 3 "$(grep -c '9\.54 MiB.*_M_run' text)"
"$MEMPROF" report out.db --html=page.html
contains "in the page's findings" page.html '>std::thread::_State_impl&lt;main::'
"$MEMPROF" leaks out.db >leaks.txt
contains "it is no library's" leaks.txt "9.54 MiB in 10 blocks"

# functions of one name in two scopes are two where nothing says where they are declared
cat >scopes.cc <<'EOT'
#include <cstdlib>
void *volatile kept;
namespace a {
__attribute__((noinline)) void work() { kept = malloc(10000000); }
}
namespace b {
__attribute__((noinline)) void work() { a::work(); kept = nullptr; }
}
int main() { b::work(); }
EOT
"$CXX" -O1 -fno-builtin -o scopes scopes.cc
record_ok ./scopes
"$MEMPROF" lines --func work >lines.txt
equal "a heading each" 2 "$(grep -c '^## .*work' lines.txt)"
equal "neither has twice as much" 2 "$(grep -c '^ *9\.54M ' lines.txt)"
