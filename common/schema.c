#include "schema.h"

#include "error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ITEMS_MAX = 256 };

static struct schema_item items[ITEMS_MAX];
static size_t item_count;

/* The ';' that ends it: none in a comment or a text counts. */
static const char *end_of(const char *text)
{
    const char *p = text + strcspn(text, ";-'");
    while (p && *p && *p != ';') {
        if (*p == '\'')
            p = strchr(p + 1, '\'');
        else if (p[1] == '-')
            p = strchr(p, '\n');
        if (p)
            p += 1 + strcspn(p + 1, ";-'");
    }
    return p;
}

static void add(const char *text, int is_view)
{
    const char *end = end_of(text);
    if (item_count == ITEMS_MAX || !end || *end != ';')
        bug("schema.sql has a definition that does not end, or too many: %.40s", text);
    items[item_count++] = (struct schema_item){
        .text = text, .text_bytes = (int)(end - text), .name_bytes = (int)strcspn(text, "( \n"), .is_view = is_view};
}

static void find_items(void)
{
    static const char table[] = "CREATE TABLE ", view[] = "CREATE VIEW ";
    for (const char *line = common_schema_sql; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, table, sizeof table - 1) == 0)
            add(line + sizeof table - 1, 0);
        else if (strncmp(line, view, sizeof view - 1) == 0)
            add(line + sizeof view - 1, 1);
    }
}

int schema_write(int fd)
{
    const struct schema_part *last = common_schema_parts;
    while (last->bytes)
        last++;
    char *image = xcalloc(1, last->offset);
    for (const struct schema_part *part = common_schema_parts; part < last; part++)
        memcpy(image + part->offset, part->data, part->bytes);
    ssize_t written = write(fd, image, last->offset); /* at once: no moment leaves a part of it */
    int rc = written < 0 ? -errno : (size_t)written < last->offset ? -ENOSPC : 0;
    free(image);
    return rc;
}

const struct schema_item *schema_items(size_t *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_items);
    *count = item_count;
    return items;
}

const struct schema_item *schema_find(const char *name)
{
    size_t count, length = strlen(name);
    const struct schema_item *all = schema_items(&count);
    for (size_t i = 0; i < count; i++)
        if ((size_t)all[i].name_bytes == length && strncasecmp(all[i].text, name, length) == 0)
            return &all[i];
    return NULL;
}
