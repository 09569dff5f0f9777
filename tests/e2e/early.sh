# Before constructors, in TLS destructors, in atexit handlers.
record_ok "$PROGRAMS/early"
equal "preinit_work" "3|132|3" "$(by_function preinit_work | cut -d'|' -f1-3)"
equal "totals" "5|275|5" "$(sql "SELECT alloc_count, alloc_bytes, free_count FROM v_total WHERE kind = 'heap'")"

cp "$PROGRAMS/lib_ctor.so" .
cat >with_ctor.c <<'END'
#include <stdlib.h>
extern void *from_ctor;
int main(void) { free(from_ctor); return 0; }
END
"$CC" -g -fno-builtin -o with_ctor with_ctor.c ./lib_ctor.so -Wl,-rpath,"$PWD"
record_ok ./with_ctor
equal "constructor of a library" "3|99|3" "$(by_function ctor_work | cut -d'|' -f1-3)"

record_ok "$PROGRAMS/tls_dtor"
equal "key destructors, three rounds" "60|4800|60" "$(by_function key_destructor | cut -d'|' -f1-3)"
equal "thread_local destructors" "20|1800|20" "$(by_function in_local | cut -d'|' -f1-3)"
equal "atexit" "1|100|1" "$(by_function at_exit | cut -d'|' -f1-3)"
