# Code without a symbol by the name that tables show: 'check' names what grew by it. Its addresses are objdump's, of the
# plugin before it is stripped; its bytes are those that the program asks for.
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
