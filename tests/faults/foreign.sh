# Double frees and frees of what is no block: counted, not fatal.
LD_PRELOAD=$PROGRAMS/lib_bump.so
export LD_PRELOAD
record "$PROGRAMS/foreign"
unset LD_PRELOAD
equal "status" 0 $status
equal "unmatched frees" 6 "$(value "SELECT sum(value) FROM counter WHERE name = 'unmatched_free'")"
equal "totals" "10|10|1000|0" \
    "$(sql "SELECT alloc_count, free_count, alloc_bytes, end_active_bytes FROM v_total WHERE kind = 'heap'")"
"$MEMPROF" info out.db >info
contains "said" info "6  frees of addresses that are no live block"
equal "3 of them of blocks that were freed" 3 "$(value 'SELECT count(site_id) FROM unmatched_free')"
equal "by this thread, before" 3 "$(value 'SELECT count(*) FROM unmatched_free WHERE freed_ns <= time_ns
    AND freed_thread_id = thread_id')"
"$MEMPROF" report out.db >report
contains "which of them" report '! 3 blocks were freed twice, unless'
contains "and where the first is from" report ': the first one of main (foreign.c:10), freed at '
contains "the others" report '! 3 frees of addresses that are no live block: as many allocations were not seen'

cat >once.c <<'EOF'
#include <stdlib.h>
static char no_block[64] __attribute__((aligned(16)));
int main(void) { free(no_block + 16); return 0; }
EOF
"$CC" -fno-builtin -w once.c -o once
LD_PRELOAD=$PROGRAMS/lib_bump.so
export LD_PRELOAD
record ./once
unset LD_PRELOAD
"$MEMPROF" info out.db >info
equal "none of a block" 0 "$(value 'SELECT count(site_id) FROM unmatched_free')"
contains "said of one" info "1  free of an address that is no live block"

# the two frees lie 200,000 events apart, in different chunks
cat >late.c <<'EOF'
#include <stdlib.h>
int main(void)
{
    char *volatile p = malloc(100), *volatile q = malloc(200);
    free(q);
    free(p);
    for (int i = 0; i < 100000; i++)
        free(malloc(16));
    free(p);
    q = realloc(NULL, 300);
    free(q);
    return 0;
}
EOF
"$CC" -g -fno-builtin -w late.c -o late
LD_PRELOAD=$PROGRAMS/lib_bump.so
export LD_PRELOAD
record ./late
unset LD_PRELOAD
"$MEMPROF" report out.db >report
contains "far apart" report '! 1 block was freed twice, unless'
contains "and which" report ': of main (late.c:4), freed at '
