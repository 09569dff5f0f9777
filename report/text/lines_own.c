/* Which functions are the program's own, and what that decides. */
#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/text.h"
#include "../query/program_name.h"
#include "lines_load.h"

#include <stdlib.h>
#include <string.h>

void lines_places_open(sqlite3 *db, struct lines_places *places)
{
    char *command = db_meta_text(db, "command");
    struct buf path = BUF(1 << 16);
    *places = (struct lines_places){.run = db_meta_text(db, "cwd"), .script = BUF(1 << 17)};
    if (command && program_script(&path, command) && *path.data != '/' && places->run) {
        struct buf whole = BUF(1 << 17);
        buf_printf(&whole, "%s/%s", places->run, path.data);
        text_path(&places->script, buf_text(&whole), NULL);
        buf_free(&whole);
    } else if (path.length) {
        text_path(&places->script, path.data, NULL);
    }
    char *end = places->script.data ? strrchr(places->script.data, '/') : NULL;
    if (end)
        *end = 0;
    buf_free(&path);
    free(command);
}

void lines_places_close(struct lines_places *places)
{
    free(places->run);
    buf_free(&places->script);
}

/* What was installed into a directory of the user's is not the user's. */
int lines_places_have(const struct lines_places *places, const char *path)
{
    const char *bases[] = {places->run, places->script.data};
    for (int i = 0; path && i < 2; i++)
        if (bases[i] && bases[i][0] && bases[i][1] && text_relative(path, bases[i]) != path &&
            !strstr(path, "/site-packages/") && !strstr(path, "/dist-packages/"))
            return 1;
    return 0;
}

static int is_python(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    return length > 3 && strcmp(path + length - 3, ".py") == 0;
}

/* A bit for each --file that may mean more files than one without saying so. */
static uint32_t plain_names(const struct lines_options *o)
{
    uint32_t plain = 0;
    for (int i = 0; i < o->file_count; i++)
        if (!strpbrk(o->files[i], "*?["))
            plain |= 1u << i;
    return plain;
}

static void say_left_out(const char *path, int others, struct buf *said)
{
    text_path(said, path, NULL);
    if (others)
        buf_printf(said, " and %d more have", others);
    else
        buf_puts(said, " has");
    buf_printf(said, " the same name and %s left out: --file with the whole path, or '*%s', shows %s",
               others ? "are" : "is", text_basename(path), others ? "them" : "it");
}

void lines_prefer_own(sqlite3 *db, const struct lines_options *o, struct lines_groups *groups, struct buf *said)
{
    struct lines_places places;
    struct map left_out = {0}; /* file_id */
    uint32_t own = 0;
    char *first = NULL;
    int kept = 0;
    lines_places_open(db, &places);
    for (int i = 0; i < groups->count; i++)
        if (lines_places_have(&places, groups->group[i].path))
            own |= groups->group[i].files;
    own &= plain_names(o);
    for (int i = 0; i < groups->count; i++) {
        struct lines_group *g = &groups->group[i];
        if (g->files & ~own || lines_places_have(&places, g->path)) {
            groups->group[kept++] = *g;
            continue;
        }
        map_number_or(&left_out, (uint64_t)g->file_id, 0, 0);
        first = first ? first : xstrdup(g->path);
        lines_free_group(g);
    }
    groups->count = kept;
    if (first)
        say_left_out(first, (int)left_out.count - 1, said);
    map_close(&left_out);
    free(first);
    lines_places_close(&places);
}

#define OWN_SHARE 20 /* of what the heaviest function has: with less it stays where it is */

/* 0: the program's, and large; 1: any other that is not Python's; 2: of Python's own modules, or a package's. */
static int rank(const struct lines_places *places, const struct lines_group *g, int64_t least)
{
    if (!is_python(g->path))
        return 1;
    return !lines_places_have(places, g->path) ? 2 : g->weight_bytes[0] >= least ? 0 : 1;
}

/* What a pool's workers hold came through multiprocessing's functions, and what an import took through importlib's. */
void lines_own_first(sqlite3 *db, struct lines_groups *groups)
{
    struct lines_places places;
    struct lines_group *sorted = xcalloc((size_t)groups->count + 1, sizeof *sorted);
    int64_t least = groups->count ? groups->group[0].weight_bytes[0] / OWN_SHARE : 0;
    int count = 0, has_own = 0;
    lines_places_open(db, &places);
    for (int i = 0; i < groups->count; i++)
        has_own |= rank(&places, &groups->group[i], least) == 0;
    for (int of = 0; has_own && of < 3; of++)
        for (int i = 0; i < groups->count; i++)
            if (rank(&places, &groups->group[i], least) == of)
                sorted[count++] = groups->group[i];
    if (has_own)
        memcpy(groups->group, sorted, (size_t)count * sizeof *sorted);
    free(sorted);
    lines_places_close(&places);
}
