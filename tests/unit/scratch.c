#include "scratch.h"

#include "../../common/db.h"

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[PATH_MAX];

int scratch_begin(void **state)
{
    (void)state;
    const char *top = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/memprof-test-XXXXXX", top && *top == '/' ? top : "/tmp");
    return mkdtemp(directory) ? setenv("XDG_CACHE_HOME", directory, 1) : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
    (void)st, (void)type, (void)place;
    return remove(path);
}

int scratch_end(void **state)
{
    (void)state;
    return nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

const char *scratch_directory(void)
{
    return directory;
}

const char *scratch_path(const char *name)
{
    static char paths[4][PATH_MAX + 256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", directory, name);
    return path;
}

sqlite3 *scratch_db(const char *name)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    const char *path = scratch_path(name);
    struct error err = {""};
    sqlite3 *db;
    for (unsigned i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char file[PATH_MAX + 300];
        snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        remove(file);
    }
    if (db_create(path, &db, &err))
        fail_msg("%s", err.text);
    return db;
}

void scratch_sql(sqlite3 *db, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sqlite3_vmprintf(format, args), *message = NULL;
    va_end(args);
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
    sqlite3_free(text);
}
