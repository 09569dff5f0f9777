# Code without a symbol by the name that tables show: 'lines --func' and 'check --max-line' take it, 'check' names what
# grew by it, and a baseline has no rule that holds for one build alone. Its addresses are objdump's, of the plugin
# before it is stripped; its bytes are those that the program asks for.
need strip objdump python3
cat >plugin.c <<'EOT'
#include <stdlib.h>
static void *make(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("");
    return p;
}
static void *twice(size_t size)
{
    void *p = malloc(2 * size);
    __asm__ volatile("");
    return p;
}
void *(*const plugin[2])(size_t) = {make, twice};
EOT
cat >host.c <<'EOT'
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    void *(*const *plugin)(size_t) = dlsym(dlopen("./plugin.so", RTLD_NOW), "plugin");
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    return !plugin[0](size) + !plugin[1](size);
}
EOT
"$CC" -shared -fPIC -O1 -o plugin.so plugin.c
"$CC" -g -O1 -o host host.c -ldl
# name_of FUNCTION: what a table shows of its call of malloc, which is named after where it returns to
name_of() {
    objdump -d --no-show-raw-insn plugin.so | awk -v "label=<$1>:" '$2 == label { inside = 1 }
        inside && /malloc@plt>$/ { getline; sub(":", "", $1); print "plugin.so+0x" $1; exit }'
}
make=$(name_of make) twice=$(name_of twice)
strip plugin.so
# record_as NAME ARGUMENT
record_as() { "$MEMPROF" run -q -o "$1.db" -- ./host "$2" 2>run.err || { cat run.err; fail "recording $1"; }; }
record_as old 100000
record_as new 300000
# check STATUS ARGUMENTS...: its text in got
check() {
    want=$1 status=0
    shift
    "$MEMPROF" check "$@" >got 2>got.err || status=$?
    [ "$want" = $status ] || { cat got got.err; fail "check $*: status $want expected, not $status"; }
}

# what grew: 200,000 and 400,000 bytes more, each by its own name
check 1 new.db --baseline old.db --max-growth 5%
sed -n '/^max-peak/,/^$/p' got >grew
contains 'grew: twice' grew "  +390.62 KiB  $twice"
contains 'grew: make' grew "  +195.31 KiB  $make"
lacks 'grew: no path' grew /plugin.so
check 1 new.db --baseline old.db --max-growth 5% --json
equal 'grew, in JSON' "$twice 400000 $make 200000" "$(python3 -c '
import json
rule = next(r for r in json.load(open("got"))["rules"] if r["rule"] == "max-peak")
print(*(w for c in rule["culprits"] for w in (c["function"], c["difference"])))')"

# its row, by its name, by a pattern and by what the page calls it
for name in "$twice" "plugin*${twice#plugin.so}" "plugin${twice#plugin.so}"; do
    "$MEMPROF" lines new.db --func "$name" --columns own.peak,alloc.count --csv >lines.csv || fail "lines --func $name"
    equal "lines --func $name" "$twice ? 600000 1" "$(python3 -c '
import csv
for r in csv.DictReader(open("lines.csv")):
    print(r["function"], r["file"] or "?", r["own_peak_bytes"], r["alloc_count"])')"
done
"$MEMPROF" lines new.db --func "$twice" --columns own.peak >got
contains 'lines: title' got "## $twice   (no line information)   host"
equal 'lines: row' '585.94K     ?' "$(tail -n 1 got)"
"$MEMPROF" lines new.db --func 'plugin.so+*' --csv >lines.csv
equal 'lines: all of the module' 3 "$(wc -l <lines.csv)"
"$MEMPROF" lines new.db --func '*' --csv >lines.csv
lacks 'lines: a star is for functions' lines.csv plugin.so+
# no_function NAME: what is said of one that is not there
no_function() {
    "$MEMPROF" lines new.db --func "$1" >got 2>got.err && fail "lines --func $1: it is not there"
    lacks "lines --func $1: no pattern that was just tried" got.err "'*$1*'"
    contains "lines --func $1: where names are" got.err "report --by function --inclusive --top 0' lists those"
}
no_function "${twice}0"
contains 'lines: why' got.err 'a name with +0x is of one build of its module'
no_function '*nosuch*'

# its own peak
check 0 new.db --max-line "$twice=600000" --max-line-total "$twice=600000"
check 1 new.db --max-line "$twice=599999"
contains 'max-line: the code' got "  585.94 KiB  $twice"
contains 'max-line: its stack' got "[$twice]"
check 1 new.db --max-line-total 'plugin.so+0x*=599999'
contains 'max-line-total: the code' got "  585.94 KiB  $twice"
lacks 'max-line-total: what is below' got "$make"
check 1 new.db --max-line "plugin${make#plugin.so}=299999"
contains 'max-line: by the name on the page' got "  292.97 KiB  $make"

# a baseline says why it has no rule of it
check 0 new.db --write-baseline base.txt
lacks 'baseline: no rule' base.txt 'max-line plugin'
contains 'baseline: why' base.txt \
    "# Code without a symbol, such as $twice, held 1 % of the peak or more and has no max-line:"
check 0 new.db --rules base.txt
"$MEMPROF" run -q -o own.db -- "$SAMPLES/net" >/dev/null
check 0 own.db --write-baseline base.txt
lacks 'baseline: of a program with symbols' base.txt 'without a symbol'

# another build has it elsewhere
sed 's/^static/__attribute__((aligned(1024))) static/' plugin.c >moved.c
"$CC" -shared -fPIC -O1 -s -o plugin.so moved.c
record_as moved 300000
check 1 moved.db --max-line "$twice=1G"
contains 'another build' got 'no code of that name is in the recording; a name with +0x is of one build of its module'
