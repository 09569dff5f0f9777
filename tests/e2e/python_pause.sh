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
