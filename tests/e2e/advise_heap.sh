# memprof advise of what glibc takes beside what is asked for: what it says is what mallinfo2() says that the mended
# twin, with the same blocks in one array, has less in use, within 1 %; and no less.
need python3
cat >found.py <<'END'
"""Of each finding of the host about rounding: rule, severity, what it saves, of what, its line."""
import json
for f in json.load(open("advise.json"))["findings"]:
    if f["rule"] in ("tiny", "waste"):
        print(f["rule"], f["severity"], f["saved_bytes"], f["saved_of"], f["function"])
END
advise() {
    record_ok "$PROGRAMS/advise_heap" "$@"
    in_use=$(cat run.out)
    "$MEMPROF" advise out.db --json >advise.json
}
# rounding MODE [RULE BYTES]
rounding() {
    advise "$1"
    equal "$1: what it says" "${2:+$2 warning $3 beside take}" "$(python3 found.py)"
    before=$in_use
    advise "$1" mended
    equal "$1: of the mended one" "" "$(python3 found.py)"
    [ -n "${2:-}" ] || return 0
    at_least "$1: in use, less" "$(($3 * 99 / 100))" "$((before - in_use))"
    at_most "$1: in use, less" "$3" "$((before - in_use))"
}
rounding tiny tiny 3200000 # 48 - 32 for each of 200,000
rounding small tiny 1600000
# one cause for each byte: what tiny blocks take is neither idle nor in fragments
advise many
equal "many: all that it says" "tiny 19200000" "$(python3 -c '
import json
for f in json.load(open("advise.json"))["findings"]:
    print(f["rule"], f["saved_bytes"])')"
"$MEMPROF" report out.db >report.txt
lacks "many: in a report" report.txt "Reserved, but not in use"
rounding few waste 1440000 # 90,000 are not many
rounding waste waste 1600000
rounding pages # 4,096 of 139,264 are less than 5 %
rounding large
# programs without anything to say of it
for program in true 'ls -l /usr/bin' "sqlite3 :memory: 'CREATE TABLE t(a); SELECT count(*) FROM t'"; do
    record_ok sh -c "$program"
    "$MEMPROF" advise out.db --json >advise.json
    equal "$program" "" "$(python3 found.py)"
done
