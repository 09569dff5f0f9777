/*
 * sql.h: `memprof sql`: statements from outside, run on a read-only connection that lets nothing else through.
 */
#ifndef MEMPROF_SQL_H
#define MEMPROF_SQL_H

#include "../../common/error.h"
#include "../print/out.h"

#include <sqlite3.h>

/* Runs every statement of query (several are separated by ';') and prints each one's rows. Statements that would write,
 * attach or load are refused. 0 or -errno with err. */
int sql_run(sqlite3 *db, const char *query, const struct report_out *out, struct error *err);

#endif
