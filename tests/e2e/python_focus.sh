# The lines of Python functions in a window of a running recording come from the window's events alone (focus.h): every
# number is that of the whole report on the finished recording.
need python3
python=python3
"$MEMPROF" run -q -o out.db --python-module "$python" "$ROOT/tests/programs/python_focus.py" rows.json how.json ||
    fail "it"
sound
file=$ROOT/tests/programs/python_focus.py
ask() { "$MEMPROF" lines out.db --json "$@"; }
ask --func hold --func drop --func grow --func work --func beside --file "$file" --during whole >each
ask --file "$file" --during whole --device host >file
ask --func hold --func drop --file "$file" --during 'part#all' >parts
ask --func hold --during whole >name
ask --func hold --file "$file" --to mark:whole >before
equal "several chunks" 1 "$(value "SELECT count(*) > 2 FROM event_chunk WHERE last_ns >=
    (SELECT start_ns FROM mark WHERE name = 'whole') AND first_ns < (SELECT end_ns FROM mark WHERE name = 'whole')")"
"$python" - <<'END'
import json
inside = json.load(open('rows.json'))
how = json.load(open('how.json'))
assert how.pop('all') == 0, 'of the whole run'
assert set(how) == set(inside) and all(how.values()), how  # else it took all symbols and all accounts
assert all(json.load(open(name))['is_focused'] == 0 for name in inside)
for name in inside:
    after = json.load(open(name))['lines']
    assert inside[name] and len(inside[name]) == len(after), (name, inside[name], after)
    for a, b in zip(inside[name], after):
        assert a == b, (name, {key: (a[key], b[key]) for key in a if a[key] != b[key]})
line = next(row for row in inside['each'] if row['function'] == 'drop' and row['alloc_count'])
assert line['alloc_count'] == line['free_count'] == 60000 and line['temporary_count'] > 59000, line
assert line['alloc_bytes'] == 60000 * 2033, line
END
