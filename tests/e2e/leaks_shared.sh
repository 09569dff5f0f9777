# A stack that two programs have in common, of a library's thread with no main() below it: what each of them left is its
# own, wherever it is that first allocated there.
cat >lib.c <<'E'
#include <pthread.h>
#include <stdlib.h>
void *volatile kept;
static void *run(void *size)
{
    kept = malloc((size_t)size);
    return NULL;
}
void worker(size_t size)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, (void *)size);
    pthread_join(thread, NULL);
}
E
cat >first.c <<'E'
#include <stdlib.h>
extern void *volatile kept;
void worker(size_t size);
int main(int argc, char **argv)
{
    (void)argv;
    worker(100);
    if (argc == 1)
        free(kept);
    for (int i = 0; i < 3; i++)
        if (system("./second"))
            return 1;
    return 0;
}
E
cat >second.c <<'E'
#include <stddef.h>
void worker(size_t size);
int main(void)
{
    worker(5000);
    return 0;
}
E
"$CC" -O1 -g -fno-builtin -shared -fPIC -o libshared.so lib.c -lpthread
for program in first second; do "$CC" -O1 -g -fno-builtin -o $program $program.c ./libshared.so; done
# leaks OPTION...: bytes and blocks of the program's, exit status
leaks() {
    code=0
    "$MEMPROF" leaks --json --error-exitcode 9 "$@" >leaks.json || code=$?
    python3 -c 'import json, sys
d = json.load(open("leaks.json"))
print(d["end_bytes"], d["end_count"], int(sys.argv[1]))' $code
}

record_ok ./first
equal "one site" "1 15000 3" "$(value "SELECT count(*) || ' ' || sum(s.end_bytes) || ' ' || sum(s.end_count) FROM site s
    JOIN site_line USING(site_id) JOIN line USING(line_id) JOIN function USING(function_id) WHERE name = 'run'")"
equal "it freed its own" "0 0 0" "$(leaks)"
"$MEMPROF" leaks >leaks.txt
contains "nothing is its own" leaks.txt "Nothing of the program's was live at the end."
contains "both others are named" leaks.txt "(sh, second); --process PID"
"$MEMPROF" check --max-leak 0 --max-leak-blocks 0 out.db >check.txt || fail "--max-leak: $(cat check.txt)"
leaks --all >/dev/null
equal "all" 3 "$(python3 -c 'import json
print(sum(r["end_count"] for r in json.load(open("leaks.json"))["leaks"] if r["function"] == "run"))')"
pid=$(sql "SELECT pid FROM process WHERE exe LIKE '%/second' LIMIT 1")
equal "one of the others" "5000 1 9" "$(leaks --process "$pid")"

record_ok ./first keep
equal "it kept its own" "100 1 9" "$(leaks)"
equal "the largest of its own" 100 "$(python3 -c 'import json
print(json.load(open("leaks.json"))["leaks"][0]["largest_bytes"])')"
"$MEMPROF" check --max-leak 100 out.db >check.txt || fail "--max-leak 100: $(cat check.txt)"
"$MEMPROF" check --max-leak 99 out.db >check.txt && fail "--max-leak 99: kept"

# where another one allocates first, the site is not the program's, but what it had there is
record_ok sh -c './second; exec ./first keep'
equal "after another" "100 1 9" "$(leaks)"
at_least "what the others had" 20000 "$(python3 -c 'import json
print(json.load(open("leaks.json"))["other_programs_bytes"])')"

# without events the process that first allocated there has to stand for all of them
rm -f out.db
"$MEMPROF" run -q --aggregate -o out.db -- ./first || fail "--aggregate"
equal "without events" "15000 3 9" "$(leaks)"
