# What libraries allocate before main() is told apart from what they do when they are loaded later, and from what a
# thread's creation takes, with names and without.
need strip
cat >early.c <<'EOF'
#include <stdlib.h>
void *early_block;
__attribute__((constructor)) static void early(void) { early_block = malloc(1111); }
EOF
cat >late.c <<'EOF'
#include <stdlib.h>
void *late_block;
__attribute__((constructor)) static void late(void) { late_block = malloc(2222); }
EOF
cat >app.c <<'EOF'
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
extern void *early_block;
static void *work(void *arg)
{
    return malloc(3333) ? dlopen("./liblate2.so", RTLD_NOW) : arg;
}
static void *rest(void *arg)
{
    sleep(1);
    return arg;
}
int main(void)
{
    pthread_t t;
    if (!early_block || !dlopen("./liblate.so", RTLD_NOW) || pthread_create(&t, NULL, work, NULL))
        return 1;
    pthread_join(t, NULL);
    return pthread_create(&t, NULL, rest, NULL); /* it is there at the end, with what the loader made for it */
}
EOF
"$CC" -g -O1 -fno-builtin -shared -fPIC -o libearly.so early.c
for name in liblate liblate2; do "$CC" -g -O1 -fno-builtin -shared -fPIC -o $name.so late.c; done
"$CC" -g -O1 -fno-builtin -o app app.c -L. -learly -Wl,-rpath,. -lpthread
cp app bare
strip bare
for name in app bare; do
    record ./$name
    equal "$name: status" 0 "$status"
    "$MEMPROF" leaks out.db --all --json >leaks.json
    python3 - <<'EOF' >said
import json
for leak in json.load(open("leaks.json"))["leaks"]:
    if leak["end_bytes"] in (1111, 2222, 3333, 4444) or leak["before_main"]:
        print(leak["end_bytes"], leak["before_main"])
EOF
    equal "$name: what is before main()" "1111 1|2222 0|2222 0|3333 0" "$(sort said | paste -sd'|')"
done
