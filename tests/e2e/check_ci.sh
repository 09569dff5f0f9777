# A budget beside the source, as continuous integration uses it: a change that leaks fails its build and says where, its
# mended form passes, and one that is meant to cost more brings its budget along.
. "$ROOT/tests/lib.sh"
need git
. "$ROOT/tests/report/junit.inc"
mkdir app
cd app
git init -q . 2>/dev/null
commit() {
    git add -A
    git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false commit -q -m "$1"
}
cat >store.c <<'END'
#include <memprof.h>
#include <stdlib.h>
#include <string.h>
static char *store(int i) {
    char *entry = malloc(100);
    memset(entry, i, 100);
    return entry;
}
int main(void) {
    char *table = calloc(1000, 8);
    for (int i = 0; i < 50; i++) {
        memprof_range_push("request");
        char *entry = store(i);
        free(entry);
        memprof_range_pop();
    }
    free(table);
    return 0;
}
END
# what a job does: build what was pushed, and check it; the log and the XML are what people get to see
cat >job <<'END'
set -e
rm -rf ../checkout
git clone -q . ../checkout
cd ../checkout
$CC -g -O0 -I"$ROOT/include" -o store store.c
GITHUB_WORKSPACE=$PWD "$MEMPROF" check --rules budget.txt --max-growth-per request=0 --warmup 5 --junit ../memory.xml \
    --github -q -o ../ci.db -- ./store >../job.log
END
"$CC" -g -O0 -I"$ROOT/include" -o ../store store.c
"$MEMPROF" run -q -o ../first.db -- ../store
"$MEMPROF" check ../first.db --write-baseline budget.txt
# a table of 8,000 bytes and one entry; 51 allocations
for line in 'max-peak host=8100  # 7.91 KiB' 'max-leak host=0' 'max-allocs host=51' \
    'max-line store.c:main=8000  # 7.81 KiB'; do
    grep -qxF -- "$line" budget.txt || { cat budget.txt; fail "no '$line' in the budget"; }
done
commit 'A store and its budget'
sh ./job || { cat ../job.log; fail 'the first commit does not pass'; }
equal 'failures of the first' 0 "$(xmllint --xpath 'string(//testsuite/@failures)' ../memory.xml)"

# the third request in a row is forgotten: 16 or 17 entries stay
sed -i 's/        free(entry);/        if (i % 3)\n            free(entry);/' store.c
commit 'Keep some entries'
status=0
sh ./job || status=$?
equal 'status of a leak' 1 $status
cat ../job.log
contains 'the leak' ../job.log 'broken  max-leak host'
contains 'its size' ../job.log "1.66 KiB (1,700)"
contains 'where' ../job.log '::error file=store.c,line=5,title=memprof%3A max-leak host::'
contains 'its growth' ../job.log 'broken  max-growth-per request'
valid ../memory.xml
equal 'the failure' 1 "$(xmllint --xpath "count(//testcase[@name='max-leak host']/failure[contains(., 'store.c:5')])" \
    ../memory.xml)"

git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false revert -n HEAD
commit 'Free all entries'
sh ./job || { cat ../job.log; fail 'the mended form does not pass'; }

# a table twice as large is wanted: the budget goes with it, and the change of it is what is reviewed
sed -i 's/calloc(1000, 8)/calloc(2000, 8)/' store.c
commit 'A larger table, forgotten in the budget'
status=0
sh ./job || status=$?
equal 'status of a larger table' 1 $status
"$MEMPROF" check ../ci.db --write-baseline budget.txt
equal 'what is reviewed' '+max-allocated host=21000  # 20.51 KiB
+max-line store.c:main=16000  # 15.62 KiB
+max-peak host=16100  # 15.72 KiB' "$(git diff -U0 budget.txt | grep '^+[a-z]' | sort)"
commit 'Its budget'
sh ./job || { cat ../job.log; fail 'the new budget does not pass'; }
