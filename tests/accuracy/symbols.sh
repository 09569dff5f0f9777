# Functions, lines and inline chains of every call site of two programs with debug information, against eu-addr2line -i.
need python3 eu-addr2line objdump
for file in "$MEMPROF" "$BUILD/libmemprof.so"; do
    python3 "$ROOT/tests/symbols/compare.py" "$PROGRAMS/lookup" "$file" || fail "$file"
done
