/* JUnit's XML as Ant writes it and Jenkins, GitLab and others read it: testsuites, testsuite, testcase, failure. */
#include "check_private.h"

#include "../../common/db.h"
#include "../../common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* XML 1.0 has no way to write most control characters, nor U+FFFE and U+FFFF. */
static void add_xml(struct buf *out, const char *text)
{
    struct buf valid = BUF(64 << 20);
    text_valid(&valid, text);
    char *p = valid.data, *to = p;
    for (; p && *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == 0xef && (unsigned char)p[1] == 0xbf && (unsigned char)p[2] >= 0xbe)
            p += 2;
        else if (c >= ' ' || c == '\n' || c == '\t')
            *to++ = *p;
    }
    if (to)
        *to = 0;
    buf_html(out, valid.data ? valid.data : "");
    buf_free(&valid);
}

static void add_attribute(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, " %s=\"", name);
    add_xml(out, text);
    buf_putc(out, '"');
}

/* The culprits as the terminal shows them, but with their full names. */
static char *culprits_text(struct walk *walk, const struct check_options *o, const struct check_result *r,
                           const char *base, int *rc, struct error *err)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        out_of_memory(0);
    const struct report_out out = {.file = file, .utf8 = 1};
    *rc = check_print_culprits(walk, o, r, CHECK_NAMES_FULL, base, &out, "", err);
    if (fclose(file))
        out_of_memory(0);
    return text;
}

static int add_case(struct walk *walk, const struct check_options *o, const struct check_results *results,
                    const struct check_result *r, const char *base, struct buf *out, struct error *err)
{
    const char *tags[] = {[CHECK_BROKEN] = "failure", [CHECK_UNKNOWN] = "error"};
    struct buf name = BUF(1 << 16), message = BUF(1 << 16);
    int rc = 0;
    check_name_text(r, CHECK_NAMES_FULL, &name);
    check_measured_text(r, &message);
    buf_puts(&message, ", ");
    check_limit_text(o, results, r, &message);
    buf_puts(out, "    <testcase classname=\"memprof.check\"");
    add_attribute(out, "name", buf_text(&name));
    buf_puts(out, ">\n"); /* no time: the run's is all that there is */
    if (r->verdict != CHECK_KEPT) {
        char *text = culprits_text(walk, o, r, base, &rc, err);
        buf_printf(out, "      <%s", tags[r->verdict]);
        add_attribute(out, "type", check_infos[r->id].name);
        add_attribute(out, "message", buf_text(&message));
        buf_puts(out, ">");
        add_xml(out, text);
        buf_printf(out, "</%s>\n", tags[r->verdict]);
        free(text);
    }
    buf_puts(out, "      <system-out>");
    add_xml(out, buf_text(&message));
    buf_puts(out, "</system-out>\n    </testcase>\n");
    buf_free(&name);
    buf_free(&message);
    return rc;
}

/* What no rule says: the program did not end as it should. */
static void add_failed(const struct check_options *o, struct buf *out)
{
    buf_puts(out, "    <testcase classname=\"memprof.check\" name=\"program\">\n      <error");
    add_attribute(out, "type", o->is_killed ? "killed" : "failed");
    add_attribute(out, "message", o->failed);
    buf_puts(out, "></error>\n      <system-out>");
    add_xml(out, o->failed);
    buf_puts(out, "</system-out>\n    </testcase>\n");
}

int check_junit(sqlite3 *db, const struct check_options *options, const struct check_results *results, FILE *file,
                struct error *err)
{
    struct buf out = BUF(256 << 20);
    struct check_walks walks;
    char *base = db_meta_text(db, "cwd"), *command = db_meta_text(db, "command");
    int64_t duration_ns = db_meta_int(db, "duration_ns", 0);
    const int has_failed = options->failed != NULL;
    int rc = check_walks_open(options, results, &walks, err);
    buf_puts(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"memprof check\"");
    buf_printf(&out, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"0\" time=\"%.3f\">\n    <properties>\n",
               results->count + has_failed, results->counts[CHECK_BROKEN], results->counts[CHECK_UNKNOWN] + has_failed,
               duration_ns > 0 ? (double)duration_ns / 1e9 : 0);
    const char *properties[][2] = {{"recording", options->file}, {"command", command ? command : ""}};
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        buf_puts(&out, "      <property");
        add_attribute(&out, "name", properties[i][0]);
        add_attribute(&out, "value", properties[i][1]);
        buf_puts(&out, "/>\n");
    }
    buf_puts(&out, "    </properties>\n");
    for (int i = 0; rc == 0 && i < results->count; i++)
        rc = add_case(walks.walk[results->result[i].run], options, results, &results->result[i], base, &out, err);
    if (has_failed)
        add_failed(options, &out);
    buf_puts(&out, "  </testsuite>\n</testsuites>\n");
    if (rc == 0 && out.failed)
        rc = error_set(err, E2BIG, "the JUnit file would have more than 256 MiB");
    if (rc == 0)
        fwrite(out.data, 1, out.length, file);
    buf_free(&out);
    check_walks_close(&walks);
    free(base);
    free(command);
    return rc;
}
