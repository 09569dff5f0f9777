# Blocks that stay among many that went, with other allocators than glibc's: 6,250 of 160 bytes, each 64th of a run of
# 61 MiB. At 64 times 160 to 192 bytes from one to the next each is on a page of its own, so at most 6,250 pages and
# those that two blocks touch are pinned; the rest of 61 MiB, less what an allocator returned, is free and there.
# All but one of 314,572 blocks of 160 bytes, 48 MiB, go: segments of 32 MiB without a block and with one. With an
# argument it calls mi_collect(true), and says how many bytes of it were there less.
cat >collects.c <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = (48 << 20) / 160 };
static char *blocks[COUNT];

static long resident(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    if (read(fd, text, sizeof text - 1) < 0)
        abort();
    close(fd);
    return atol(strchr(text, ' ')) * 4096;
}

int main(int argc, char **argv)
{
    void (*collect)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "mi_collect");
    (void)argv;
    for (int i = 0; i < COUNT; i++)
        blocks[i] = memset(malloc(160), 1, 160);
    for (int i = 0; i < COUNT; i++)
        if (i != COUNT / 8)
            free(blocks[i]);
    usleep(argc > 1 ? 100000 : 1500000);
    if (argc == 1)
        return 0;
    long before = resident(), after;
    collect(1);
    after = resident();
    printf("%ld\n", before - after);
    return 0;
}
EOF
# "1.25 MiB" or KiB in bytes
in_bytes() { awk '{ printf "%d", $1 * ($2 == "MiB" ? 1048576 : 1024) }'; }

# What it says that mi_collect(true) gives back, against what that gave back; who keeps how many slices of 64 KiB.
of_mimalloc() {
    # at 160 bytes each, 400,000 blocks are on 977 slices or more, in each of which one of 64 blocks stays
    slices=$(sed -n 's/.* blocks, in \([0-9,]*\) of mimalloc.s slices of 64 KiB.*/\1/p' report.txt | tr -d ,)
    at_least "slices" $((400000 * 160 / 65536)) "${slices:-0}"
    at_most "slices" $((400000 * 160 / 65536 + 32)) "${slices:-0}"
    "$CC" -g -O1 -o collects collects.c -ldl
    LD_PRELOAD=$path ./collects now >given.txt
    LD_PRELOAD=$path
    export LD_PRELOAD
    record_ok ./collects
    unset LD_PRELOAD
    "$MEMPROF" report out.db >report.txt
    contains "who keeps the segment" report.txt "* Free, but kept from the kernel: main (collects.c:"
    contains "... and how many of its slices" report.txt "160 B live in 1 block, in 1 of mimalloc's slices of 64 KiB."
    least=$(sed -n 's/.*mi_collect(true) gives \([0-9.]* [KM]iB\) to .*/\1/p' report.txt | in_bytes)
    most=$(sed -n 's/.*mi_collect(true) gives .* to \([0-9.]* [KM]iB\) of that back.*/\1/p' report.txt | in_bytes)
    at_least "more than mi_collect gave" $(($(cat given.txt) - 1048576)) "${most:-0}"
    at_most "less than it gave" $(($(cat given.txt) + 1048576)) "${least:-99999999}"
}

found=0
for name in jemalloc:libjemalloc.so.2 tcmalloc:libtcmalloc_minimal.so.4 mimalloc:libmimalloc.so.2; do
    path=$(ldconfig -p | sed -n "s|.*${name#*:}[.0-9]* .*=> ||p" | head -n 1)
    [ -n "$path" ] || continue
    found=$((found + 1))
    name=${name%:*}
    echo "$name"
    LD_PRELOAD=$path
    export LD_PRELOAD
    record_ok "$PROGRAMS/sparse"
    unset LD_PRELOAD
    "$MEMPROF" report out.db >report.txt
    contains "$name: finding" report.txt "* Free, but kept from the kernel: keep (sparse.c:"
    contains "$name: what stays" report.txt "976.56 KiB live in 6,250 blocks"
    case $name in
    mimalloc) contains "$name: whose" report.txt "of mimalloc's slices of 64 KiB" ;;
    *) contains "$name: whose" report.txt "in $name's segments" ;;
    esac
    lacks "$name: what is glibc's" report.txt "malloc_trim"
    free=$("$MEMPROF" report --json out.db | sed -n 's/.*"rule": "held".*"bytes": \([0-9]*\).*/\1/p')
    at_least "$name: free and there" $((61 * 1048576 - 6250 * 2 * 4096)) "${free:-0}"
    # what --segments has of pages without a live byte, and what is there at all
    "$MEMPROF" report out.db --segments --json >segments.json
    pages=$(grep -o '"\(held\|top\)_page_bytes": [0-9]*' segments.json | awk '{ sum += $2 } END { print sum }')
    at_most "$name: of all free pages" "$pages" "$free"
    at_most "$name: with what is pinned, of the RSS" "$(value "SELECT max(peak_rss_bytes) FROM process")" \
        $((free + 6250 * 160))
    case $name in
    jemalloc) call='arena.<i>.purge' ;;
    tcmalloc) call='MallocExtension::ReleaseFreeMemory()' ;;
    mimalloc) call='mi_collect(true)' ;;
    esac
    contains "$name: its own advice" report.txt "$call"
    # a strip of address space, with what --segments sums up
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "$name: the page" page.html '<section id="heap"'
    caption=$(sed -n 's|.*<figcaption>\(.*\)</figcaption>.*|\1|p' page.html | head -n 1)
    segments=$(value "SELECT count(*) FROM segment WHERE kind = 'heap' AND device_id = 0 AND free_ns IS NULL AND
        size_bytes > 0")
    case $caption in
    "$segments segment of $name: "* | "$segments segments of $name: "*) ;;
    *) fail "$name: $segments segments, and the strip is of: $caption" ;;
    esac
    contains "$name: leads there" page.html '<a href="#heap">See the segments</a>'
    at_least "$name: coloured" 2 "$(sed -n '/<section id="heap"/,/<\/section>/p' page.html | grep -o '<rect ' | wc -l)"
    lacks "$name: of another" report.txt "glibc"
    [ $name != mimalloc ] || of_mimalloc
    # a program that holds what it has, and one that gives all back, are none
    LD_PRELOAD=$path
    export LD_PRELOAD
    for program in cache leak; do
        record "$SAMPLES/$program"
        "$MEMPROF" report out.db >report.txt
        lacks "$name: $program" report.txt "Free, but kept"
    done
    record "$SAMPLES/templates" # what keeps libstdc++'s 71 KiB may have no symbol, but it has a place
    unset LD_PRELOAD
    "$MEMPROF" report out.db --segments >segments.txt
    lacks "$name: code without a symbol" segments.txt "??"
done
[ $found -gt 0 ] || skip "no other allocator is installed"
