/*
 * The tree and the sites of a large recording are read beside the symbols, which they do not need: together they are
 * half of what is done when the program has ended and somebody waits.
 */
#include "finish_private.h"

#include "../../common/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct model_ahead {
    sqlite3 *db;
    pthread_t thread;
    sem_t has_read;
    int is_running, rc;
    struct model m;
};

static void *work(void *arg)
{
    struct model_ahead *a = arg;
    a->m.has_read = &a->has_read;
    a->rc = model_tree(a->db, &a->m, NULL);
    sem_post(&a->has_read); /* where it did not come so far */
    return NULL;
}

/* What another connection can see, which is nothing of a database in memory or of a transaction under way. */
static int is_seen(sqlite3 *db)
{
    const char *path = sqlite3_db_filename(db, "main");
    return path && *path && sqlite3_get_autocommit(db);
}

struct model_ahead *model_ahead_begin(sqlite3 *db)
{
    if (!is_seen(db) || !packed_has(db, PACKED_TABLE_site))
        return NULL;
    struct model_ahead *a = xcalloc(1, sizeof *a);
    sem_init(&a->has_read, 0, 0);
    a->is_running = db_open_read(sqlite3_db_filename(db, "main"), &a->db, NULL) == 0 &&
                    pthread_create(&a->thread, NULL, work, a) == 0;
    if (a->is_running)
        return a;
    sqlite3_close(a->db);
    free(a);
    return NULL;
}

static void wait_for(struct model_ahead *a)
{
    if (a->is_running)
        pthread_join(a->thread, NULL);
    a->is_running = 0;
}

void model_ahead_wait(struct model_ahead *a)
{
    while (a && sem_wait(&a->has_read) && errno == EINTR)
        ;
}

void model_ahead_take(struct model_ahead *a, struct model *m)
{
    if (!a)
        return;
    wait_for(a);
    if (a->rc || a->m.tree_addresses + 1 != m->address_count) /* another's writing came between */
        return;
    packed_move(a->m.packed, m->db);
    m->packed = a->m.packed;
    m->nodes = a->m.nodes;
    m->node_count = a->m.node_count;
    m->sites = a->m.sites;
    m->site_count = a->m.site_count;
    m->stats = a->m.stats;
    m->groups = a->m.groups;
    m->group_count = a->m.group_count;
    a->m = (struct model){0};
    sqlite3_close(a->db);
    a->db = NULL;
}

void model_ahead_close(struct model_ahead *a)
{
    if (!a)
        return;
    wait_for(a);
    model_free(&a->m);
    sqlite3_close(a->db);
    free(a);
}
