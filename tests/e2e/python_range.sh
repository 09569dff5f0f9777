# run --range: calls of a Python function are executions of a range, and the program does what it does without; a leak
# of 1,024 bytes a step and its twin. Each version of CPython that is here.
need python3
PYTHONDONTWRITEBYTECODE=1
TMPDIR=$PWD/tmp
export PYTHONDONTWRITEBYTECODE TMPDIR
mkdir tmp package .hidden
cp "$ROOT/tests/programs/python_range.py" script.py
cp script.py package/part.py
cp script.py .hidden/part.py
touch package/__init__.py
ln -s script.py link.py
echo 'import sys; sys.was_here = True' >sitecustomize.py
ranges() { sql "SELECT group_concat(name || ' ' || n, ', ') FROM (SELECT name, count(*) n FROM mark WHERE is_range
    AND end_ns IS NOT NULL GROUP BY name ORDER BY name)"; }
# alike WHAT ARG...: the same output as without memprof, but for addresses
alike() {
    what=$1
    shift
    "$python" "$@" 2>&1 | sed 's/0x[0-9a-f]*/0x/g' >expected
    "$MEMPROF" run -q --range step --range Net.names --range nested --range fails -- "$python" "$@" >out 2>&1
    sed 's/0x[0-9a-f]*/0x/g' out | cmp - expected || { cat out; fail "$what: another output"; }
}
python=$(python3 -c 'import sys; print(sys.executable)')
pythons=$python
for other in ${PYTHONS:-"$HOME"/.pyenv/versions/3.13*/bin/python3}; do # PYTHONS: those to try
    ! "$other" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || pythons="$pythons $other"
done
export LEAK=1024
for python in $pythons; do
    alike "$python" script.py 20
    equal "$python" 'Net.names 1, fails 1, nested 4, step 20' "$(ranges)"
    "$MEMPROF" report out.db --every step --python-only >got
    contains 'the leak' got 'Steady growth: +1024.0 B an execution, by line:'
    contains 'its line' got "  +1024.0 B  step  script.py:$(grep -n kept.append script.py | cut -d: -f1)"
    # what is only the step's own is gone at its end
    equal 'net growth of a step' 1024 "$("$MEMPROF" report out.db --every step --csv | sed -n 10p | cut -d, -f13)"
done
python=$(python3 -c 'import sys; print(sys.executable)')
LEAK=0 "$MEMPROF" run -q --range step -- "$python" script.py 20 >out
"$MEMPROF" report out.db --every step >got
contains 'the twin' got 'Nothing grows steadily.'
for how in link.py ./package/../script.py -m\ package.part -W\ ignore\ -um\ package.part; do
    # shellcheck disable=SC2086
    alike "$how" $how 8
    equal "$how" 'Net.names 1, fails 1, nested 4, step 8' "$(ranges)"
done

# a Python that does not say what its command line was
for old in "$HOME"/.pyenv/versions/3.9*/bin/python3; do
    [ -x "$old" ] || continue
    "$MEMPROF" run -q --range step -- "$old" -m package.part 8 >out
    equal "$old -m" 'step 8' "$(ranges)"
done

# by module and by file; what is not there, or cannot be
for file in .hidden/part.py ./.hidden/part.py ../.hidden/part.py; do
    "$MEMPROF" run -q --range "$file:step" -- "$python" .hidden/part.py 8 >out
    equal "$file" 'step 8' "$(ranges)"
done
echo 'import sys; sys.argv = ["x", "8"]; import package.part' >user.py
"$MEMPROF" run -q --range package.part:step --range part.py:fails --range step --range script.py:step \
    --range package.part:generate --range part.py:coroutine --range json:nothing -- "$python" user.py >out 2>err
equal 'of a module' 'fails 1, step 8' "$(ranges)"
equal 'lines about those that are not recorded' 5 "$(wc -l <err)"
contains 'not in the script' err '--range step: not recorded: no Python function of that name was loaded'
contains 'a generator' err '--range package.part:generate: not recorded: a generator'
contains 'a coroutine' err '--range part.py:coroutine: not recorded: a coroutine'
"$MEMPROF" run -q --range forward --range stp -- "$python" script.py 8 >out 2>err
contains 'the end of a name' err "--range forward: not recorded: no Python function of that name was loaded; is it"
contains 'the whole name' err "; is it 'Net.forward'?"
contains 'those that there are' err "the program's own file has Net.forward, Net.__secret, Net.names, step, nested,"
equal 'nothing is left in TMPDIR' '' "$(ls -A tmp)"
for bad in '' step: ':step' 'a step'; do
    status=0
    "$MEMPROF" run --range "$bad" -- true 2>err || status=$?
    equal "--range '$bad'" 2 $status
    contains "--range '$bad'" err 'expected FUNC of the program'
done
# a program that fails keeps its status; in one step with a rule
status=0
"$MEMPROF" run -q --range step -- "$python" script.py x >out 2>&1 || status=$?
equal 'a program that fails' 1 $status
export LEAK=1024
"$MEMPROF" check -q --range step --max-growth-per step=1024 -- "$python" script.py 50 >out || fail 'check: kept'
status=0
"$MEMPROF" check -q --range step --max-growth-per step=1023 -- "$python" script.py 50 >out || status=$?
equal 'check: broken' 1 $status
