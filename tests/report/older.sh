# Recordings of before are read: tests/report/older/DATE.txt has the tables and columns that a file had then. What came
# since is taken out of one of today, which then says the same, by every command.
. "$ROOT/tests/report/setup.inc"
# older_of FILE TABLES: takes out of FILE what is not among TABLES
older_of() {
    {
        sqlite3 "$1" "SELECT format('DROP VIEW \"%w\";', name) FROM sqlite_schema WHERE type = 'view'"
        sqlite3 -separator ' ' "$1" "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
            WHERE t.type = 'table' ORDER BY t.name, c.cid" | awk '
            FILENAME == ARGV[1] { for (i = 2; i <= NF; i++) had[$1, $i] = had[$1] = 1; next }
            !had[$1] && !gone[$1]++ { print "DROP TABLE " $1 ";" }
            had[$1] && !(($1, $2) in had) { print "ALTER TABLE " $1 " DROP COLUMN " $2 ";" }' "$2" -
    } >changes.sql
    sqlite3 "$1" <changes.sql || fail "$1: what came since cannot be taken out"
}
# reads FILE COMMAND...: it says something and no error
reads() {
    file=$1 command=$2
    shift 2
    "$MEMPROF" "$command" "$file" "$@" >said 2>err || { cat err; fail "$command $* of a file of $date: what came\
 since must not be needed: tables are in 'later' of report/query/views.c, columns are NULL by older.c beside it"; }
}

# all_read: every command does
all_read() {
    for options in '' '--by line' '--by line --json' '--by function --sort temporary' '--by stack --csv' --frees \
        '--by line --sort resident' '--segments --by line' --transfers '--at peak' '--html=page.html'; do
        # shellcheck disable=SC2086
        reads old/net.db report $options
    done
    for command in leaks lines info advise 'export --format folded -o -' 'export --format rows-csv -o -' \
        'export --format pprof -o p.gz' 'check --max-peak 1G'; do
        # shellcheck disable=SC2086
        reads old/net.db $command
    done
    reads old/net.db sql 'SELECT * FROM v_line'
    for what in 'report --by line' lines leaks 'report --by stack'; do
        set -- ${what#* }
        [ "$what" != "${what#* }" ] || set --
        "$MEMPROF" "${what%% *}" net.db "$@" >today 2>err || fail "$what"
        "$MEMPROF" "${what%% *}" old/net.db "$@" >then 2>err || fail "$what"
        cmp today then || fail "$what says something else of a file of $date"
    done
}

mkdir old
for tables in "$ROOT"/tests/report/older/*.txt; do
    date=$(basename "$tables" .txt)
    cp net.db old/net.db
    older_of old/net.db "$tables"
    all_read
    echo "  $date: $(wc -l <changes.sql) changes"
done

# a column that came since is unknown there: as if one of today's had
date='a day without temporaries'
sed '/^\(site\|account\) /s/ temporary_bytes//' "$tables" >tables
cp net.db old/net.db
older_of old/net.db tables
equal "columns taken out" 2 "$(grep -c 'DROP COLUMN temporary_bytes' changes.sql)"
before=$(cksum <old/net.db)
all_read
equal "the file" "$before" "$(cksum <old/net.db)"
columns='sum(alloc_bytes) > 0, count(temporary_bytes) > 0'
known() { "$MEMPROF" sql --csv "$1" "SELECT $columns FROM v_line" | tail -n 1 | tr -d '\r'; }
equal "known of today's" '1,1' "$(known net.db)"
equal "known of it" '1,0' "$(known old/net.db)"
