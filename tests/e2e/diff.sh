# memprof diff: what is the same row in two recordings, and by how much it changed.
. "$ROOT/tests/lib.sh"

# build NAME FLAGS...: NAME.c into NAME; rec NAME [ARG]...: NAME.db
build() {
    name=$1
    shift
    "$CC" "$@" -o "$name" "$name.c"
}
rec() { "$MEMPROF" run -q -o "$1.db" -- "./$@" >/dev/null 2>run.err || { cat run.err; fail "recording $1"; }; }
# rows OLD NEW BY COLUMNS: what differs, as lines of COLUMNS separated by |
rows() {
    "$MEMPROF" diff "$1" "$2" --by "$3" --csv >rows.csv
    sqlite3 :memory: -cmd '.import --csv rows.csv d' "SELECT $4 FROM d ORDER BY 1"
}

# --- three lines inserted above a cache that grows from 10 x 5000 to 10 x 8000 bytes: 30000 bytes are 29.30 KiB
cache_sources a.c b.c
build a -g -O0
build b -g -O0
rec a
rec b
"$MEMPROF" diff a.db b.db >got
cat got
contains 'the row' got '+29.30 KiB'
contains 'the row' got 'moved 3 -> 6'
contains 'the row' got '  make  '
equal 'rows and totals' 2 "$(grep -c '+29.30 KiB' got | tr -d ' ')"
for by in line function; do
    equal "by $by" "10|10|1" "$(rows a.db b.db $by \
        'alloc_count_old, alloc_count_new, difference = 30000 AND old = 50000 AND new = 80000')"
done
equal 'the line' 'moved|make|3|6' "$(rows a.db b.db line 'match, function, old_line, line')"
equal 'the file' 'renamed|a.c|b.c' \
    "$(rows a.db b.db file "match, replace(old_file, '$PWD/', ''), replace(file, '$PWD/', '')")"
equal 'the program' 'renamed|30000' "$(rows a.db b.db module 'match, difference')"
equal 'the stack' 'same|30000' "$(rows a.db b.db stack 'match, difference')"
equal 'the device' 'same|30000|host' "$(rows a.db b.db device 'match, difference, device')"
equal 'no operator' '30000' "$(rows a.db b.db op difference)"
equal 'the other way round' 'moved|6|3|-30000' "$(rows b.db a.db line 'match, old_line, line, difference')"
for by in line function file module device stack op; do
    "$MEMPROF" diff a.db a.db --by $by >got
    contains "a file against itself, by $by" got 'Nothing differs.'
    equal "its rows, by $by" 0 "$("$MEMPROF" diff a.db a.db --by $by --csv | tail -n +2 | wc -l)"
done
"$MEMPROF" diff a.db b.db --json >got.json
equal 'JSON' '30000|30000|1|moved' "$(sqlite3 :memory: "SELECT j ->> '$.totals[0].difference',
    j ->> '$.rows[0].difference', j ->> '$.row_count', j ->> '$.rows[0].match'
    FROM (SELECT CAST(readfile('got.json') AS TEXT) j)")"

# the same program without debug information: which line it was is not known any more, not line 0
"$CC" -O0 -o b b.c
"$MEMPROF" run -q -o bare.db -- ./b
"$MEMPROF" diff a.db bare.db >got
contains 'a line that is lost' got ' by name, line 3 -> unknown  make '
"$MEMPROF" diff bare.db a.db >got
contains 'a line that is found' got ' by name, line unknown -> 3  make '
equal 'it did not move' 'renamed|3||30000' "$(rows a.db bare.db line 'match, old_line, line, difference')"

# --- lines within a function. No source is at hand: it was written over
# lines NAME LINE:BLOCKS...: a program whose function work() allocates BLOCKS times 100 bytes at each LINE, and lets go
# of nothing
lines() {
    name=$1
    shift
    {
        printf '#include <stdlib.h>\nchar *kept[1000];\nint n;\nvoid work(void) {\n'
        at=5
        for spot; do
            while [ $at -lt "${spot%:*}" ]; do
                echo
                at=$((at + 1))
            done
            echo "for (int i = 0; i < ${spot#*:}; i++) kept[n++] = malloc(100);"
            at=$((at + 1))
        done
        printf '}\nint main(void) { work(); }\n'
    } >work.c
    "$CC" -g -O0 -o work work.c
    "$MEMPROF" run -q -o "$name.db" -- ./work
    rm work.c
}
moves() { rows "$1" "$2" line "iif(match = 'new', '-', old_line) || '>' || iif(match = 'gone', '-', line) || ' ' ||
    difference || ' ' || match" | sort | tr '\n' ';'; }
lines one 10:1 20:2
lines longer 10:1 20:5
equal 'nothing moved' '20>20 300 same;' "$(moves one.db longer.db)"
lines shifted 12:2 22:3
equal 'both moved' '10>12 100 moved;20>22 100 moved;' "$(moves one.db shifted.db)"
lines added 10:1 20:2 25:7
equal 'a line more' '->25 700 new;' "$(moves one.db added.db)"
equal 'a line less' '25>- -700 gone;' "$(moves added.db one.db)"
lines between 10:1 15:4 20:3
equal 'one between' '->15 400 new;20>20 100 same;' "$(moves one.db between.db)"
# neighbours that move by one: their order says 10 > 11, 11 > 12, their numbers 11 > 11; the counts decide for the order
lines near 10:3 11:5
lines nearer 11:3 12:5
lines other 11:2 12:6
equal 'the counts decide' '' "$(moves near.db nearer.db)"
equal 'nothing decides' '->11 200 new;->12 600 new;10>- -300 gone;11>- -500 gone;' "$(moves near.db other.db)"

# --- the same with the source's text: which lines are which is known
text() {
    printf '%s\n' '#include <stdlib.h>' 'char *kept[100];' 'int n;' 'void work(void) {' "$@" '}' \
        'int main(void) { work(); }' >work.c
    "$CC" -g -O0 -o work work.c
}
text 'kept[n++] = malloc(100);' 'kept[n++] = malloc(200);'
"$MEMPROF" run -q --source -o first.db -- ./work
text 'kept[n++] = malloc(50);' 'kept[n++] = malloc(200);' '  kept[n++] = malloc(100);'
"$MEMPROF" run -q --source -o second.db -- ./work
equal 'by the text' '->5 50 new;' "$(moves first.db second.db)"
text 'kept[n++] = malloc(50);' 'kept[n++] = malloc(200);' 'kept[n++] = malloc(300);'
"$MEMPROF" run -q --source -o third.db -- ./work
equal 'a line that was rewritten' '->7 300 new;5>5 -50 same;' "$(moves first.db third.db)"
text 'kept[n++] = malloc(200);' 'kept[n++] = malloc(100);'
"$MEMPROF" run -q --source -o swapped.db -- ./work
equal 'lines that were swapped' '' "$(moves first.db swapped.db)"

# --- another directory; of two files of one name there, each is the one of its directory
for where in old new; do
    mkdir -p $where/app/x $where/app/y
    size=100
    [ $where = old ] || size=300
    for part in x y; do
        cat >$where/app/$part/part.c <<END
#include <stdlib.h>
char *${part}_make(void) { return malloc($size); }
END
    done
    echo 'char *x_make(void), *y_make(void); int main(void) { return !x_make() + !y_make(); }' >$where/app/main.c
    "$CC" -g -O0 -o $where/app/program "$PWD"/$where/app/main.c "$PWD"/$where/app/x/part.c "$PWD"/$where/app/y/part.c
    "$MEMPROF" run -q -o $where.db -- $where/app/program
done
equal 'another directory' 'renamed|app/x/part.c|app/x/part.c|200
renamed|app/y/part.c|app/y/part.c|200' "$(rows old.db new.db file \
    "match, replace(old_file, '$PWD/old/', ''), replace(file, '$PWD/new/', ''), difference")"
equal 'its lines' 'renamed|x_make|2|2|200
renamed|y_make|2|2|200' "$(rows old.db new.db line 'match, function, old_line, line, difference')"

# --- compilers' clones: the names of the symbol table, without debug information
for where in old new; do
    size=100 name=work
    [ $where = old ] || size=164 name=work.constprop.0.isra.0
    cat >clone.c <<END
#include <stdlib.h>
__attribute__((noinline)) char *work(void) { return malloc($size); }
int main(void) { return !work(); }
END
    "$CC" -O1 -fno-optimize-sibling-calls -c clone.c -o clone.o
    objcopy --redefine-sym work=$name clone.o
    "$CC" -o clone clone.o
    "$MEMPROF" run -q -o clone_$where.db -- ./clone
done
equal 'a clone' 'clone|work|work.constprop.0.isra.0|64' \
    "$(rows clone_old.db clone_new.db function 'match, old_function, function, difference')"

# --- without symbols: offsets of another build say nothing, so its module is one row
for where in old new; do
    size=100
    [ $where = old ] || size=132
    cat >bare.c <<END
#include <stdlib.h>
__attribute__((noinline)) char *one(void) { return malloc($size); }
__attribute__((noinline)) char *two(void) { return malloc($size); }
int main(void) { return !one() + !two(); }
END
    "$CC" -O1 -fno-optimize-sibling-calls -Wl,--build-id -o bare bare.c
    strip bare
    "$MEMPROF" run -q -o bare_$where.db -- ./bare
done
equal 'a module that was built anew' 'module|64' "$(rows bare_old.db bare_new.db line 'match, difference')"
"$MEMPROF" diff bare_old.db bare_new.db >got
contains 'its name' got 'bare (no symbols)'

# one build in both: the offset is the row, and who called it is said
cat >part.c <<'END'
#include <stdlib.h>
static __attribute__((noinline)) char *inner(size_t size) {
    char *p = malloc(size);
    if (p)
        p[0] = 1;
    return p;
}
char *entry(size_t size) {
    char *p = inner(size);
    return p ? p + 1 : p;
}
END
cat >user.c <<'END'
#include <stdlib.h>
char *entry(size_t);
int main(int argc, char **argv) { return argc < 2 || !entry(atoi(argv[1])); }
END
"$CC" -O1 -fno-optimize-sibling-calls -fPIC -shared -Wl,--build-id -o libpart.so part.c
strip libpart.so
"$CC" -O1 -o user user.c ./libpart.so
rec user 100
mv user.db user_old.db
rec user 132
equal 'an offset of one build' 'same|entry|32|' "$(rows user_old.db user.db line 'match, caller, difference, function')"
"$MEMPROF" diff user_old.db user.db >got
contains 'its caller' got '<- entry'

# --- a wrapper that is new: without --skip all blocks went to it
for where in old new; do
    sed "s/WRAPPER/$([ $where = old ] && echo malloc || echo wrapper)/" >wrapped.c <<'END'
#include <stdlib.h>
char *wrapper(size_t size) { return malloc(size); }
static char *user(size_t size) { return WRAPPER(size); }
int main(int argc, char **argv) { return argc < 2 || !user(atoi(argv[1])); }
END
    build wrapped -g -O0
    rec wrapped $([ $where = old ] && echo 100 || echo 150)
    mv wrapped.db wrapped_$where.db
done
equal 'a wrapper' 'user|gone|-100
wrapper|new|150' "$(rows wrapped_old.db wrapped_new.db function 'function, match, difference')"
"$MEMPROF" diff wrapped_old.db wrapped_new.db --by function --skip wrapper --csv >rows.csv
equal 'without it' 'user|same|50' \
    "$(sqlite3 :memory: -cmd '.import --csv rows.csv d' 'SELECT function, match, difference FROM d')"

# --- what is kept behind the peak comes before a small difference at the peak; what only peaks otherwise is counted
cat >behind.c <<'END'
#include <stdlib.h>
char *kept;
static void *grown(size_t size) { return malloc(size); }
static void *peak(size_t size) { return malloc(size); }
int main(int argc, char **argv) {
    free(peak(argc > 1 ? 100016 : 100000));
    kept = grown(argc > 1 ? 9000 : 5000);
    (void)argv;
}
END
build behind -g -O0
rec behind
mv behind.db behind1.db
rec behind more
"$MEMPROF" diff behind1.db behind.db >got
cat got
equal 'the leak first' 'grown peak' "$(awk '/behind.c:/ { printf "%s%s", s++ ? " " : "", $(NF - 1) }' got)"
"$MEMPROF" diff behind1.db behind.db --sort peak >got
equal 'as it is sorted' 'peak grown' "$(awk '/behind.c:/ { printf "%s%s", s++ ? " " : "", $(NF - 1) }' got)"

cat >overlap.c <<'END'
#include <stdlib.h>
static char *block(void) { return malloc(100); }
int main(int argc, char **argv) {
    char *high = malloc(5000), *a, *b;
    free(high);
    a = block();
    if (argc > 1)
        b = block(), free(a);
    else
        free(a), b = block();
    free(b);
    (void)argv;
}
END
build overlap -g -O0
rec overlap
mv overlap.db overlap1.db
rec overlap together
"$MEMPROF" diff overlap1.db overlap.db --by function >got
cat got
contains 'own peaks alone' got 'Nothing differs in these.'
contains 'own peaks alone' got '1 more: only own peaks or temporary blocks changed'
"$MEMPROF" diff overlap1.db overlap.db --by function --sort own.peak >got
equal 'sorted by them' '100 B 200 B' "$(awk '/ block / { print $1, $2, $3, $4 }' got)"
lacks 'sorted by them' got 'more:'

# --- the same name in another directory
for v in 1 2; do
    mkdir -p from$v
    cp behind.c from$v/part.c
    "$CC" -g -O0 -o part from$v/part.c
    "$MEMPROF" run -q -o part$v.db -- ./part $(seq $((v - 1))) >/dev/null
done
"$MEMPROF" diff part1.db part2.db >got
contains 'which directory' got 'renamed from from1/ '

# --- several recordings of a side: 'steady' doubles, 'loose' has ranges that overlap
cat >noise.c <<'END'
#include <stdlib.h>
static char *steady(size_t size) { return malloc(size); }
static char *loose(size_t size) { return malloc(size); }
int main(int argc, char **argv) { return argc < 3 || !steady((size_t)atoi(argv[1])) || !loose((size_t)atoi(argv[2])); }
END
build noise -g -O0
run=0
for sizes in '1000 5000' '1010 7000' '1020 6000' '2000 6500' '2040 9000' '2020 5500'; do
    run=$((run + 1))
    # shellcheck disable=SC2086
    rec noise $sizes
    mv noise.db n$run.db
done
"$MEMPROF" diff n1.db n2.db n3.db --new n4.db n5.db n6.db --by function --csv >rows.csv
equal 'medians' 'loose|6000|6500|500|1
steady|1010|2020|1010|0' "$(sqlite3 :memory: -cmd '.import --csv rows.csv d' \
    "SELECT function, old, new, difference, is_noise FROM d ORDER BY 1")"
mv rows.csv named.csv
# patterns are expanded here, so that the shell's order and limits do not matter
"$MEMPROF" diff 'n[1-3].db' --new 'n[4-6].db' --by function --csv >rows.csv
cmp named.csv rows.csv || fail 'patterns and names say two things'
"$MEMPROF" diff n1.db 'n?.db' --by function --csv >rows.csv
equal 'a pattern without --new' 'loose steady' "$(sqlite3 :memory: -cmd '.import --csv rows.csv d' \
    "SELECT group_concat(function, ' ') FROM (SELECT function FROM d ORDER BY 1)")"
bad 1 'none*: no such file, and none that matches' diff n1.db 'none*'
bad 2 '--html compares two recordings, not 4' diff n1.db 'n[1-3].db' --html
"$MEMPROF" diff n1.db n2.db n3.db --by function --new n4.db n5.db n6.db >got
equal 'noise comes last' 'steady loose' "$(awk '/ (steady|loose) / { for (i = 1; i <= NF; i++)
    if ($i == "steady" || $i == "loose") printf "%s%s", s++ ? " " : "", $i }' got)"
contains 'noise' got ' noise '
"$MEMPROF" diff n6.db --by function --csv --new n1.db n2.db >rows.csv
equal 'one run within the range of others is noise' 'loose|500|1
steady|-1015|0' "$(sqlite3 :memory: -cmd '.import --csv rows.csv d' \
    'SELECT function, difference, is_noise FROM d ORDER BY 1')"

# --- a module of Python that was renamed: f keeps 30000 bytes more, what it had in it tells. Another one went, and one
# with a function of that name came: one name of several says nothing. Who has python3 alone would skip all of it
if command -v python3 >/dev/null; then
    printf 'import %s as m, %s as o\nkept = m.f(), m.Cache().fill(), o.load()\n' old_name gone >one.py
    printf 'import %s as m, %s as o\nkept = m.f(), m.Cache().fill(), o.load()\n' new_name came >two.py
    module='def f():\n    return bytes(%s)\nclass Cache:\n    def fill(self):\n        return bytes(200000)\n'
    # shellcheck disable=SC2059
    printf "$module" 100000 >old_name.py
    # shellcheck disable=SC2059
    printf "# a line more\n$module" 130000 >new_name.py
    others='def a():\n    return bytes(7000)\ndef %s():\n    return a()\ndef load():\n    return bytes(%s), %s()\n'
    # shellcheck disable=SC2059
    printf "$others" b 60000 b >gone.py
    # shellcheck disable=SC2059
    printf "$others" c 50000 c | sed 's/\<a\>/d/' >came.py
    for script in one two; do
        PYTHONHASHSEED=0 "$MEMPROF" run -q -o $script.db -- python3 -B $script.py || fail "recording $script.py"
    done
    names="replace(old_file, '$PWD/', ''), replace(file, '$PWD/', ''), difference"
    equal 'a Python file that was renamed' 'renamed|old_name.py|new_name.py|30000' \
        "$(rows one.db two.db file "match, $names" | grep 'old_name')"
    equal 'the script and the others' 'gone|gone.py
new|came.py' "$(rows one.db two.db file "match, replace(file, '$PWD/', '')" | grep -E '[|](one|two|gone|came)[.]py$' |
            grep -v '^renamed')"
    equal 'its function' 'moved|old_name.py|new_name.py|30000' \
        "$(rows one.db two.db function "match, $names, function" | sed -n 's/|f$//p')"
    equal 'its line' 'moved|2|3|30000' \
        "$(rows one.db two.db line 'match, old_line, line, difference, function' | sed -n 's/|f$//p')"
    equal 'its stack' 1 "$(rows one.db two.db stack 'match, difference' | grep -c '^same|30000$')"
    equal 'what did not change' '' "$(rows one.db two.db function function | grep Cache || true)"
    equal 'another file with that name' 'gone|-60033
new|50033' "$(rows one.db two.db function 'match, difference, function' | sed -n 's/|load$//p')"
fi
