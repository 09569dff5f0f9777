# A process that nobody may look at, after an exec that failed: it has not become another program, and is recorded on.
# Who may do anything may look at it: so as somebody else.
if [ "$(id -u)" = 0 ]; then
    need setpriv
    chmod 777 .
    setpriv --reuid=65534 --clear-groups --inh-caps=-all "$MEMPROF" info --help >/dev/null 2>&1 ||
        skip 'another user may not run memprof here'
    MEMPROF_PLAIN=$MEMPROF
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups --inh-caps=-all "%s" "$@"\n' \
        "$MEMPROF_PLAIN" >as_nobody
    chmod 755 as_nobody
    MEMPROF=$PWD/as_nobody
fi
record_ok "$PROGRAMS/silent"
equal "what came later" "300000|3000000|300000" "$(by_function later | cut -d'|' -f1-3)"
equal "processes" "1|exit" "$(sql "SELECT count(*) || '|' || group_concat(end_kind) FROM process")"
