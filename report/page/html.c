/* The report's page: its parts, and how they are made. */
#include "html.h"

#include "../../common/db.h"
#include "../query/ending.h"
#include "../query/estimate.h"
#include "../query/program_name.h"
#include "../query/programs.h"
#include "../query/recorded.h"
#include "../query/rotated_part.h"
#include "../query/short_name.h"
#include "page_categories.h"
#include "page_file.h"

#include <stdlib.h>
#include <string.h>

static int write_text(FILE *out, const char *text, size_t length)
{
    fwrite(text, 1, length, out);
    return 0;
}

/* The script that was called, as a shell's argument or by its own name: whatever it executes in its place at last, that
 * is its work. 0: none was. */
static int called_script(struct page *page, struct buf *called)
{
    struct buf first = BUF(1u << 16);
    char *command = db_meta_text(page->db, "command");
    int is_script = command && program_name(called, command);
    sqlite3_stmt *s =
        is_script ? NULL : page_query(page, "SELECT command_line FROM process ORDER BY process_id LIMIT 1");
    if (s && sqlite3_step(s) == SQLITE_ROW)
        is_script = program_name(&first, db_text(s, 0)) && strcmp(buf_text(&first), buf_text(called)) == 0;
    sqlite3_finalize(s);
    free(command);
    buf_free(&first);
    return is_script;
}

/* What the user called the program: its file may have another name (busybox, redis-server). */
static char *called_program(struct page *page)
{
    struct buf called = BUF(1u << 16);
    if (called_script(page, &called)) {
        char *name = short_name_cut(buf_text(&called));
        buf_free(&called);
        return name;
    }
    buf_reset(&called);
    char *name = NULL;
    sqlite3_stmt *s = page_query(page, "SELECT command_line, exe FROM process WHERE process_id = " LAST_RECORDED_FIRST);
    if (s && sqlite3_step(s) == SQLITE_ROW) {
        char *ran = NULL;
        if (!program_name(&called, db_text(s, 0)) && (ran = programs_ran_only(page->db))) {
            buf_reset(&called);
            program_name(&called, ran);
        }
        free(ran);
        name = short_name_cut(called.length ? called.data : page_basename(db_text(s, 1)));
    }
    sqlite3_finalize(s);
    buf_free(&called);
    return name;
}

static int part_title(void *of, FILE *out)
{
    struct page *page = of;
    struct buf b = BUF(1u << 16);
    char *name = called_program(page);
    buf_html(&b, name && *name
                     ? name
                     : page_basename(page->options->database_path ? page->options->database_path : "memprof"));
    free(name);
    if (b.length)
        write_text(out, b.data, b.length);
    buf_free(&b);
    return 0;
}

static int part_header(void *of, FILE *out)
{
    return page_write_header(of, out);
}

static int part_findings(void *of, FILE *out)
{
    const struct page *page = of;
    const struct buf *b = &page->findings;
    const char *nothing = estimate_mean_bytes(page->db)
                              ? "<li class=\"finding info\"><p>Not looked for: findings are of exact numbers, and this "
                                "recording is sampled.</p></li>"
                              : "<li class=\"finding info\"><p>Nothing stands out.</p></li>";
    return b->length ? write_text(out, b->data, b->length) : write_text(out, nothing, strlen(nothing));
}

static int part_top_lines(void *of, FILE *out)
{
    return page_write_top_lines(of, out);
}

static int part_heap(void *of, FILE *out)
{
    return page_write_heap(of, out);
}

static int part_command(void *of, FILE *out)
{
    struct page *page = of;
    struct buf b = BUF(4u << 20);
    char *command = db_meta_text(page->db, "command");
    buf_html(&b, command && *command ? command : "(command unknown)");
    free(command);
    if (b.length)
        write_text(out, b.data, b.length);
    buf_free(&b);
    return 0;
}

static int part_database(void *of, FILE *out)
{
    struct page *page = of;
    struct buf b = BUF(1u << 16);
    buf_html(&b, page_basename(page->options->database_path ? page->options->database_path : ""));
    if (b.length)
        write_text(out, b.data, b.length);
    buf_free(&b);
    return 0;
}

#define DATA_PART(name, packed)                                                                                        \
    static int write_##name(void *of, struct page_pack *pack)                                                          \
    {                                                                                                                  \
        return page_write_##name(of, pack);                                                                            \
    }                                                                                                                  \
    static int part_##name(void *of, FILE *out)                                                                        \
    {                                                                                                                  \
        return page_write_pack(out, packed, write_##name, of, ((struct page *)of)->err);                               \
    }
DATA_PART(core, 0)
DATA_PART(timeline, 1)
DATA_PART(sites, 1)
DATA_PART(instants, 1)
DATA_PART(blocks, 1)
DATA_PART(source, 1)
DATA_PART(devices, 1)

static const struct page_part parts[] = {
    {"title", part_title},         {"header", part_header},     {"findings", part_findings},
    {"top_lines", part_top_lines}, {"database", part_database}, {"command", part_command},
    {"core", part_core},           {"timeline", part_timeline}, {"sites", part_sites},
    {"instants", part_instants},   {"blocks", part_blocks},     {"source", part_source},
    {"devices", part_devices},     {"heap", part_heap},
};

static const enum page_template scripts[] = {
    PAGE_units_js,  PAGE_theme_js,  PAGE_model_js,  PAGE_figure_js,   PAGE_timeline_js, PAGE_tables_js, PAGE_flame_js,
    PAGE_growth_js, PAGE_source_js, PAGE_layers_js, PAGE_failures_js, PAGE_blocks_js,   PAGE_app_js,
};

static const struct page_form form = {.html = PAGE_page_html,
                                      .what = "memprof",
                                      .scripts = scripts,
                                      .script_count = sizeof scripts / sizeof *scripts,
                                      .parts = parts,
                                      .part_count = sizeof parts / sizeof *parts};

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
    page_phases_free(page);
    buf_free(&page->findings);
    heap_end_free(&page->heap_end);
}

struct writing {
    sqlite3 *db;
    const struct html_options *options;
};

static int write_page(void *of, FILE *out, struct error *err)
{
    const struct writing *w = of;
    sqlite3 *db = w->db;
    struct page page = {.db = db, .options = w->options, .err = err};
    page.duration_ns = ending_duration_ns(db, 1);
    page.begin_ns = rotated_part(db).start_ns;
    page.start_unix_ns = db_meta_int(db, "start_unix_ns", 0);
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
        rc = page_file_write(&form, &page, out, err);
    if (begun)
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    page_free(&page);
    return rc;
}

int html_write(sqlite3 *db, const struct html_options *options, struct error *err)
{
    struct writing w = {.db = db, .options = options};
    const char *const originals[] = {options->database_path, NULL};
    char *path = options->to_stdout   ? NULL
                 : options->page_path ? xstrdup(options->page_path)
                                      : db_path_with(options->database_path, ".html");
    const struct page_place place = {.path = path, .originals = originals, .open = options->open};
    int rc = page_file_put(&place, write_page, &w, err);
    free(path);
    return rc;
}
