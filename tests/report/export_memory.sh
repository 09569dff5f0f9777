# The memory of an export does not follow the number of events, and little of it the number of sites, whole and in parts
# (--from, --min-size, --process), with other frames (--skip, --native), and of single events: docs/export.md has the
# figures of 100,000,000 events.
. "$ROOT/tests/report/setup.inc"
need python3
recording() { "$PROGRAMS/make_recording" "$@" >/dev/null || fail "no recording"; }
recording small.db 300000 40000
recording events.db 900000 40000
recording sites.db 300000 70000
python3 "$ROOT/tests/report/export_memory.py" "$MEMPROF" small.db events.db sites.db || fail "exports take more memory"
