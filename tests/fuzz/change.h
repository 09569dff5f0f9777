/* change.h: a good recording that somebody else changed: values of any type and size in any column of any table
 * (structure that SQLite itself accepts), then bytes of the file. $FUZZ_DATABASE names good ones (seeds.sh), with a
 * colon between two; the input chooses. */
#ifndef MEMPROF_FUZZ_CHANGE_H
#define MEMPROF_FUZZ_CHANGE_H

#include "input.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS_MAX 1024
#define SEEDS_MAX   8

static struct seed {
    char path[4096];
    unsigned char *data;
    size_t size;
} seeds[SEEDS_MAX];
static int seed_count;
static char path[64];
static struct column {
    char table[64], name[64];
} columns[COLUMNS_MAX];
static int column_count;

static void load_seed(struct seed *seed)
{
    FILE *f = fopen(seed->path, "rb");
    if (!f) {
        fprintf(stderr, "fuzz: %s of FUZZ_DATABASE cannot be read\n", seed->path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    seed->size = (size_t)ftell(f);
    rewind(f);
    seed->data = malloc(seed->size);
    if (!seed->data || fread(seed->data, 1, seed->size, f) != seed->size)
        exit(2);
    fclose(f);
}

static void load_columns(const char *name)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    sqlite3_open_v2(name, &db, SQLITE_OPEN_READONLY, NULL);
    sqlite3_prepare_v2(
        db, "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'", -1,
        &q, NULL);
    while (sqlite3_step(q) == SQLITE_ROW) {
        if (column_count == COLUMNS_MAX)
            abort(); /* it would leave out tables */
        struct column *c = &columns[column_count++];
        snprintf(c->table, sizeof c->table, "%s", (const char *)sqlite3_column_text(q, 0));
        snprintf(c->name, sizeof c->name, "%s", (const char *)sqlite3_column_text(q, 1));
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
}

static void change_start(void)
{
    const char *names = getenv("FUZZ_DATABASE");
    for (; names && *names && seed_count < SEEDS_MAX; names += strcspn(names, ":"), names += *names == ':') {
        struct seed *seed = &seeds[seed_count++];
        snprintf(seed->path, sizeof seed->path, "%.*s", (int)strcspn(names, ":"), names);
        load_seed(seed);
    }
    if (!seed_count) {
        fputs("fuzz: FUZZ_DATABASE names no file\n", stderr);
        exit(2);
    }
    snprintf(path, sizeof path, "/dev/shm/memprof-fuzz-%d.db", (int)getpid());
    load_columns(seeds[0].path); /* all have the same */
}

static int64_t take_integer(struct input *in)
{
    static const int64_t odd[] = {0,         1,          -1,        INT64_MAX, INT64_MIN, INT32_MAX,
                                  INT32_MIN, UINT32_MAX, 1ll << 40, 65536,     255,       4095};
    unsigned kind = input_take(in);
    if (kind < 128)
        return odd[kind % (sizeof odd / sizeof *odd)];
    int64_t value = 0;
    for (unsigned i = 0; i < kind % 8 + 1; i++)
        value = (int64_t)((uint64_t)value << 8 | input_take(in));
    return value;
}

static void change_value(sqlite3 *db, struct input *in)
{
    const struct column *c = &columns[(input_take(in) << 8 | input_take(in)) % column_count];
    char sql[512];
    unsigned all = input_take(in) % 4 == 0;
    snprintf(sql, sizeof sql,
             all ? "UPDATE \"%s\" SET \"%s\" = ?1" : "UPDATE \"%s\" SET \"%s\" = ?1 WHERE abs(random()) %% 7 = 0",
             c->table, c->name);
    if (input_take(in) % 8 == 0)
        snprintf(sql, sizeof sql, "DELETE FROM \"%s\"", c->table);
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        return;
    uint8_t bytes[256];
    unsigned length;
    switch (input_take(in) % 4) {
    case 0:
        sqlite3_bind_int64(q, 1, take_integer(in));
        break;
    case 1:
        sqlite3_bind_null(q, 1);
        break;
    case 2:
        for (length = 0; length < sizeof bytes && in->size && length < 64; length++)
            bytes[length] = (uint8_t)input_take(in);
        sqlite3_bind_text(q, 1, (const char *)bytes, (int)length, SQLITE_TRANSIENT);
        break;
    default:
        for (length = 0; length < sizeof bytes && in->size; length++)
            bytes[length] = (uint8_t)input_take(in);
        sqlite3_bind_blob(q, 1, bytes, (int)length, SQLITE_TRANSIENT);
    }
    sqlite3_step(q);
    sqlite3_finalize(q);
}

static void change_bytes(struct input *in, size_t size)
{
    FILE *f = fopen(path, "r+b");
    for (int i = 0; f && i < 16 && in->size; i++) {
        long at =
            (long)(((uint64_t)input_take(in) << 24 | input_take(in) << 16 | input_take(in) << 8 | input_take(in)) %
                   size);
        fseek(f, at, SEEK_SET);
        fputc((int)input_take(in), f);
    }
    if (f)
        fclose(f);
}

/* Writes a changed one of them to path. */
static void change_write(struct input *in, unsigned which)
{
    const struct seed *seed = &seeds[which % (unsigned)seed_count];
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(seed->data, 1, seed->size, f) != seed->size)
        abort();
    fclose(f);
    unsigned changes = input_take(in) % 16;
    sqlite3 *db;
    if (changes && sqlite3_open(path, &db) == SQLITE_OK) {
        sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = 1",
                     NULL, NULL, NULL);
        for (unsigned i = 0; i < changes && in->size; i++)
            change_value(db, in);
        sqlite3_close(db);
    }
    if (in->size && input_take(in) % 4 == 0)
        change_bytes(in, seed->size);
}

#endif
