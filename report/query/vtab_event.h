/*
 * vtab_event.h: v_event, one row per event, as an SQLite virtual table over the compressed chunks. Compiled into
 * memprof, and with -DMEMPROF_LOADABLE into build/memprof_events.so for `.load` of the sqlite3 shell.
 */
#ifndef MEMPROF_VTAB_EVENT_H
#define MEMPROF_VTAB_EVENT_H

#include <sqlite3.h>

/* Registers v_event for the file that db has open as "main". An SQLite result code. */
int vtab_event_register(sqlite3 *db);

#endif
