/*
 * schema_image.c: what SQLite makes of common/schema.sql, an empty database, as C: schema_image SQL FILE makes FILE and
 * writes the parts of it that are not zeros (common/schema.h) to stdout. Run by the build: to make the tables anew
 * takes longer than all else that memprof does for a short program.
 */
#include "../common/db.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAME_MIN = 64 }; /* as many zeros end a part */

static void die(const char *what)
{
    fprintf(stderr, "schema_image: %s\n", what);
    exit(1);
}

static char *read_all(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die(path);
    *size = (size_t)ftell(f);
    char *text = calloc(1, *size + 1);
    rewind(f);
    if (!text || fread(text, 1, *size, f) != *size)
        die(path);
    fclose(f);
    return text;
}

static void make(const char *sql, const char *path)
{
    sqlite3 *db;
    char first[160];
    unlink(path);
    snprintf(first, sizeof first,
             "PRAGMA page_size = 4096; PRAGMA synchronous = OFF; PRAGMA application_id = %d; PRAGMA user_version = %d; "
             "BEGIN",
             DB_APPLICATION_ID, DB_SCHEMA_PLAIN);
    if (sqlite3_open(path, &db) || sqlite3_exec(db, first, NULL, NULL, NULL) ||
        sqlite3_exec(db, sql, NULL, NULL, NULL) || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
        die(sqlite3_errmsg(db));
    sqlite3_close(db);
}

static size_t zeros(const char *image, size_t at, size_t size)
{
    size_t n = 0;
    while (at + n < size && !image[at + n])
        n++;
    return n;
}

static size_t part(const char *image, size_t at, size_t size)
{
    size_t end = at;
    for (size_t n; end < size && (n = zeros(image, end, size)) < SAME_MIN && end + n < size;)
        end += n + 1;
    printf("    {%zu, %zu, (const char[]){", at, end - at);
    for (size_t i = at; i < end; i++)
        printf("%d,", image[i]);
    puts("}},");
    return end;
}

int main(int argc, char **argv)
{
    size_t size;
    if (argc != 3)
        die("schema_image SQL FILE");
    char *sql = read_all(argv[1], &size);
    make(sql, argv[2]);
    char *image = read_all(argv[2], &size);
    puts("#include \"common/schema.h\"\n\nconst struct schema_part common_schema_parts[] = {");
    for (size_t at = 0; (at += zeros(image, at, size)) < size;)
        at = part(image, at, size);
    printf("    {%zu, 0, 0},\n};\n", size);
    free(sql);
    free(image);
    return fflush(stdout) ? 1 : 0;
}
