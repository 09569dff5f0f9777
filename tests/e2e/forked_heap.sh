# report --segments lists the heap of every process by its pid and name, those of forked children too: with what they
# allocated themselves, and nothing of pages, which blocks of their parent share.
need python3
record_ok "$ROOT/build/programs/forked_heap"
"$MEMPROF" report --segments --by heap --json out.db >heaps.json
pids=$(value "SELECT group_concat(pid, ' ') FROM (SELECT pid FROM process ORDER BY pid)" | tail -n 1)
equal "heaps" "forked_heap main arena 1000000 1000 0
first main arena 1000000 2000 1
first own mappings 1048576 1 1
second main arena 1000000 2000 1
second own mappings 1048576 1 1" "$(python3 -c 'import json, sys
heaps = json.load(open("heaps.json"))
heaps = heaps if isinstance(heaps, list) else next(v for v in heaps.values() if isinstance(v, list))
for h in sorted(heaps, key=lambda h: (h["is_forked"], h["process"], h["name"])):
    print(h["process"], h["name"], h["live_bytes"], h["live_count"], h["is_forked"])
    assert (h["pinned_page_bytes"] is None) == bool(h["is_forked"])')"
equal "pids" "$pids" "$(python3 -c 'import re
pids = re.findall(r"\"pid\": (\d+)", open("heaps.json").read())
print(*sorted(set(pids), key=int))')"
"$MEMPROF" report --segments out.db >segments.txt
contains "a child" segments.txt "second"
contains "what is not known" segments.txt "(?: of a process that was forked"
# not to be taken for what is reserved: a name of its own, and whose it is in there
contains "why there is more than in the report" segments.txt "only there in 'peak reserved' of 'report')"
lacks "another figure of that name" segments.txt " reserved  "
lacks "left out" segments.txt "left out"

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
contains "the child's heap" orphan.txt "(?: of a process that was forked"
lacks "its heap is one" orphan.txt "No segments"
