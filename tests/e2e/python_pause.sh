# The Python module's pause, resume and on_oom.
. "$ROOT/tests/lib.sh"
need python3
export PYTHONDONTWRITEBYTECODE=1
RUN_OPTIONS=--python-module
record_ok python3 "$ROOT/tests/programs/python_pause.py"
# a bytearray asks for one byte more, for a NUL
equal 'told in the main thread' "True [('host', 1, 1, True), ('host', 2, 1, True)] 1024.00 PiB|2" \
    "$(paste -s -d '|' run.out)"
# the first one died in the pause, the last one with the program
equal 'born, and dead' '2|7000008|2' \
    "$(sql "SELECT sum(alloc_count) || '|' || sum(alloc_bytes) || '|' || sum(free_count)
    FROM v_function WHERE function LIKE 'take%' AND kind = 'heap' AND inclusive = 0")"
PYTHONPATH=$("$MEMPROF" python-path) python3 -c 'import memprof
memprof.on_oom(print)
assert memprof.pause() is False and memprof.resume() is False
try:
    bytearray(1 << 60)
except MemoryError:
    print("as ever")' >plain
equal 'without memprof' 'as ever' "$(cat plain)"

echo 'an interpreter that ends'
library=
for try in /usr/lib/x86_64-linux-gnu/libpython3.1[0-4].so.1.0 /usr/lib/x86_64-linux-gnu/libpython3.9.so.1.0 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.9.*/lib/libpython3.9.so.1.0 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-4].*/lib/libpython3.1[0-4].so.1.0; do
    [ -f "$try" ] || continue
    library=$try
    case $try in */versions/*) PYTHONHOME=${try%/lib/*}; export PYTHONHOME ;; *) unset PYTHONHOME ;; esac
    told='host 9223372036854775807|host 9223372036854775806|ended'
    case $try in # a second import of ctypes in one process ends 3.12 by itself
        *3.12.so*) times=1 want="0 $told" ;;
        *) times=2 want="0 $told|$told" ;;
    esac
    rc=0
    "$MEMPROF" run -q --python-module -o end.db "$PROGRAMS/python_oom_end" "$try" $times >told 2>err || rc=$?
    equal "${try##*/}" "$want" "$rc $(paste -s -d '|' told)"
done
[ "$library" ] || skip 'no shared libpython'
