/* What a program is called by its command line. */
#include "../../report/query/program_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *command, *name;
    int is_script;
} cases[] = {
    {"", "", 0},
    {"''", "", 0},
    {"./a.out", "a.out", 0},
    {"'/opt/my program/run it' x", "run it", 0},
    {"busybox sh", "busybox", 0},
    {"redis-server '*:6379'", "redis-server", 0},
    {"python3 job.py", "job.py", 1},
    {"/usr/bin/python3.11 -u -X faulthandler '/srv/my jobs/job.py' --epochs 3", "job.py", 1},
    {"python3 -Wignore job.py", "job.py", 1},
    {"python3 -m pytest -q", "pytest", 1},
    {"python3 -mpytest -q", "pytest", 1},
    {"python3 -Bm http.server", "http.server", 1},
    {"python3 -c 'import json' x.py", "python3", 0},
    {"python3 -Bc 'import json'", "python3", 0},
    {"python3", "python3", 0},
    {"python3 -", "python3", 0},
    {"python3 - x.py", "python3", 0},
    {"perl -w - x.pl", "perl", 0},
    {"sh - x.sh", "x.sh", 1},
    {"python3 -- job.py", "job.py", 1},
    {"python3-config --libs", "python3-config", 0},
    {"sh build.sh", "build.sh", 1},
    {"sh -c 'make; make install'", "sh", 0},
    {"-sh", "-sh", 0},
    {"bash -o pipefail ./build.sh all", "build.sh", 1},
    {"bash --rcfile rc -ex build.sh", "build.sh", 1},
    {"bash +x -c 'echo $0' build.sh", "bash", 0},
    {"perl -I lib -w t/run.pl", "run.pl", 1},
    {"perl -ne print", "perl", 0},
    {"ruby -rjson app.rb", "app.rb", 1},
    {"ruby -r json app.rb", "app.rb", 1},
    {"node --require ts-node/register server.js", "server.js", 1},
    {"node --max-old-space-size=100 server.js", "server.js", 1},
    {"php -d memory_limit=1G artisan migrate", "artisan", 1},
    {"lua5.4 life.lua", "life.lua", 1},
    {"java -Xmx1g -cp a.jar:b.jar org.example.Main", "org.example.Main", 1},
    {"java -jar /srv/app.jar", "app.jar", 1},
    {"nodejs -r ./hook server.js", "server.js", 1},
    {"luajit -l lib life.lua", "life.lua", 1},
    {"Rscript --vanilla fit.R", "fit.R", 1},
    {"Rscript -e 1", "Rscript", 0},
    {"pythonic job.py", "pythonic", 0},
    {"./job.py --x", "job.py", 0},
    {"python3 -W", "python3", 0},
    {"sh -e -o pipefail ./run.sh now", "run.sh", 1},
    {"python3 scripts/", "scripts/", 1},
    {"python3 -X", "python3", 0},
    {"python3 'unclosed", "unclosed", 1},
    {"/lib64/ld-linux-x86-64.so.2 ./hp", "hp", 1},
    {"/lib64/ld-linux-x86-64.so.2 --preload a.so --inhibit-cache --library-path /x:/y ./hp 3", "hp", 1},
    {"/lib/ld-linux-aarch64.so.1 /usr/bin/python3 -u job.py", "job.py", 1},
    {"/lib/ld-musl-x86_64.so.1 --library-path /x ./hp", "hp", 1},
    {"ld.so --list", "ld.so", 0},
    {"/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", 0},
    {"ld-linux-maker ./hp", "ld-linux-maker", 0},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf name = BUF(1 << 16);
        assert_int_equal(program_name(&name, cases[i].command), cases[i].is_script);
        assert_string_equal(name.length ? name.data : "", cases[i].name);
        buf_free(&name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
