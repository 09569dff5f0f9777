/* cuGetProcAddress: by name, version and form, over symbols.def. Knows the entry points by name only. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define X(base, form, version, symbol) extern void symbol(void);
#include "symbols.def"
#undef X

enum { plain, per_thread };
static const struct row {
    const char *base;
    int form, version;
    void (*function)(void);
} rows[] = {
#define X(base, form, version, symbol) {#base, form, version, symbol},
#include "symbols.def"
#undef X
};

const void *sim_lookup(const char *name, int version, int wants_per_thread, int *exists);
const void *sim_lookup(const char *name, int version, int wants_per_thread, int *exists)
{
    const struct row *best = NULL;
    *exists = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->base, name))
            continue;
        *exists = 1;
        if (row->version > version || (row->form == per_thread && !wants_per_thread))
            continue;
        if (!best || row->form > best->form || (row->form == best->form && row->version > best->version))
            best = row;
    }
    return best ? (const void *)best->function : NULL;
}
