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
contains "said of one" info "1  free of an address that is no live block"
