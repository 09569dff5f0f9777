/* ELF, DWARF and symbol tables of any bytes, as symbols.h reads them. */
#include "../../profiler/symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];
static void remove_file(void)
{
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        snprintf(path, sizeof path, "/dev/shm/memprof-fuzz-%d.elf", (int)getpid());
        atexit(remove_file);
    }
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size)
        abort();
    fclose(f);
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    struct symbols *s = symbols_open(path, NULL);
    if (!symbols_source(s))
        abort();
    for (uint64_t offset = 0; offset < 0x3000; offset += 0x35) {
        int n = symbols_lookup(s, offset, frames);
        if (n < 0 || n > SYMBOLS_INLINE_MAX)
            abort();
    }
    symbols_lookup(s, UINT64_MAX, frames);
    symbols_close(s);
    return 0;
}
