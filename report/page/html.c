/* The page as a file: the template and its parts in their places. */
#include "html.h"

#include "../../common/db.h"
#include "../../common/replace.h"
#include "../query/program_name.h"
#include "../query/short_name.h"
#include "page_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define X(name)                                                                                                        \
    extern const char templates_##name[];                                                                              \
    extern const unsigned long templates_##name##_length;
#include "templates.def"
#undef X

struct render {
    struct page *page;
    FILE *out;
    char nonce[33];
};

typedef int (*write_data)(struct page *page, struct page_pack *pack);

static int write_pack(struct render *r, write_data write, int packed)
{
    struct page_pack pack;
    pack_begin(&pack, r->out, packed);
    int rc = write(r->page, &pack), failed = pack_end(&pack);
    if (!rc && failed)
        rc = error_set(r->page->err, -failed, "writing the page: %s", strerror(-failed));
    return rc;
}

static int write_text(struct render *r, const char *text, size_t length)
{
    fwrite(text, 1, length, r->out);
    return 0;
}

static int part_nonce(struct render *r)
{
    return write_text(r, r->nonce, strlen(r->nonce));
}

/* What the user called the program: its file may have another name (busybox, redis-server). */
static int part_title(struct render *r)
{
    struct buf b = BUF(1u << 16), called = BUF(1u << 16);
    char *name = NULL;
    sqlite3_stmt *s =
        page_query(r->page, "SELECT command_line, exe FROM process JOIN v_image USING(process_id) "
                            "WHERE first_id = (SELECT min(process_id) FROM process) ORDER BY process_id DESC LIMIT 1");
    if (s && sqlite3_step(s) == SQLITE_ROW) {
        program_name(&called, db_text(s, 0));
        name = short_name_cut(called.length ? called.data : page_basename(db_text(s, 1)));
    }
    sqlite3_finalize(s);
    buf_html(&b, name && *name
                     ? name
                     : page_basename(r->page->options->database_path ? r->page->options->database_path : "memprof"));
    free(name);
    buf_free(&called);
    if (b.length)
        write_text(r, b.data, b.length);
    buf_free(&b);
    return 0;
}

static int part_style(struct render *r)
{
    return write_text(r, templates_page_css, templates_page_css_length);
}

static int part_script(struct render *r)
{
    static const struct {
        const char *text;
        const unsigned long *length;
    } scripts[] = {
#define X(name) {templates_##name, &templates_##name##_length},
#include "templates.def"
#undef X
    };
    for (unsigned i = 2; i < sizeof scripts / sizeof *scripts; i++) /* after the HTML and the CSS */
        write_text(r, scripts[i].text, *scripts[i].length);
    return 0;
}

static int part_header(struct render *r)
{
    return page_write_header(r->page, r->out);
}

static int part_findings(struct render *r)
{
    const struct buf *b = &r->page->findings;
    static const char nothing[] = "<li class=\"finding info\"><p>Nothing stands out.</p></li>";
    return b->length ? write_text(r, b->data, b->length) : write_text(r, nothing, strlen(nothing));
}

static int part_top_lines(struct render *r)
{
    return page_write_top_lines(r->page, r->out);
}

static int part_heap(struct render *r)
{
    return page_write_heap(r->page, r->out);
}

static int part_command(struct render *r)
{
    struct buf b = BUF(4u << 20);
    char *command = db_meta_text(r->page->db, "command");
    buf_html(&b, command && *command ? command : "(command unknown)");
    free(command);
    if (b.length)
        write_text(r, b.data, b.length);
    buf_free(&b);
    return 0;
}

static int part_database(struct render *r)
{
    struct buf b = BUF(1u << 16);
    buf_html(&b, page_basename(r->page->options->database_path ? r->page->options->database_path : ""));
    if (b.length)
        write_text(r, b.data, b.length);
    buf_free(&b);
    return 0;
}

#define DATA_PART(name, packed)                                                                                        \
    static int part_##name(struct render *r)                                                                           \
    {                                                                                                                  \
        return write_pack(r, page_write_##name, packed);                                                               \
    }
DATA_PART(core, 0)
DATA_PART(timeline, 1)
DATA_PART(sites, 1)
DATA_PART(instants, 1)
DATA_PART(blocks, 1)
DATA_PART(source, 1)
DATA_PART(devices, 1)

static const struct {
    const char *name;
    int (*write)(struct render *r);
} parts[] = {
    {"nonce", part_nonce},         {"title", part_title},       {"style", part_style},
    {"script", part_script},       {"header", part_header},     {"findings", part_findings},
    {"top_lines", part_top_lines}, {"database", part_database}, {"command", part_command},
    {"core", part_core},           {"timeline", part_timeline}, {"sites", part_sites},
    {"instants", part_instants},   {"blocks", part_blocks},     {"source", part_source},
    {"devices", part_devices},     {"heap", part_heap},
};

static int render_part(struct render *r, const char *name, size_t length)
{
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].name) == length && !memcmp(parts[i].name, name, length))
            return parts[i].write(r);
    bug("templates/page.html: no part named %.*s", (int)length, name);
}

static int render(struct render *r)
{
    const char *at = templates_page_html, *mark;
    int rc = 0;
    while (!rc && (mark = strstr(at, "{{"))) {
        const char *close = strstr(mark, "}}");
        if (!close)
            bug("templates/page.html: {{ without }}");
        fwrite(at, 1, (size_t)(mark - at), r->out);
        rc = render_part(r, mark + 2, (size_t)(close - mark - 2));
        at = close + 2;
    }
    if (!rc)
        fwrite(at, 1, strlen(at), r->out);
    return rc;
}

void page_free(struct page *page)
{
    for (uint32_t i = 0; i < page->device_count; i++)
        free(page->devices[i].name);
    for (uint32_t i = 0; i < page->function_count; i++)
        free(page->functions[i].name);
    for (uint32_t i = 0; i < page->file_count; i++)
        free(page->files[i]);
    for (uint32_t i = 0; i < page->module_count; i++)
        free(page->modules[i]);
    void *arrays[] = {page->devices,  page->functions, page->files,      page->file_ids, page->modules,
                      page->frames,   page->nodes,     page->node_order, page->lines,    page->sites,
                      page->instants, page->entries,   page->site_of};
    for (unsigned i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    struct map *maps[] = {&page->site_of_far, &page->site_at,  &page->function_of, &page->file_of,
                          &page->module_of,   &page->frame_of, &page->node_of,     &page->line_at};
    for (unsigned i = 0; i < sizeof maps / sizeof *maps; i++)
        map_close(maps[i]);
    buf_free(&page->findings);
    heap_end_free(&page->heap_end);
}

static int write_page(sqlite3 *db, const struct html_options *options, FILE *out, struct error *err)
{
    struct page page = {.db = db, .options = options, .err = err};
    struct render r = {.page = &page, .out = out};
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_set(err, errno, "no random numbers: %s", strerror(errno));
    for (unsigned i = 0; i < sizeof random; i++)
        snprintf(r.nonce + 2 * i, 3, "%02x", random[i]);
    page.duration_ns = db_meta_int(db, "duration_ns", 0);
    page.start_unix_ns = db_meta_int(db, "start_unix_ns", 0);
    if (page.duration_ns <= 0) /* of a recording that was cut off: as far as it goes */
        page.duration_ns = db_int(db, "SELECT max(time_ns + width_ns) FROM timeline", 1);
    /* one snapshot, of a file that may still be written to */
    int begun = sqlite3_get_autocommit(db) && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
    int rc = page_load_devices(&page);
    if (!rc)
        rc = page_load_sites(&page);
    if (!rc)
        rc = page_load_instants(&page);
    if (!rc)
        rc = page_make_findings(&page);
    if (!rc)
        rc = render(&r);
    if (!rc && (fflush(out) || ferror(out)))
        rc = error_set(err, errno ? errno : EIO, "writing the page: %s", strerror(errno ? errno : EIO));
    if (begun)
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    page_free(&page);
    return rc;
}

char *html_page_path(const char *database_path)
{
    size_t length = strlen(database_path);
    char *path = xmalloc(length + 6);
    strcpy(path, database_path);
    if (length > 3 && !strcmp(path + length - 3, ".db"))
        length -= 3;
    strcpy(path + length, ".html");
    return path;
}

static void open_page(const char *path)
{
    char *const argv[] = {(char *)"xdg-open", (char *)path, NULL};
    if (fork() == 0) { /* its own session: a browser outlives us and our terminal */
        int null = open("/dev/null", O_RDWR);
        setsid();
        for (int fd = 0; fd < 3 && null >= 0; fd++)
            dup2(null, fd);
        execvp(argv[0], argv);
        _exit(127);
    }
}

int html_write(sqlite3 *db, const struct html_options *options, struct error *err)
{
    if (options->to_stdout)
        return write_page(db, options, stdout, err);
    char *path = options->page_path ? xstrdup(options->page_path) : html_page_path(options->database_path);
    if (db_same_file(options->database_path, path)) {
        int rc =
            error_set(err, EINVAL, "%s: is the recording itself; give the page another name with --html=PAGE", path);
        free(path);
        return rc;
    }
    struct replace file;
    int rc = replace_open(&file, path, err), is_file = rc == 0 && file.temporary;
    if (rc)
        rc = error_set(err, -rc, "%s: %s; name another place with --html=PAGE", path, strerror(-rc));
    else
        rc = replace_close(&file, write_page(db, options, file.out, err), err);
    if (is_file && !rc)
        printf("%s\n", path);
    if (!rc && options->open)
        open_page(path);
    free(path);
    return rc;
}
