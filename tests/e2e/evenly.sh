# What comes evenly over the run and is never freed, however little it is: one sentence, the same on the terminal, in
# JSON and on the page, with whom a wrapper took it for, whatever the wrapper is called.
need python3
cat >evenly.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *kept[1000];
static int count;
__attribute__((noinline)) static void *obtain(size_t size)
{
    void *p = malloc(size);
    if (!p)
        abort();
    return memset(p, 1, size);
}
__attribute__((noinline)) static void remember(void)
{
    kept[count++] = obtain(5000);
}
__attribute__((noinline)) static char *render(void)
{
    return obtain(20000);
}
int main(int argc, char **argv)
{
    int has_wrapper = argc > 1 && strcmp(argv[1], "wrapper") == 0;
    for (int i = 0; i < 300; i++) {
        if (has_wrapper) {
            char *page = render();
            remember();
            free(page);
        } else {
            kept[count++] = malloc(5000);
        }
        usleep(5000);
    }
    return 0;
}
END
"$CC" -g -O1 -fno-builtin -o evenly evenly.c
text="1.43 MiB in 300 blocks of host came evenly over the run, and were still live at the end. All of it:"
for mode in plain wrapper; do
    record_ok ./evenly $mode
    same_findings
    contains "$mode: on the terminal" report.txt "* Never freed: $text"
    contains "$mode: in JSON" report.json "$text"
    equal "$mode: its severity" warning "$(python3 -c 'import json
print(*(f["severity"] for f in json.load(open("report.json"))["findings"] if f["rule"] == "leaks"))')"
    equal "$mode: cards of never freed" 1 "$(grep -c '<h3>Never freed' page.html)"
    contains "$mode: its card" page.html '<li class="finding warn" data-rule="leaks"><h3>Never freed'
done
said="Most of it was for remember (evenly.c:15): little of what is allocated there for it is freed."
contains "the wrapper's caller" report.txt "$said"
contains "the wrapper's caller, in JSON" report.json "$said"
grep -q 'data-rule="leaks">.*remember.*little of what is allocated there for it is freed' page.html ||
    fail "the page does not say for whom"
