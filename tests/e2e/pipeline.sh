# A shell pipeline and make -j2: every process is in the tree, standard output is untouched.
record sh -c "'$SAMPLES/leak' 2>&1 | cat | '$SAMPLES/churn' 2>&1; exit 4"
equal "status" 4 $status
sound
equal "programs" "cat,churn,leak" \
    "$(sql "SELECT group_concat(name)
    FROM (SELECT DISTINCT replace(exe, rtrim(exe, replace(exe, '/', '')), '') AS name FROM process
    WHERE start_kind = 'exec' AND process_id > 1 ORDER BY 1)" | sed 's/coreutils/cat/')"
equal "leak" "1000|32000" \
    "$(sql "SELECT sum(alloc_count), sum(alloc_bytes) FROM v_line
    WHERE kind = 'heap' AND file LIKE '%/leak.c' AND function LIKE 'parse_line%'
    AND line = $(awk '/entry->name = malloc/ { print NR }' "$ROOT/samples/leak.c")")"
equal "churn" "200000|9600000" "$(by_function join | cut -d'|' -f1-2)"

need make
printf 'all: a b c\na b c:\n\t@%s >$@\n' "$SAMPLES/net" >Makefile
record_ok make -s -j2
equal "make: three nets" "312|62976|312" "$(by_function forward | cut -d'|' -f1-3)"
"$SAMPLES/net" >expected
for f in a b c; do cmp expected $f || fail "output of $f"; done
equal "make: processes called net" 3 "$(value "SELECT count(*) FROM process WHERE exe LIKE '%/samples/net'")"
