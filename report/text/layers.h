/*
 * layers.h: what a device's memory is made of: allocated, active, reserved, used as its driver says, and not tracked;
 * at the driver's highest figure and at its last one. Nothing for devices without samples.
 */
#ifndef MEMPROF_LAYERS_H
#define MEMPROF_LAYERS_H

#include "../../common/error.h"
#include "../print/out.h"
#include "../print/record.h"

#include <sqlite3.h>

/* A heading and a table; device NULL: all. */
int layers_print(sqlite3 *db, const char *device, const struct report_out *out, struct error *err);
/* An array "layers", a row an instant and device; nothing in CSV. */
int layers_record(sqlite3 *db, const char *device, const struct report_out *out, struct record *r, struct error *err);

#endif
