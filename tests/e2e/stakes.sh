# A finding that is about a small part of another one's bytes comes behind it, whatever its rule: on the page, in JSON
# and on the terminal.
rules() { # FILE: of a page
    grep -o '<li class="finding [a-z]*" data-rule="[a-z]*"' "$1" | sed 's/.*data-rule="//; s/"//' | tr '\n' ' '
}
in_json() { # FILE
    sqlite3 :memory: "CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('$1') AS TEXT));
        SELECT group_concat(e.value ->> 'rule', ' ') FROM j, json_each(t, '\$.findings') e
        WHERE NOT (e.value ->> 'minor')"
}

# 1.4 MiB that are there beside 399 MiB that never were
record_ok "$PROGRAMS/stakes"
"$MEMPROF" report --html=page.html out.db >page.out
rules page.html >page.txt
case $(cat page.txt) in
*untouched*leaks*) ;;
*) fail "what is little comes first on the page: $(cat page.txt)" ;;
esac

# 5 MiB beside 57 MiB
record_ok "$PROGRAMS/stakes" held
"$MEMPROF" report --json out.db >report.json
equal "in JSON" "held leaks" "$(in_json report.json)"
"$MEMPROF" report out.db >report.txt
equal "on the terminal" "Free, but kept from the kernel Never freed " \
    "$(sed -n 's/^\* \([A-Z][a-z, ]*\): .*/\1/p' report.txt | tr '\n' ' ')"
# of findings that are about as much the order is that of the rules: as many bytes are never freed as held
sqlite3 out.db "UPDATE site SET end_bytes = end_bytes * 8, alloc_bytes = alloc_bytes * 8 WHERE end_bytes > 1048576;
    UPDATE total SET end_active_bytes = end_active_bytes * 8, peak_active_bytes = peak_active_bytes + 40000000"
"$MEMPROF" report --json out.db >report.json
equal "of about as many bytes" "leaks held" "$(in_json report.json)"
