#!/bin/sh
# tests/bench/diff_pairs.sh: records twenty pairs of runs of real programs and checks that the rows of `memprof diff`
# add up to what the totals of the two files differ by: by every key, of every statistic that can be added. The totals
# are the collector's own (table total), read by SQLite's shell; of the looks at present pages those of report --by
# device. Prints a line a pair; a part of them is in `make check` (tests/e2e/diff_sums.sh). Environment: BUILD.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
memprof=$build/memprof
for tool in sqlite3 gawk mawk perl git xmllint python3 gcc g++ tar find; do
    command -v "$tool" >/dev/null || { echo "diff_pairs: $tool is not installed"; exit 77; }
done
inputs=$build/bench/diff-inputs
for percent in 1 2; do
    sh tests/bench/inputs.sh "$inputs-$percent" $percent
done
work=$(mktemp -d "${TMPDIR:-/tmp}/memprof-pairs-XXXXXX")
trap 'rm -rf "$work"' EXIT

keys='line function file module device stack op'
# column of the rows, and what the table total has for it
summed='alloc_count=alloc_count alloc_bytes=alloc_bytes free_count=free_count free_bytes=free_bytes
    temporary_count=temporary_count temporary_bytes=temporary_bytes at_peak_bytes=peak_active_bytes
    at_peak_count=peak_active_count end_bytes=end_active_bytes end_count=end_count lifetime_ns=lifetime_ns
    net_growth_bytes=end_active_bytes' # nothing was live at the start
looked='resident_bytes resident_shared_bytes resident_huge_bytes swapped_bytes untouched_bytes resident_end_bytes'

take() { # NAME PROGRAM [ARG]...
    name=$1
    shift
    nice "$memprof" run -q -o "$work/$name.db" -- "$@" >/dev/null 2>"$work/err" </dev/null || true
    [ -f "$work/$name.db" ] || { cat "$work/err"; echo "diff_pairs: no recording of $*"; exit 1; }
}

total() { # EXPRESSION: new less old, over all devices
    sqlite3 "$work/new.db" "ATTACH '$work/old.db' AS old;
        SELECT (SELECT coalesce(sum($1), 0) FROM main.total WHERE kind $2) -
        (SELECT coalesce(sum($1), 0) FROM old.total WHERE kind $2)"
}

by_device() { # SIDE COLUMN
    "$memprof" report "$work/$1.db" --by device --json |
        python3 -c 'import json, sys; print(sum(r.get(sys.argv[1]) or 0 for r in json.load(sys.stdin)["rows"]))' "$2"
}

failed=0 pairs=0 sums=0
same() { # KEY COLUMN EXPECTED
    got=$("$memprof" diff "$work/old.db" "$work/new.db" --by "$1" --sort "$2" --csv |
        sqlite3 :memory: -cmd '.import --csv /dev/stdin d' 'SELECT coalesce(sum(difference), 0) FROM d')
    sums=$((sums + 1))
    [ "$got" = "$3" ] && return
    echo "  $pair, by $1, $2: rows $got, totals $3"
    failed=$((failed + 1))
}

pair() { # NAME: old.db and new.db are there
    pair=$1 before=$sums wrong=$failed
    pairs=$((pairs + 1))
    for both in $summed; do
        expected=$(total "${both#*=}" "= 'all'")
        for key in $keys; do
            same "$key" "${both%%=*}" "$expected"
        done
    done
    expected=$(total peak_active_bytes "<> 'all'")
    for key in $keys; do
        same "$key" at_kind_peak_bytes "$expected"
    done
    looks=$(for side in old new; do
        sqlite3 "$work/$side.db" 'SELECT count(*) > 0 FROM resident_scan'
    done | tr -d '\n')
    [ "$looks" != 11 ] || for column in $looked; do
        expected=$(($(by_device new "$column") - $(by_device old "$column")))
        for key in $keys; do
            same "$key" "$column" "$expected"
        done
    done
    rows=$("$memprof" diff "$work/old.db" "$work/new.db" --csv | tail -n +2 | wc -l)
    stacks=$("$memprof" diff "$work/old.db" "$work/new.db" --by stack --csv | tail -n +2 | wc -l)
    events=$(for side in old new; do
        sqlite3 "$work/$side.db" "SELECT value FROM meta WHERE key = 'event_count'"
    done | tr '\n' ' ')
    printf '| %s | %s | %s | %s | %d | %d |\n' "$1" "$(echo "$events" | cut -d ' ' -f 1)" \
        "$(echo "$events" | cut -d ' ' -f 2)" "$rows, $stacks" $((sums - before)) $((failed - wrong))
}

echo '| pair | events, old | new | rows by line, by stack | sums | that differ |'
echo '|---|---|---|---|---|---|'
for program in gawk sqlite3 xmllint perl cc1 git; do
    take old sh "$inputs-1/run-$program"
    take new sh "$inputs-2/run-$program"
    pair "$program, inputs of 1 and 2 %"
done
rows='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)'
take old sqlite3 :memory: "$rows SELECT count(*) FROM n"
take new sqlite3 :memory: "CREATE TABLE t(a, b); $rows INSERT INTO t SELECT i, hex(i) FROM n; SELECT max(b) FROM t"
pair 'sqlite3, two queries'
take old gawk 'BEGIN { for (i = 0; i < 2000; i++) a[i] = i; print length(a) }'
take new gawk 'BEGIN { for (i = 0; i < 2000; i++) a[i] = i "x"; n = asort(a, b); print n }'
pair 'gawk, two programs'
take old gawk 'BEGIN { for (i = 0; i < 2000; i++) a[i] = i "x"; print length(a) }'
take new mawk 'BEGIN { for (i = 0; i < 2000; i++) a[i] = i "x"; print length(a) }'
pair 'gawk and mawk'
take old python3 -c 'import json; print(len(json.dumps(list(range(2000)))))'
take new python3 -c 'import csv, io; f = io.StringIO(); csv.writer(f).writerows([[i] for i in range(2000)])'
pair 'python3, json and csv'
take old env PYTHONMALLOC=malloc python3 -c 'x = [str(i) for i in range(500)]'
take new env PYTHONMALLOC=malloc python3 -c 'import decimal; x = [decimal.Decimal(i) for i in range(500)]'
pair 'python3, its objects'
take old python3 -m tokenize tests/page/shown.py
take new python3 -m pydoc json
pair 'python3, tokenize and pydoc'
take old perl -e 'my %h; $h{$_} = "x$_" for 1 .. 3000; print scalar keys %h'
take new perl -e 'my @a = map { "x$_" } 1 .. 3000; print join(",", sort @a) =~ tr/x//'
pair 'perl, two programs'
take old xmllint --noout "$inputs-1/list.xml"
take new xmllint --noout --xpath 'count(//item[@kind="3"])' "$inputs-1/list.xml"
pair 'xmllint, two options'
take old git -C "$inputs-1/history" log -p -n 5 main
take new git -C "$inputs-1/history" blame main -- dir0/file0.txt
pair 'git, log and blame'
printf '#include <stdio.h>\nint main(void) { return printf("x"); }\n' >"$work/c.c"
printf '#include <map>\n#include <string>\nint main() { std::map<std::string, int> m; return m["x"]; }\n' >"$work/c.cpp"
take old gcc -O0 -o "$work/c" "$work/c.c"
take new gcc -O2 -g -o "$work/c" "$work/c.c"
pair 'gcc with cc1, as, ld'
take old gcc -O0 -c -o "$work/c.o" "$work/c.c"
take new g++ -O2 -c -o "$work/c.o" "$work/c.cpp"
pair 'gcc and g++'
take old tar cf "$work/t.tar" -C "$PWD" docs
take new tar czf "$work/t.tar" -C "$PWD" docs tests
pair 'tar with gzip'
take old sh -c "find '$PWD/docs' -name '*.md' | sort"
take new sh -c "find '$PWD/tests' -name '*.sh' -print0 | sort -z | xargs -0 grep -c record"
pair 'sh, find, sort, grep'
take old bash -c 'for ((i = 0; i < 300; i++)); do a[i]=$i; done; echo ${#a[@]}'
take new bash -c 'declare -A a; for ((i = 0; i < 300; i++)); do a[k$i]=$i; done; echo ${!a[@]}'
pair 'bash, two kinds of arrays'
echo "$pairs pairs, $sums sums, $failed that differ"
[ $failed = 0 ]
