/*
 * self_module.h: the module that a site's self line is in.
 */
#ifndef MEMPROF_SELF_MODULE_H
#define MEMPROF_SELF_MODULE_H

#include "../../common/error.h"

#include <sqlite3.h>

/* Fills the temporary table temp.site_module(site_id, key_id), sites in no module left out. */
int self_module_load(sqlite3 *db, struct error *err);

#endif
