/*
 * layers.h: what a device's memory is made of: allocated, active, reserved, used as its driver says, and not tracked;
 * at the driver's highest figure and at its last one. Nothing for devices without samples.
 */
#ifndef MEMPROF_LAYERS_H
#define MEMPROF_LAYERS_H

#include "../../common/error.h"
#include "../print/record.h"

#include <sqlite3.h>

/* For people a heading and a table of devices; in JSON an array "layers", which has the host's, too, as v_layer does;
 * nothing in CSV. device NULL: all. */
int layers_list(sqlite3 *db, const char *device, struct record *document, struct error *err);

#endif
