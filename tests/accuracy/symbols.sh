# Functions, lines and inline chains of every call site of programs with debug information, against eu-addr2line -i: our
# own two; of Debian, the C library with libc6-dbg (which valgrind needs) and python3 with python3.11-dbg, where they
# are installed.
need python3 eu-addr2line objdump
for file in "$MEMPROF" "$BUILD/libmemprof.so"; do
    python3 "$ROOT/tests/symbols/compare.py" "$PROGRAMS/lookup" "$file" || fail "$file"
done
for file in "$(ldconfig -p | sed -n 's|.*libc.so.6 (libc6,x86-64.*=> ||p' | head -n 1)" /usr/bin/python3.11; do
    [ -r "$file" ] || continue
    id=$(readelf -n "$file" 2>/dev/null | sed -n 's/.*Build ID: //p')
    [ -n "$id" ] && [ -r "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug" ] ||
        continue
    python3 "$ROOT/tests/symbols/compare.py" "$PROGRAMS/lookup" "$(readlink -f "$file")" 2000 || fail "$file"
done
