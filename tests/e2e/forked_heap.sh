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
contains "why there is more than in the report" segments.txt "which 'report' counts in the parent alone"
lacks "left out" segments.txt "left out"
