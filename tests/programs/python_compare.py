# python_compare.py DATABASE PLACES: whether the stacks of the database are what the program says (python_stacks.py).
# Prints how many allocations were compared; names each difference.
import json, sqlite3, sys

db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
frames = {}
for stack, name, file, line, language in db.execute(
        "SELECT s.stack_id, n.plain_name, f.path, r.line, r.language FROM stack s JOIN frame r USING(address_id) "
        "LEFT JOIN function n USING(function_id) LEFT JOIN file f ON f.file_id = r.file_id WHERE r.language = 'python'"):
    frames[stack] = (name, file, line)
parents = dict(db.execute("SELECT stack_id, parent_id FROM stack"))
cut = {s for s, in db.execute("SELECT stack_id FROM stack WHERE flags & 1")}
sites = {}
for stack, count, size in db.execute(
        "SELECT stack_id, alloc_count, alloc_bytes / alloc_count FROM site WHERE kind = 'heap' AND alloc_count > 0 AND "
        "alloc_bytes = alloc_count * largest_bytes AND largest_bytes > 1 << 20"):
    sites.setdefault(size, []).append((stack, count))

total = wrong = 0
for size, count, expected in json.load(open(sys.argv[2])):
    found = sites.get(size, [])
    stacks = []
    for stack, _ in found:
        chain = []
        while stack:
            if stack in frames:
                chain.append(frames[stack])
            stack = parents[stack]
        stacks.append(chain[::-1])
    total += sum(n for _, n in found)
    # the innermost frame took its traceback on one line and allocates on another
    same = all(len(s) == len(expected) and [list(f) for f in s[:-1]] == expected[:-1]
               and list(s[-1][:2]) == expected[-1][:2] for s in stacks)
    if not same or sum(n for _, n in found) != count:
        wrong += 1
        if wrong <= 3:
            print(f"size {size}, {count} times:\n  expected {expected}\n  found {found} {stacks}")
print(f"{total} allocations, {wrong} places differ")
sys.exit(wrong != 0 or total == 0)
