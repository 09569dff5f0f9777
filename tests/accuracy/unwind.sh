# Stacks are identical to libunwind's over real programs, and through libraries that come and go. (More stacks:
# tests/unwind/run.sh.)
need gawk sqlite3 xmllint perl git python3 awk
echo 'int unw_backtrace(void **, int); int main(void) { return unw_backtrace(0, 0); }' >has.c
"$CC" -o has has.c -lunwind 2>/dev/null || skip 'libunwind-dev is not installed'
STACKS=8000 BUILD="$BUILD/unwind-test" sh "$ROOT/tests/unwind/run.sh" 2
