# What a page opens on, of programs whose stacks are known: the first fork, the program's own line, the script's name.
. "$ROOT/tests/page/page.inc"
cat >work.cpp <<'EOT'
#include <memory>
#include <string>
#include <vector>
#define NOINLINE __attribute__((noinline))
struct Store {
    std::vector<std::vector<std::string>> rows;
};
static Store store;
NOINLINE static void fill(int n)
{
    for (int i = 0; i < n; i++)
        store.rows.emplace_back(10, std::string(200, 'x')); /* line 12: all of it is made in the library's headers */
}
NOINLINE static void index(int n)
{
    store.rows.push_back(std::vector<std::string>(n, std::string(100, 'y')));
}
NOINLINE static void load(int n)
{
    fill(n);
    index(n);
}
template <int DEPTH> struct Call {
    NOINLINE static void run(int n)
    {
        if constexpr (DEPTH == 0)
            load(n);
        else
            Call<DEPTH - 1>::run(n);
        asm volatile("");
    }
};
int main()
{
    Call<12>::run(6000);
    return 0;
}
EOT
"${CXX:-c++}" -std=c++17 -O1 -g -fno-optimize-sibling-calls -o work work.cpp || skip "no C++ compiler"
record_ok ./work
check_page first-look --opens load work.cpp:12

# an interpreter stands for its script; what a package makes for the script is of the script's line
cat >job.py <<'EOT'
import json
import pack
kept = []
def load(n):
    for i in range(n):
        kept.append(json.loads('[' + '"x%d",' % i * 400 + '0]'))
def index(n):
    for i in range(n):
        kept.append(pack.make(60000))
def run(n):
    load(n)
    index(n)
run(300)
EOT
mkdir -p site-packages
cat >site-packages/pack.py <<'EOT'
def make(size):
    return bytearray(size)
EOT
PYTHONMALLOC=malloc PYTHONPATH=$PWD/site-packages PYTHONDONTWRITEBYTECODE=1
export PYTHONMALLOC PYTHONPATH PYTHONDONTWRITEBYTECODE
record_ok /usr/bin/python3 job.py
check_page first-look-python --basic --opens all job.py:9 --says "job.py"

# what a library's destructor allocates is behind memprof's own dlclose, whose source may be here
cat >bye.c <<'EOT'
#include <stdlib.h>
static void *volatile kept;
__attribute__((destructor)) static void bye(void) { kept = malloc(3000000); }
EOT
cat >close.c <<'EOT'
#include <dlfcn.h>
#include <stdlib.h>
static void load(void) { free(malloc(2000000)); }
int main(void)
{
    void *h = dlopen("./libbye.so", RTLD_NOW);
    load();
    return dlclose(h); /* line 8 */
}
EOT
"$CC" -shared -fPIC -o libbye.so bye.c
"$CC" -g -O0 -o close close.c -ldl
record_ok ./close
check_page first-look-close --basic --opens all close.c:8
