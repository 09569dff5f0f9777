# Two static functions of one name in two files, without -g: what each allocated is its own row, with its file beside
# the name; one that is alone keeps its name as it is.
need python3
cat >a.c <<'EOF'
#include <stdlib.h>
void *volatile kept[8];
static __attribute__((noinline)) void *helper(int i, int n)
{
    return kept[i] = malloc((size_t)n);
}
static __attribute__((noinline)) void *alone(int n)
{
    return kept[6] = malloc((size_t)n);
}
void use_a(void)
{
    for (int i = 0; i < 3; i++)
        helper(i, 100000 + i);
    alone(50000);
}
EOF
cat >b.c <<'EOF'
#include <stdlib.h>
extern void *volatile kept[8];
void use_a(void);
static __attribute__((noinline)) void *helper(int i, int n)
{
    return kept[i] = malloc((size_t)n);
}
int main(void)
{
    helper(3, 70000);
    helper(4, 70001);
    use_a();
    return 0;
}
EOF
$CC -O1 -o app a.c b.c
record_ok ./app
rows() { "$MEMPROF" report out.db --csv --top 0 "$@" | tr -d '\r'; }
held() { rows --by "$1" | pick function,alloc_count,alloc_bytes; }
# pick COLUMNS: of the CSV on stdin, by their names
pick() { python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin): print(" ".join(row[c] for c in sys.argv[1].split(",")))' "$1" | sort; }
want='alone 1 50000
helper [a.c] 3 300003
helper [b.c] 2 140001'
equal "by function" "$want" "$(held function)"
equal "by line" "$want" "$(held line)"
equal "leaks" "$want" "$("$MEMPROF" leaks out.db --json | python3 -c 'import json, sys
sums = {}
for leak in json.load(sys.stdin)["leaks"]:
    sum = sums.setdefault(leak["function"], [0, 0])
    sum[0] += leak["end_count"]
    sum[1] += leak["end_bytes"]
for name in sorted(sums): print(name, *sums[name])')"
equal "lines" "## helper [a.c]
## helper [b.c]" "$("$MEMPROF" lines out.db --func helper | grep -o '^## helper \[.\.c\]' | sort)"
equal "the names that a user types" "2 helper" "$(sql "SELECT count(*), plain_name FROM function WHERE raw_name =
    'helper' GROUP BY 2" | tr '|' ' ')"

# With -g the place says which one it is.
$CC -O1 -g -o app a.c b.c
record_ok ./app
equal "with lines" "alone
helper
helper" "$(rows --by function | pick function)"

# Told apart in a diff, too: b's grew.
$CC -O1 -o app a.c b.c
mv app before
sed 's/helper(4, 70001)/helper(4, 90001)/' b.c >b2.c && mv b2.c b.c
$CC -O1 -o app a.c b.c
"$MEMPROF" run -o old.db ./before >/dev/null 2>&1
record_ok ./app
equal "what grew" "helper [b.c] 140001 160001" "$("$MEMPROF" diff old.db out.db --csv --by function | tr -d '\r' |
    pick function,end_bytes_old,end_bytes_new)"
