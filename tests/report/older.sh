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
    "$MEMPROF" "$command" "$file" "$@" >said 2>err || { cat err; fail "$command $* of a file of $date: tables or columns\
 that came since must not be asked of it (views_own of report/query/views.c; docs/design.md, 'A statistic that is counted')"; }
}

mkdir old
for tables in "$ROOT"/tests/report/older/*.txt; do
    date=$(basename "$tables" .txt)
    cp net.db old/net.db
    older_of old/net.db "$tables"
    for options in '' '--by line' '--by line --json' '--by function --sort temporary' '--by stack --csv' --frees \
        '--by line --sort resident' '--segments --by line' --transfers '--at peak' "--html=page.html"; do
        # shellcheck disable=SC2086
        reads old/net.db report $options
    done
    for command in leaks lines info advise 'sql SELECT * FROM v_line' 'export --format folded -o -' \
        'export --format rows-csv -o -' 'export --format pprof -o p.gz' 'check --max-peak 1G'; do
        # shellcheck disable=SC2086
        case $command in
        sql*) reads old/net.db sql "${command#sql }" ;;
        *) reads old/net.db $command ;;
        esac
    done
    for what in 'report --by line' lines leaks 'report --by stack --csv'; do
        # shellcheck disable=SC2086
        "$MEMPROF" ${what%% *} net.db $(case $what in *' '*) echo "${what#* }" ;; esac) >today 2>err || fail "$what"
        # shellcheck disable=SC2086
        "$MEMPROF" ${what%% *} old/net.db $(case $what in *' '*) echo "${what#* }" ;; esac) >then 2>err || fail "$what"
        cmp today then || fail "$what says something else of a file of $date"
    done
    echo "  $date: $(wc -l <changes.sql) changes"
done
