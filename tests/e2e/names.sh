# samples/views
# Names of blocks and of views of them: numbers of samples/views.c's first comment. A name is of the block that it was
# said of, from birth to death, and of none that takes its address later.
"$MEMPROF" run -q -o out.db "$SAMPLES/views" >stdout.txt
contains "the address was taken again" stdout.txt "the same address"
names() { # COLUMNS WHERE
    "$MEMPROF" sql --csv out.db "SELECT $1 FROM v_name WHERE $2" | tail -n +2
}
equal "the block" "1048576,1048576,parameter," \
    "$(names 'block_bytes, own_bytes, category, shared_with' "name = 'weights'")"
equal "a part" '"64,1024","1024,1",4,262144,262144,262144,0,parameter,weights' \
    "$(names 'shape, stride, item_bytes, view_bytes, span_bytes, offset_bytes, own_bytes, category, shared_with' \
        "name = 'rows'")"
equal "with gaps" "524288,$((4 * (255 * 1024 + 511 * 2 + 1))),0" \
    "$(names 'view_bytes, span_bytes, offset_bytes' "name = 'columns'")"
equal "backwards" "4096,4096,$((255 * 4096))" "$(names 'view_bytes, span_bytes, offset_bytes' "name = 'reversed'")"
equal "other items" "16,1,0,weights" "$(names 'view_bytes, item_bytes, offset_bytes, shared_with' "name = 'bytes'")"
equal "the freed one" "3000,1" "$(names 'block_bytes, count(*)' "name = 'scratch'")"
equal "many of one name" "17,17,8704" "$(names "count(*), sum(category = 'gradient'), sum(own_bytes)" "name = 'grad'")"
equal "all are gone but two blocks" "6" "$(sqlite3 out.db 'SELECT count(*) FROM block_name WHERE free_ns IS NULL')"
equal "a name of the stack is nobody's" "0" "$(names 'count(*)' "name = 'nothing'")"
line=$(awk '/return memset/ { print NR - 3 }' "$ROOT/samples/views.c")
equal "whose line" "take,$line" "$(names 'function, line' "name = 'late'")"

# The report: at the end, and at instants before a name was said and after its block died.
"$MEMPROF" report out.db --names --json >end.json
python3 - end.json <<'END'
import json, sys
end = json.load(open(sys.argv[1]))
assert [n["name"] for n in end["names"]] == ["weights", "rows", "columns", "reversed", "bytes", "late"], end["names"]
assert (end["named_bytes"], end["named_blocks"]) == (1248576, 2), end
assert 3000 in [u["bytes"] for u in end["unnamed"]], end["unnamed"]
END
live=$(sql "SELECT end_active_bytes FROM v_total WHERE device = 'host' AND kind = 'all'")
"$MEMPROF" report out.db --by name --csv >by.csv
equal "named and not named are all that is live" "$live" \
    "$(awk -F, '$2 == "weights" || $2 == "late" || $2 == "" { s += $3 } END { print s }' by.csv)"
"$MEMPROF" report out.db --by category --csv >by.csv
equal "categories are all that is live" "$live" "$(awk -F, 'NR > 1 { s += $3 } END { print s }' by.csv)"
equal "of parameters" "1048576,1,5" "$(awk -F, '$2 == "parameter" { print $3 "," $4 "," $5 }' by.csv)"
while IFS=, read -r from to; do
    "$MEMPROF" report out.db --names --at "${from}ns" --csv >at.csv
    contains "late had its name from its birth on" at.csv ",late,"
    contains "scratch while it lived" at.csv ",scratch,"
    "$MEMPROF" report out.db --names --at "${to}ns" --csv >at.csv
    lacks "scratch when it was freed" at.csv ",scratch,"
done <<END
$(names 'alloc_ns, end_ns' "name = 'scratch'")
END

# Where none has a name: when some had.
"$MEMPROF" report out.db --names --at 0ns >none.txt
contains "none is left out in silence" none.txt "No block had a name then."
equal "names at the peak" "Next: memprof report --names --at peak   (names that blocks had then)" "$(tail -1 none.txt)"
cp out.db early.db
sqlite3 early.db "UPDATE block_name SET alloc_ns = 1000, free_ns = 2000"
"$MEMPROF" report early.db --names --device host >none.txt
equal "names before it" \
    "Next: memprof report early.db --names --device host --at 1999ns   (before the last block with a name died)" \
    "$(tail -1 none.txt)"
"$MEMPROF" report early.db --names --device host --at 1999ns >some.txt
contains "they are there" some.txt 'weights  '

# What a copy takes: 1,048,576 + 262,144 + 524,288 + 4,096 + 16 + 200,000 name by name; the two blocks by a plan.
"$MEMPROF" report out.db --names --plan >plan.txt
contains "naive" plan.txt "takes 1.94 MiB; memprof_plan"
contains "planned" plan.txt "copies 1.19 MiB in 2 ranges"
"$MEMPROF" report out.db --names --plan --json | python3 -c '
import json, sys
plan = json.load(sys.stdin)
assert plan["naive_bytes"] == 1048576 + 262144 + 524288 + 4096 + 16 + 200000, plan
assert plan["planned_bytes"] == 1048576 + 200000 and plan["planned_ranges"] == 2, plan
assert plan["not_viewed_bytes"] == 0, plan'

# A merge of two keeps both.
cp out.db twin.db
"$MEMPROF" merge -q -o merged.db out.db twin.db 2>/dev/null || "$MEMPROF" merge -o merged.db out.db twin.db >/dev/null
equal "merged" "48,2497152" "$("$MEMPROF" sql --csv merged.db "SELECT count(*), sum(own_bytes * (name IN
    ('weights', 'late'))) FROM v_name" | tail -1)"

# What a program should not say does not end it, and is no damage of the recording.
cat >nothing.c <<'END'
#include <memprof.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char *p = malloc(100);
    (void)argv;
    const struct memprof_view view = {p, 1, 1, {100}, {1}};
    MEMPROF_SCOPE_FIGURES("nothing");
    memprof_view(p, NULL, "n");
    memprof_view(p, &view, NULL);
    memprof_view(p, &view, "");
    memprof_name(p, NULL);
    memprof_name(NULL, "nobody's");
    memprof_category(p, NULL);
    memprof_category(p, "");
    const struct memprof_view deep = {p, 1, argc > 1 ? 17 : 0, {100}, {1}};
    if (argc > 1)
        memprof_view(p, &deep, "too many dimensions");
    int now, counted;
    do { /* nothing may be counted yet, or the collector has no processor */
        now = memprof_figures_now("host", NULL);
        counted = memprof_figures("host", NULL);
    } while (now == MEMPROF_NO_ANSWER || counted == MEMPROF_NO_ANSWER);
    return !(memprof_scope_figures(NULL) && now == MEMPROF_OK && counted == MEMPROF_OK);
}
END
"${CC:-cc}" -I"$ROOT/include" -o nothing nothing.c
"$MEMPROF" run -o out.db ./nothing 2>err || fail "nothing said: status $?: $(cat err)"
lacks "nothing said" err "not whole"
equal "nothing said: names" "0" "$(sqlite3 out.db 'SELECT count(*) FROM block_name')"
"$MEMPROF" run -q -o out.db ./nothing deep || fail "17 dimensions: status $?"
equal "no view" "too many dimensions||100" "$(sql 'SELECT name, shape, view_bytes FROM block_name')"

# A name of a segment's first block is the block's. A segment has the newest name that was said while it was there.
cat >segments.c <<'END'
#include <memprof.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void)
{
    memprof_pool pool = memprof_pool_create("pool"), unnamed = memprof_pool_create(NULL);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *first = malloc(1 << 20), *second = malloc(2 << 20);
    char *third = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, flags, -1, 0);
    memprof_pool_segment(pool, first, 1 << 20);
    memprof_pool_alloc(pool, first, 4096);
    memprof_name(first, "block");
    memprof_pool_segment(pool, second, 2 << 20);
    memprof_name(second, "renamed");
    memprof_pool_alloc(pool, second, 4096);
    memprof_name(second, "its block");
    memprof_pool_segment(unnamed, third, 3 << 20);
    memprof_mark("before");
    memprof_pool_segment_end(unnamed, third);
    munmap(third, 3 << 20);
    mmap(third, 3 << 20, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
    memprof_pool_segment(unnamed, third, 3 << 20);
    memprof_name(third, "the later one");
    return 0;
}
END
"${CC:-cc}" -I"$ROOT/include" -o segments segments.c
"$MEMPROF" run -q -o out.db ./segments
named() { # OPTION...: size and name of each segment
    "$MEMPROF" report out.db --segments --json "$@" | python3 -c '
import json, sys
print(*sorted("%d %s" % (s["size_bytes"] >> 20, s["name"]) for s in json.load(sys.stdin)), sep=", ")'
}
equal "names of segments" "1 pool, 2 renamed, 3 None" "$(named --at mark:before)"
equal "names of segments at the end" "1 pool, 2 renamed, 3 the later one" "$(named)"
equal "of blocks" "block,its block" "$(sqlite3 out.db 'SELECT name FROM block_name ORDER BY 1' | paste -sd,)"

# A file that says of names what cannot be: sums stop at what fits.
sqlite3 twin.db "UPDATE block_name SET span_bytes = 9223372036854775807, block_bytes = -9223372036854775807
    WHERE name = 'weights'" "UPDATE block_name SET span_bytes = -5 WHERE name = 'rows'"
"$MEMPROF" report twin.db --names --plan --json >odd.json
python3 - odd.json <<'PY'
import json, sys
odd = json.load(open(sys.argv[1]))
assert 0 <= odd["planned_bytes"] < 1 << 63 and odd["not_viewed_bytes"] < 0 < odd["unnamed_bytes"], odd
PY

# What a call takes of the program: less than 2 us, and where nothing records, that of a test of a pointer.
"$PROGRAMS/name_cost" >cost.txt
while read -r what ns; do at_most "a $what where nothing records, ns" 50 "$ns"; done <cost.txt
"$MEMPROF" run -q -o out.db "$PROGRAMS/name_cost" >cost.txt
while read -r what ns; do at_most "a $what, ns" 2000 "$ns"; done <cost.txt
