# Two plugins loaded in turns at one address: each allocation is told by the right one. Also with RTLD_DEEPBIND.
a=$PROGRAMS/lib_plugin_a.so b=$PROGRAMS/lib_plugin_b.so
record_ok "$PROGRAMS/dlloop" 200 "$a" "$b"
contains "the addresses were shared" run.err "same address"
equal "plugin a" "500|25000|500" "$(by_function alloc_in_a | cut -d'|' -f1-3)"
equal "plugin b" "500|30000|500" "$(by_function alloc_in_b | cut -d'|' -f1-3)"
equal "epochs" 200 "$(value "SELECT count(*) FROM module WHERE path LIKE '%lib_plugin_%' AND unload_ns IS NOT NULL")"
record_ok "$PROGRAMS/dlloop" 10 "$a" "$b" deep

# RTLD_DEEPBIND: the library looks into the C library before memprof's. What is missed is said; --deepbind reaches all
# of it.
deep=$PROGRAMS/lib_deep.so
counts() { by_function work 1 | cut -d'|' -f1-3,5-6; }
record_ok "$PROGRAMS/deep" "$deep"
equal "not deep" "4000|612000|4000|0|0" "$(counts)"
"$MEMPROF" report out.db >report.txt
lacks "not deep: advice" report.txt 'not seen'
record "$PROGRAMS/deep" "$deep" deep
equal "deep: blocks that are seen" 2000 "$(by_function work 1 | cut -d'|' -f1)"
missed=$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_block'")
at_least "deep: frees that were missed" 1900 "$missed"
# 1,000 blocks of 200 bytes and 1,000 of 12, but for what is live at the end; and whose the largest are
wrong=$((212000 - $(value "SELECT end_bytes FROM v_function WHERE function = 'work' AND inclusive AND kind = 'all'")))
equal "deep: too high by" "$wrong" "$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_bytes'")"
# one after another: at no time was more of that counted than was live at the peak
said=$(value "SELECT printf('%.2f KiB', peak_active_bytes / 1024.0) FROM total WHERE kind = 'all' AND device_id = 0")
contains "deep: said as it ends" run.err "what is live was too high until then, by $said at most"
"$MEMPROF" report out.db >report.txt
contains "deep: by how much" report.txt "until their addresses were used again, by $said at most."
contains "deep: of what" report.txt "not seen, the largest of work (deep.c:$(grep -n 'malloc(200)' \
    "$ROOT/tests/programs/deep.c" | cut -d: -f1)):"
contains "deep: advice" report.txt 'freed by calls that were not seen'
contains "deep: advice" report.txt 'record again with --deepbind'
"$MEMPROF" report out.db --html=page.html >page.out
contains "deep: on the page, where nothing is folded" page.html '<strong>Not whole:</strong> '"$(echo "$missed" |
    sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta')"' blocks were freed by calls that were not seen'
RUN_OPTIONS=--deepbind
for how in deep ''; do
    record_ok "$PROGRAMS/deep" "$deep" $how
    equal "--deepbind ${how:-without need}" "4000|612000|4000|0|0" "$(counts)"
    equal "frees that were missed" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_block'")"
done
record_ok "$PROGRAMS/dlloop" 200 "$a" "$b" deep
equal "--deepbind, plugin a" "500|25000|500" "$(by_function alloc_in_a | cut -d'|' -f1-3)"
equal "--deepbind, plugin b" "500|30000|500" "$(by_function alloc_in_b | cut -d'|' -f1-3)"

# what dlsym gives to a preloaded library stays: it asks for the next malloc
export COUNT_OUT="$PWD/counts" LD_PRELOAD="$BUILD/accuracy/libcount.so"
record "$PROGRAMS/deep" "$deep" deep
unset COUNT_OUT LD_PRELOAD
equal "beside another preloaded library: status" 0 "$status"
sound
equal "--deepbind, beside another preloaded library" "4000|612000|4000|0|0" "$(counts)"

# What is live was too high by less than a hundredth of the peak, and by less than 64 KiB: a fact of info, no warning.
cat >little.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
/* LIBRARY MIB: holds so much, and lets the library free ten blocks of 200 bytes, one after another at one address */
int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (!library)
        return 2;
    void (*give_back)(void *);
    *(void **)&give_back = dlsym(library, "give_back");
    const size_t size = (size_t)atoi(argv[2]) << 20;
    char *held = memset(malloc(size), 1, size);
    for (int i = 0; i < 10; i++)
        give_back(malloc(200));
    free(held);
    return 0;
}
END
"$CC" -g -O1 -fno-builtin -o little little.c -ldl
RUN_OPTIONS=
record_ok ./little "$deep" 8
least=$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_bytes'")
at_least "little: bytes" 200 "$least"
at_most "little: bytes" 2000 "$least"
said=$(awk "BEGIN { if ($least < 1024) print $least \" B\"; else printf \"%.2f KiB\", $least / 1024 }")
lacks "little: as it ends" run.err 'not whole'
"$MEMPROF" report out.db >report.txt
lacks "little: report" report.txt 'not seen'
"$MEMPROF" report out.db --html=page.html >page.out
lacks "little: page" page.html 'Not whole'
"$MEMPROF" report out.db --json >report.json
contains "little: in JSON" report.json '"notes": []'
"$MEMPROF" info out.db >info.txt
contains "little: info" info.txt "by $said at most"
equal "little: a fact" 1 "$(grep -c '^nearly whole ' info.txt)"
# of a small peak it is no little
sqlite3 out.db "UPDATE total SET peak_active_bytes = 100 * $least WHERE device_id = 0"
"$MEMPROF" report out.db >report.txt
contains "a hundredth: report" report.txt "by $said at most"
