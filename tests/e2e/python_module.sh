# The Python module: its figures, ranges, tables and names against what the program knows, and nothing without memprof.
need python3
module=$("$MEMPROF" python-path)
equal "what it prints" "$(dirname "$MEMPROF")/python" "$module"
python=python3
extra=
if has_modules /usr/bin/python3 numpy; then python=/usr/bin/python3 extra=numpy; fi
export PYTHONDONTWRITEBYTECODE=1

# the program's own modules come first, and PYTHONPATH is as it was unless asked
says() { "$@" "$python" -c 'import os; print(os.environ.get("PYTHONPATH"))'; }
equal "untouched" /some/where "$(PYTHONPATH=/some/where says "$MEMPROF" run -q --)"
equal "asked for" "/some/where:$module" "$(PYTHONPATH=/some/where says "$MEMPROF" run -q --python-module --)"
equal "by the environment" "$module" "$(env -u PYTHONPATH MEMPROF_PYTHON=1 "$MEMPROF" run -q -- "$python" -c \
    'import os; print(os.environ.get("PYTHONPATH"))')"

"$MEMPROF" run -q -o out.db --python-module "$python" "$ROOT/tests/programs/python_module.py" $extra >said 2>said.err ||
    { cat said said.err; fail "the program"; }
contains "the table at exit" said.err "Net.step"
equal "as the interpreter ends" "late 1 True" "$(tail -n 1 said)"
lacks "an error" said.err "Error"
contains "its line" said.err "self.kept = bytearray(size)  # the line"
sound
# reports of the recording are no part of it: neither processes of it nor in its figures
cat >report.py <<'END'
import memprof
def held():  # by all but this thread
    now = memprof.figures('host')
    return now.alloc_bytes - now.thread_alloc_bytes
memprof.report(by='line')  # what it imports is there from now on
before = held()
for _ in range(3):
    assert memprof.report(by='line', top=1).rows
assert held() == before, (before, held())
END
for each in "$python" $(ls "$HOME"/.pyenv/versions/3.9.*/bin/python3 2>/dev/null); do
    "$MEMPROF" run -q -o apart.db --python-module "$each" report.py || fail "$each: figures with a report"
    equal "$each: reports left out" 0 "$(DB=apart.db value "SELECT count(*) FROM process WHERE exe LIKE '%memprof%'
        OR not_recorded IS NOT NULL OR (start_kind = 'fork' AND command_line LIKE '%report.py')")"
done
# nothing keeps a name when the collector was killed
cat >killed.py <<'END'
import memprof, os, signal
block = bytearray(100000)
assert memprof.name(block, 'kept') == 1
os.kill(int(os.environ['MEMPROF_SESSION'].split('/')[2]), signal.SIGKILL)
for _ in range(10**6):
    if not memprof.name(block, 'lost'):
        break
os.write(1, b'%d\n' % memprof.name(block, 'lost'))
END
equal "a name that nothing keeps" 0 "$("$MEMPROF" run -q -o killed.db --python-module "$python" killed.py 2>/dev/null)"
# what is executed so by a fork's child and by the program itself, and what that starts in turn
"$MEMPROF" run -q -o apart.db -- sh -c 'MEMPROF_SESSION= sh -c "ls /; ls /; :"; (MEMPROF_SESSION= exec ls /; :)
    MEMPROF_SESSION= exec ls /' >/dev/null
equal "apart" "exec fork" "$(DB=apart.db sql "SELECT group_concat(start_kind, ' ') FROM process")"
equal "the page" 1 "$(grep -c '</html>' page.html)"
"$MEMPROF" lines out.db --func load --during 'epoch 3' --json >after.json
"$python" - <<'END'
import json
keys = ('function', 'line', 'alloc_count', 'alloc_bytes', 'start_bytes', 'code')
inside, after = json.load(open('rows.json')), json.load(open('after.json'))['lines']
inside, after = [[[row[key] for key in keys] for row in rows] for rows in (inside, after)]
assert inside and inside == after, (inside, after)
END
"$MEMPROF" report out.db --by line --during 'epoch 3' --csv >lines.csv
contains "the range in a report" lines.csv ',2000001,'
equal "the mark" 1 "$(value "SELECT count(*) FROM mark WHERE name = 'inside'")"

# without memprof, and of every version of Python that is here
for each in "$python" $(ls "$HOME"/.pyenv/versions/3.9.*/bin/python3 "$HOME"/.pyenv/versions/3.13.*/bin/python3 \
    2>/dev/null); do
    PYTHONPATH=$module "$each" "$ROOT/tests/programs/python_module_plain.py" || fail "$each without memprof"
done

# modules that share memory, element by element
if has_modules /usr/bin/python3 torch; then
    PYTHONPATH=$module /usr/bin/python3 "$ROOT/tests/programs/python_torch_copy.py" || fail "memprof.torch"
fi
