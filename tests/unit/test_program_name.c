/* What a program is called by its command line. */
#include "../../report/query/program_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *command, *name;
} cases[] = {
    {"", ""},
    {"''", ""},
    {"./a.out", "a.out"},
    {"'/opt/my program/run it' x", "run it"},
    {"busybox sh", "busybox"},
    {"redis-server '*:6379'", "redis-server"},
    {"python3 job.py", "job.py"},
    {"/usr/bin/python3.11 -u -X faulthandler '/srv/my jobs/job.py' --epochs 3", "job.py"},
    {"python3 -Wignore job.py", "job.py"},
    {"python3 -m pytest -q", "pytest"},
    {"python3 -mpytest -q", "pytest"},
    {"python3 -Bm http.server", "http.server"},
    {"python3 -c 'import json' x.py", "python3"},
    {"python3 -Bc 'import json'", "python3"},
    {"python3", "python3"},
    {"python3 -", "python3"},
    {"python3 -- job.py", "job.py"},
    {"python3-config --libs", "python3-config"},
    {"sh build.sh", "build.sh"},
    {"sh -c 'make; make install'", "sh"},
    {"-sh", "-sh"},
    {"bash -o pipefail ./build.sh all", "build.sh"},
    {"bash --rcfile rc -ex build.sh", "build.sh"},
    {"bash +x -c 'echo $0' build.sh", "bash"},
    {"perl -I lib -w t/run.pl", "run.pl"},
    {"perl -ne print", "perl"},
    {"ruby -rjson app.rb", "app.rb"},
    {"ruby -r json app.rb", "app.rb"},
    {"node --require ts-node/register server.js", "server.js"},
    {"node --max-old-space-size=100 server.js", "server.js"},
    {"php -d memory_limit=1G artisan migrate", "artisan"},
    {"lua5.4 life.lua", "life.lua"},
    {"java -Xmx1g -cp a.jar:b.jar org.example.Main", "org.example.Main"},
    {"java -jar /srv/app.jar", "app.jar"},
    {"python3 scripts/", "scripts/"},
    {"python3 -X", "python3"},
    {"python3 'unclosed", "unclosed"},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf name = BUF(1 << 16);
        program_name(&name, cases[i].command);
        assert_string_equal(name.length ? name.data : "", cases[i].name);
        buf_free(&name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
