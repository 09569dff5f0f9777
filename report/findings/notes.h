/*
 * notes.h: what every report says first: what was run, which window of it is shown, and what is missing in the file.
 */
#ifndef MEMPROF_NOTES_H
#define MEMPROF_NOTES_H

#include "../print/out.h"
#include "../print/record.h"

#include <sqlite3.h>

enum note_kind {
    NOTE_MISSING, /* numbers are wrong: which, and by how much */
    NOTE_LITTLE,  /* wrong by next to nothing: `info` says so, among its facts, and nobody else */
    NOTE_FACT,    /* no number is wrong, and nothing is limited */
    NOTE_ABOUT    /* what an import has to say of its file; what is not shown though no number is wrong */
};

/* Lines such as "partial: the collector was killed or out of memory"; each call of add gets one. */
void notes_each(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context);
void notes_print(sqlite3 *db, const struct report_out *out);
/* JSON: members file (as the user named it), command, start_unix_ns, duration_ns, notes of the open document, and
 * window where one is shown. */
void notes_record(sqlite3 *db, const char *file, struct record *record);
/* "complete", "recorded", "recording", or "partial" where something is missing for good; NULL: not known. Yours to
 * free. */
char *notes_state(sqlite3 *db);
/* "2026-06-30 12:00:00" in local time, to text[32]. */
const char *notes_date(char text[32], int64_t unix_ns);

#endif
