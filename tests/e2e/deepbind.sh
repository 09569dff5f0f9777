# A library opened with RTLD_DEEPBIND frees past the hooks, and be it little: who reads what is live is told, and how to
# see it. 40 blocks of 16 bytes are freed by it, three of 1,000 are kept: 43 blocks, 3,640 bytes, of which 3,000 leak.
cat >give.c <<'END'
#include <stdlib.h>
void give_back(void *p) { free(p); }
END
cat >main.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void *kept[3];
/* LIBRARY deep|plain  give|leave  close|stay: opens it, lets it free or not, closes it or not */
int main(int argc, char **argv)
{
    char *given[40];
    void *library = argc > 3 ? dlopen(argv[1], RTLD_LAZY | (*argv[2] == 'd' ? RTLD_DEEPBIND : 0)) : NULL;
    if (!library)
        return 2;
    void (*give_back)(void *);
    *(void **)&give_back = dlsym(library, "give_back");
    for (int i = 0; i < 3; i++)
        kept[i] = malloc(1000);
    for (int i = 0; i < 40; i++)
        given[i] = malloc(16);
    for (int i = 0; i < 40; i++)
        *argv[3] == 'g' ? give_back(given[i]) : free(given[i]);
    return *argv[4] == 'c' ? dlclose(library) : 0;
}
END
"$CC" -g -O1 -fno-builtin -shared -fPIC -Wl,-z,lazy -o lazy.so give.c
"$CC" -g -O1 -fno-builtin -shared -fPIC -Wl,-z,now -o now.so give.c
"$CC" -g -O1 -fno-builtin -o main main.c -ldl
say='opened with RTLD_DEEPBIND'

# told BLOCKS NAME: of out.db
told() {
    "$MEMPROF" leaks out.db >leaks.txt
    contains "$2: blocks" leaks.txt "in $1 blocks, from 2 stacks."
    contains "$2: leaks" leaks.txt "1 module was $say ($2): what it frees is not seen, so some of these blocks may be\
 freed; 'memprof run --deepbind' sees it."
    status=0
    "$MEMPROF" check out.db --max-leak 3000 >check.txt || status=$?
    equal "$2: check" 1 "$status"
    contains "$2: below what leaked" check.txt "1 module was $say ($2)"
    "$MEMPROF" leaks out.db --json >leaks.json
    contains "$2: in JSON" leaks.json "\"not_seen\": \"1 module was $say ($2)"
    "$MEMPROF" check out.db --max-leak 4000 >check.txt || fail "$2: a bound that is kept"
    lacks "$2: kept" check.txt "$say"
    "$MEMPROF" info out.db >info.txt
    contains "$2: info" info.txt "1 module was $say ($2): what it frees is not seen; 'memprof run --deepbind' sees it"
    "$MEMPROF" report out.db >report.txt
    lacks "$2: report" report.txt "$say"
}

# silent WHAT: three blocks are left of one line, and nothing is said
silent() {
    "$MEMPROF" leaks out.db >leaks.txt
    contains "$1: blocks" leaks.txt "2.93 KiB in 3 blocks, from 1 stack."
    "$MEMPROF" info out.db >info.txt
    status=0
    "$MEMPROF" leaks out.db --json >leaks.json
    contains "$1: in JSON" leaks.json '"not_seen": null'
    "$MEMPROF" check out.db --max-leak 0 >check.txt || status=$?
    equal "$1: check" 1 "$status"
    for text in leaks info check; do
        lacks "$1: $text" $text.txt DEEPBIND
        lacks "$1: $text" $text.txt 'not seen'
    done
}

for library in lazy now; do
    for how in stay close; do
        record_ok ./main ./$library.so deep give $how
        told 43 $library.so
    done
    record_ok ./main ./$library.so plain give stay
    silent "$library, not deep"
    RUN_OPTIONS=--deepbind
    record_ok ./main ./$library.so deep give close
    silent "$library, --deepbind"
    RUN_OPTIONS=
done
# a library that is closed twice: glibc answers with an error
cat >twice.c <<'END'
#include <dlfcn.h>
#include <stddef.h>
int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    return !library || dlclose(library) != 0 || dlclose(library) == 0;
}
END
"$CC" -g -O1 -o twice twice.c -ldl
./twice ./now.so || fail "without memprof"
record_ok ./twice ./now.so

# what is bound at its first call, and was not called, has freed nothing
record_ok ./main ./lazy.so deep leave stay
silent "not called"

# a merged file has one of each name; a file from before has no such table
record_ok ./main ./now.so deep give stay
cp out.db one.db
"$MEMPROF" merge one.db out.db -o both.db >/dev/null 2>&1 || fail "merge"
"$MEMPROF" leaks both.db >leaks.txt
contains "merged" leaks.txt "1 module was $say (now.so)"
sqlite3 out.db 'DROP TABLE unhooked_module'
"$MEMPROF" leaks out.db >leaks.txt || fail "a file without the table"
lacks "a file without the table" leaks.txt DEEPBIND
# all that such a file knows of it
sqlite3 out.db "INSERT INTO counter VALUES(1, 'replaced_block', 8, '')"
"$MEMPROF" leaks out.db >leaks.txt
contains "frees that were noticed" leaks.txt "8 blocks were freed by calls that were not seen, and some of these may\
 be, too; 'memprof run --deepbind' sees those of modules $say."
