#include "many_notes.h"

#include "../../common/array.h"
#include "../query/ending.h"
#include "notes.h"

enum { NOTES_MAX = 64 };

static void add_note(void *context, enum note_kind kind, const char *note)
{
    struct many_file *file = context;
    if (kind == NOTE_MISSING && file->note_count < NOTES_MAX)
        *ARRAY_ADD(file->notes, file->note_count, file->note_capacity) = xstrdup(note);
}

void many_notes(struct many_file *file, sqlite3 *db)
{
    char ended[ENDING_TEXT];
    file->state = notes_state(db);
    file->has_failed = ending_text(db, ended);
    file->ended = *ended ? xstrdup(ended) : NULL;
    notes_each(db, add_note, file);
}
