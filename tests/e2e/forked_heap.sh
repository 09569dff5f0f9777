# report --segments lists the heap of every process by its pid and name, those of forked children too: with what they
# allocated themselves, and what they have of their parent's.
need python3
record_ok "$PROGRAMS/forked_heap"
"$MEMPROF" report --segments --by heap --json out.db >heaps.json
pids=$(value "SELECT group_concat(pid, ' ') FROM (SELECT pid FROM process ORDER BY pid)" | tail -n 1)
equal "heaps" "forked_heap main arena 1000000 1000 0 0 0
first main arena 1000000 2000 1 500000 500
first own mappings 1048576 1 1 0 0
second main arena 1000000 2000 1 500000 500
second own mappings 1048576 1 1 0 0" "$(python3 -c 'import json, sys
heaps = json.load(open("heaps.json"))
heaps = heaps if isinstance(heaps, list) else next(v for v in heaps.values() if isinstance(v, list))
for h in sorted(heaps, key=lambda h: (h["is_forked"], h["process"], h["name"])):
    print(h["process"], h["name"], h["live_bytes"], h["live_count"], h["is_forked"],
        h["inherited_bytes"], h["inherited_count"])')"
equal "pids" "$pids" "$(python3 -c 'import re
pids = re.findall(r"\"pid\": (\d+)", open("heaps.json").read())
print(*sorted(set(pids), key=int))')"
"$MEMPROF" report --segments out.db >segments.txt
contains "a child" segments.txt "second"
contains "what a child has of its parent" segments.txt "(inherited: blocks that a forked process has of its parent"
contains "lines of children" segments.txt "What keeps the heaps of forked children from shrinking, by line"
# not to be taken for what is reserved: a name of its own, and whose it is in there
contains "why there is more than in the report" segments.txt "only there in 'peak reserved' of 'report')"
lacks "another figure of that name" segments.txt " reserved  "
lacks "left out" segments.txt "left out"

# A recording of before its frees in children were kept.
sqlite3 out.db "UPDATE meta SET value = 'own' WHERE key = 'forked_heap'"
"$MEMPROF" report --segments out.db >segments.txt
contains "older: what is not known" segments.txt "(?: of a process that was forked"
lacks "older" segments.txt "inherited"
"$MEMPROF" report --segments --by heap --json out.db >heaps.json
equal "older: nothing of pages" 4 \
    "$(grep -c '"pinned_page_bytes": null.*"is_forked": 1.*"inherited_bytes": null' heaps.json)"

# Pages by line, against each process's own count of them, and what malloc_trim(0) gives back.
record_ok "$PROGRAMS/forked_pages" trim
"$MEMPROF" report --segments --by line --csv --top 0 out.db >lines.csv
"$MEMPROF" report --segments --by heap --csv --top 0 out.db >heaps.csv
# said NAME FIELD: of the program's line of that name, one of its numbers
said() { awk -v name="$1" -v field="$2" '$1 == name { split($0, part, /[ |]/); print part[field] }' run.out; }
sum() { printf '%d\n' "$(($(said child "$1") + $(said grandchild "$1")))"; }
of_line() { # FUNCTION IS_FORKED IS_INHERITED
    sqlite3 :memory: ".import --csv lines.csv l" "SELECT live_count, pinned_bytes, process_count FROM l WHERE function =
        '$1' AND is_forked = $2 AND is_inherited = $3"
}
of_heap() { # PROCESS
    sqlite3 :memory: ".import --csv heaps.csv h" "SELECT pinned_page_bytes, shared_page_bytes, held_page_bytes,
        inherited_count, live_count FROM h WHERE process = '$1'"
}
equal "the parent's own" "$(said parent 2)|$(said parent 3)|1" "$(of_line keep_old 0 0)"
equal "what it allocated after the fork" "$(said parent 8)|$(said parent 9)|1" "$(of_line keep_late 0 0)"
equal "which no child has" "" "$(of_line keep_late 1 0)$(of_line keep_late 1 1)"
equal "inherited by a child and its child" "$(sum 2)|$(sum 3)|2" "$(of_line keep_old 1 1)"
equal "inherited from the child" "$(said grandchild 4)|$(said grandchild 5)|1" "$(of_line keep_own 1 1)"
equal "a child's own" "$(said child 4)|$(said child 5)|1" "$(of_line keep_own 1 0)"
equal "a grandchild's own" "$(said grandchild 6)|$(said grandchild 7)|1" "$(of_line keep_leaf 1 0)"
equal "the child's heap" \
    "$(($(said child 3) + $(said child 5)))|$(said child 10)|$(said child 11)|$(said child 2)|$(said child 4)" \
    "$(of_heap child)"
ask() { sqlite3 :memory: ".import --csv $1.csv t" "SELECT $2"; } # FILE COLUMNS
equal "lines against heaps" \
    "$(ask heaps "sum(pinned_page_bytes + shared_page_bytes), total(held_page_bytes) FROM t WHERE is_forked = 1")" \
    "$(ask lines "sum(pinned_bytes), total(held_bytes) FROM t WHERE is_forked = 1")"
free=$(ask heaps "held_page_bytes + 49152 FROM t WHERE process = 'grandchild'") # with some of what was its top
at_least "malloc_trim in the grandchild gave back, in %" 95 "$((100 * $(said fell 2) / free))"
at_most "malloc_trim in the grandchild gave back, in %" 102 "$((100 * $(said fell 2) / free))"
# while the child had not done anything, whatever its parent did meanwhile
at=$(value "SELECT start_ns / 1000 + 200000 FROM process WHERE process_id = 2")
"$MEMPROF" report --segments --by heap --csv --top 0 --at "$at us" out.db >heaps.csv
equal "at the fork" "$(said fork 3)|0|$(said fork 11)|$(said fork 2)|0" "$(of_heap child)"

# A child that outlives its parent: its heap is all there is, and nothing says that there is none.
cat >orphan.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *keep[2000];

int main(void)
{
    for (int i = 0; i < 1000; i++)
        memset(keep[i] = malloc(1000), 1, 1000);
    int pipes[2], byte;
    if (pipe(pipes))
        return 1;
    if (fork())
        _exit(0);
    close(pipes[1]);
    if (read(pipes[0], &byte, 1)) /* the parent is gone */
        return 1;
    for (int i = 1000; i < 2000; i++) {
        memset(keep[i] = malloc(1000), 1, 1000);
        usleep(100); /* its heap is sampled meanwhile */
    }
    usleep(100000);
    return 0;
}
EOF
"$CC" -g -O1 -o orphan orphan.c
record ./orphan
at=$(value "SELECT CAST(max(end_ns) - 50000000 AS INTEGER) FROM process")
equal "the parent was gone" 1 "$(value "SELECT count(*) FROM process WHERE end_ns < $at")"
"$MEMPROF" report --segments --at "$(awk "BEGIN { printf \"%.9f\", $at / 1e9 }")" out.db >orphan.txt
contains "the child's heap" orphan.txt "(inherited: blocks that a forked process has of its parent"
lacks "its heap is one" orphan.txt "No segments"
