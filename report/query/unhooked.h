/*
 * unhooked.h: what was freed by calls that went past the hooks, as those of modules opened with RTLD_DEEPBIND do: it
 * counts as live.
 */
#ifndef MEMPROF_UNHOOKED_H
#define MEMPROF_UNHOOKED_H

#include "../../common/buf.h"

#include <sqlite3.h>

/* "2 modules were opened with RTLD_DEEPBIND (a.so, b.so): what they free is not seen", and what sees it; nothing where
 * there are none. therefore: what follows, or "". */
void unhooked_explain(sqlite3 *db, const char *therefore, struct buf *text);
/* One sentence for who reads what is live; nothing where all frees were seen, as far as is known. */
void unhooked_say(sqlite3 *db, struct buf *text);

#endif
