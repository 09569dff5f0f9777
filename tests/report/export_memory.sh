# The memory of an export does not follow the number of events, and little of it the number of sites, whole and in parts
# (--from, --min-size, --process), with other frames (--skip, --native), and of single events: docs/export.md has the
# figures of 100,000,000 events.
need python3
recording() { "$PROGRAMS/make_recording" "$@" >/dev/null || fail "no recording"; }
# Many more events, and four times the sites, of a small one: what they have in common need not be exported three times.
recording small.db 100000 10000
recording events.db 900000 10000
recording sites.db 100000 40000
python3 "$ROOT/tests/report/export_memory.py" "$MEMPROF" small.db events.db sites.db || fail "exports take more memory"
