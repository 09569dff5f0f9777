/*
 * modules.h: which module an address is in, where the format wants to be told. Modules of all processes that are the
 * same file, by path and build-id, are one, at the addresses where it was first.
 */
#ifndef MEMPROF_EXPORT_MODULES_H
#define MEMPROF_EXPORT_MODULES_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

struct export_module {    /* strings until export_modules_close */
    const char *path;     /* NULL: code in no module, as Python's */
    const char *build_id; /* NULL: none known */
    uint32_t number;      /* from 1 on, one for all that are the same; 0: none */
    uint64_t start, end;
    uint64_t bias_bytes; /* an offset in it plus this: the address there */
};

struct export_modules;

/* Close with export_modules_close in any case. */
int export_modules_open(sqlite3 *db, struct export_modules **modules, struct error *err);
void export_modules_close(struct export_modules *modules);

int export_modules_find(struct export_modules *modules, int64_t address_id, struct export_module *module,
                        struct error *err);
/* The executable of the process that allocated most; path NULL where none is known. */
int export_modules_program(struct export_modules *modules, struct export_module *module, struct error *err);

#endif
