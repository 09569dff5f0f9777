/*
 * schema.h: the definitions of the tables and views in schema.sql, which is the file format, one by one.
 */
#ifndef MEMPROF_SCHEMA_H
#define MEMPROF_SCHEMA_H

#include <stddef.h>

extern const char common_schema_sql[]; /* schema.sql, embedded by the build */

/* An empty database with that schema: the parts of its file that are not zeros, made by the build
 * (tools/schema_image.c). Behind the last one stands how long it is, without bytes. */
struct schema_part {
    size_t offset, bytes;
    const char *data;
};
extern const struct schema_part common_schema_parts[];

struct schema_item {
    const char *text; /* in common_schema_sql, without "CREATE TABLE " or "CREATE VIEW " before and ";" behind it */
    int text_bytes, name_bytes; /* it begins with its name */
    int is_view;
};

/* Writes that database into a new file. 0 or -errno. */
int schema_write(int fd);
/* In the order of schema.sql: a view is behind the tables that it reads. */
const struct schema_item *schema_items(size_t *count);
/* As SQLite compares names: small and capital letters are the same. NULL: we have none of that name. */
const struct schema_item *schema_find(const char *name);

#endif
