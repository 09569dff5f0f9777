#include "heaptrack.h"

#include "../../common/array.h"
#include "heaptrack_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No honest program has more; together some GiB. */
#define TEXT_BYTES_MAX  (1ull << 30)
#define TEXTS_MAX       (1u << 26)
#define CODES_MAX       (1u << 24)
#define FRAMES_MAX      (1u << 26)
#define CHAIN_MAX       64u /* frames of an instruction; the outer ones are left out */
#define TRACES_MAX      (1u << 27)
#define ALLOCATIONS_MAX (1u << 26)
#define COMMAND_MAX     (1u << 16)

/* --- what lines define: 1; 0: not understood; -errno with h->ending ----------------------------------------------- */

static int too_many(struct heaptrack *h, const char *what, uint64_t most)
{
    return error_set(&h->ending, E2BIG, "more than %llu %s; what comes after that is not read",
                     (unsigned long long)most, what);
}

static void bad_line(struct heaptrack *h)
{
    h->bad_lines++;
}

/* A text may hold newlines, and then goes on in the next line. */
static int read_rest(struct heaptrack *h, struct buf *text, uint64_t length)
{
    while (text->length < length) {
        struct line line;
        int is_cut, rc = lines_next(h->lines, &line, &is_cut);
        if (rc <= 0)
            return rc;
        buf_putc(text, '\n');
        uint64_t want = length - text->length, have = (uint64_t)(line.end - line.at);
        buf_add(text, line.at, have < want ? have : want);
        if (text->failed)
            return 0;
    }
    return 1;
}

static int add_text(struct heaptrack *h, const char *text, size_t length)
{
    if (h->text_count >= TEXTS_MAX)
        return too_many(h, "texts", TEXTS_MAX);
    if (length > TEXT_BYTES_MAX - h->text_bytes)
        return too_many(h, "bytes of texts", TEXT_BYTES_MAX);
    ARRAY_ROOM(h->texts, h->text_count + 2, h->text_room);
    char *copy = xmalloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    h->texts[++h->text_count] = (struct heaptrack_text){copy, (uint32_t)length};
    h->text_bytes += length;
    return 1;
}

static int define_text(struct heaptrack *h, struct line *line)
{
    uint64_t length = 0, have;
    if (h->format < 3)
        return add_text(h, line->at, (size_t)(line->end - line->at));
    if (!line_hex(line, &length) || length > LINES_MOST) {
        bad_line(h); /* it has a number all the same */
        return add_text(h, "", 0);
    }
    have = (uint64_t)(line->end - line->at);
    if (have >= length)
        return add_text(h, line->at, (size_t)length);
    struct buf text = BUF(LINES_MOST + 1);
    buf_add(&text, line->at, (size_t)have);
    int rc = read_rest(h, &text, length);
    if (rc == 0)
        bad_line(h);
    rc = rc < 0 ? rc : add_text(h, buf_text(&text), text.length);
    buf_free(&text);
    return rc;
}

static int read_frame(struct line *line, struct heaptrack_frame *f)
{
    *f = (struct heaptrack_frame){0};
    if (!line_hex32(line, &f->function))
        return 0;
    if (line_hex32(line, &f->file) && !line_hex32(line, &f->line))
        f->line = 0;
    return 1;
}

static int define_code(struct heaptrack *h, struct line *line)
{
    struct heaptrack_code code = {.first_frame = h->frame_count};
    struct heaptrack_frame frame;
    if (h->code_count >= CODES_MAX)
        return too_many(h, "instructions", CODES_MAX);
    ARRAY_ROOM(h->codes, h->code_count + 2, h->code_room);
    if (!line_hex(line, &code.address) || !line_hex32(line, &code.module))
        bad_line(h);
    else
        while (code.frame_count < CHAIN_MAX && read_frame(line, &frame)) {
            if (h->frame_count >= FRAMES_MAX)
                return too_many(h, "frames", FRAMES_MAX);
            *ARRAY_ADD(h->frames, h->frame_count, h->frame_room) = frame;
            code.frame_count++;
        }
    h->codes[++h->code_count] = code;
    return 1;
}

static int define_trace(struct heaptrack *h, struct line *line)
{
    struct heaptrack_trace trace;
    if (h->trace_count >= TRACES_MAX)
        return too_many(h, "traces", TRACES_MAX);
    ARRAY_ROOM(h->traces, h->trace_count + 2, h->trace_room);
    if (!line_hex32(line, &trace.code) || !line_hex32(line, &trace.caller) || trace.code > h->code_count ||
        trace.caller > h->trace_count) {
        bad_line(h);
        trace = (struct heaptrack_trace){0};
    }
    h->traces[++h->trace_count] = trace;
    return 1;
}

static int define_allocation(struct heaptrack *h, struct line *line)
{
    struct heaptrack_allocation a;
    if (h->allocation_count >= ALLOCATIONS_MAX)
        return too_many(h, "sizes by trace", ALLOCATIONS_MAX);
    if (!line_hex(line, &a.size_bytes) || !line_hex32(line, &a.trace) || a.trace > h->trace_count ||
        a.size_bytes > HEAPTRACK_SIZE_MAX) {
        bad_line(h);
        a = (struct heaptrack_allocation){0};
    }
    *ARRAY_ADD(h->allocations, h->allocation_count, h->allocation_room) = a;
    return 1;
}

static int set_system(struct heaptrack *h, struct line *line)
{
    if (!line_hex(line, &h->page_bytes) || !line_hex(line, &h->page_count) || h->page_bytes > 1u << 30 ||
        h->page_count >= 1ull << 40) {
        bad_line(h);
        h->page_bytes = h->page_count = 0;
    }
    return 1;
}

static int set_command(struct heaptrack *h, struct line *line)
{
    if (h->command.length)
        buf_putc(&h->command, '\n');
    buf_add(&h->command, line->at, (size_t)(line->end - line->at));
    h->is_in_command = 1;
    return 1;
}

static int define(struct heaptrack *h, char what, struct line *line)
{
    switch (what) {
    case 's':
        return define_text(h, line);
    case 'i':
        return define_code(h, line);
    case 't':
        return define_trace(h, line);
    case 'a':
        return define_allocation(h, line);
    case 'I':
        return set_system(h, line);
    case 'X':
        return set_command(h, line);
    case 'A':
        h->is_attached = 1;
        return 1;
    case 'S':
        h->suppressions++;
        return 1;
    case '#':
        return 1;
    default:
        bad_line(h);
        return 1;
    }
}

/* --- what happened ------------------------------------------------------------------------------------------------ */

/* Whether the line tells of something; what it names is there. */
static int happened(struct heaptrack *h, char what, struct line *line, struct heaptrack_event *e)
{
    if (!line_hex(line, &e->value))
        return 0;
    switch (what) {
    case '+':
    case '-':
        e->what = what == '+' ? HEAPTRACK_ALLOC : HEAPTRACK_FREE;
        return e->value < h->allocation_count;
    case 'c':
        e->what = HEAPTRACK_TIME;
        return e->value < INT64_MAX / 1000000;
    default:
        e->what = HEAPTRACK_RSS;
        return !__builtin_mul_overflow(e->value, h->page_bytes ? h->page_bytes : 4096, &e->value) &&
               e->value < 1ull << 62;
    }
}

static int is_event(char what)
{
    return what == '+' || what == '-' || what == 'c' || what == 'R';
}

/* A command of several lines: what follows it is of the file itself where it begins as its lines do. */
static int is_commands(struct heaptrack *h, const struct line *line)
{
    int is_ours = line->end - line->at >= 2 && line->at[1] == ' ' && memchr("IsAScR#itam+-", *line->at, 13);
    return h->is_in_command && !is_ours && h->command.length < COMMAND_MAX;
}

/* Takes the letter and the space after it. */
static char take_letter(struct line *line)
{
    if (line->at == line->end)
        return '#';
    char what = *line->at;
    line->at += line->end - line->at > 2 ? 2 : line->end - line->at;
    return what;
}

static int fail(struct heaptrack *h, int rc)
{
    if (!h->ending.text[0])
        error_set(&h->ending, -rc, "%s",
                  rc == -EBADMSG ? "the compressed data is damaged; what is before that was read" : strerror(-rc));
    return 0;
}

int heaptrack_next(struct heaptrack *h, struct heaptrack_event *event)
{
    struct line line;
    int is_cut, rc;
    if (h->ending.text[0])
        return 0;
    while ((rc = lines_next(h->lines, &line, &is_cut)) > 0) {
        h->cut_lines += (uint64_t)is_cut;
        if (is_commands(h, &line)) {
            set_command(h, &line);
            continue;
        }
        h->is_in_command = 0;
        char what = take_letter(&line);
        if (!is_event(what)) {
            rc = define(h, what, &line);
            if (rc < 0)
                return fail(h, rc);
        } else if (happened(h, what, &line, event)) {
            return 1;
        } else {
            bad_line(h);
        }
    }
    return rc < 0 ? fail(h, rc) : 0;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* "v VERSION FORMAT"; 1.1 gave the format's number in the place of its own. */
static int read_version(struct heaptrack *h, struct line *line, struct error *err)
{
    uint32_t version, format = 0;
    if (take_letter(line) != 'v' || !line_hex32(line, &version))
        return error_set(err, EBADMSG, "is no file of heaptrack: its first line is not \"v VERSION FORMAT\"");
    if (!line_hex32(line, &format) && version == 0x010200)
        format = 1;
    h->version = version;
    h->format = format;
    if (format > HEAPTRACK_FORMAT_MAX)
        return error_set(err, ENOTSUP, "has heaptrack's file format %u; up to %u can be read", format,
                         HEAPTRACK_FORMAT_MAX);
    if (format < HEAPTRACK_FORMAT_MIN)
        return error_set(err, ENOTSUP, "was written by a heaptrack before 1.1; record it anew with a newer one");
    return 0;
}

/* What the library inside the program writes begins with the program, and has addresses without names. */
static int read_second(struct heaptrack *h, struct error *err)
{
    struct line line;
    int is_cut, rc = lines_next(h->lines, &line, &is_cut);
    if (rc < 0)
        fail(h, rc);
    if (rc <= 0)
        return 0;
    char what = take_letter(&line);
    if (what == 'x')
        return error_set(err, ENOTSUP, "is a raw file without names: give it to heaptrack_interpret first");
    rc = is_event(what) ? 0 : define(h, what, &line);
    if (rc < 0)
        fail(h, rc);
    return 0;
}

int heaptrack_open(struct heaptrack *h, struct unpack *source, struct error *err)
{
    struct line line;
    int is_cut;
    *h = (struct heaptrack){.command = BUF(COMMAND_MAX)};
    h->lines = lines_open(source);
    int rc = lines_next(h->lines, &line, &is_cut);
    if (rc <= 0)
        return error_set(err, rc ? -rc : EBADMSG, "%s", rc ? strerror(-rc) : "is empty");
    rc = read_version(h, &line, err);
    return rc ? rc : read_second(h, err);
}

void heaptrack_close(struct heaptrack *h)
{
    for (uint32_t i = 1; i <= h->text_count; i++)
        free((void *)(uintptr_t)h->texts[i].text);
    lines_close(h->lines);
    buf_free(&h->command);
    free(h->codes);
    free(h->frames);
    free(h->traces);
    free(h->allocations);
    free(h->texts);
    *h = (struct heaptrack){0};
}
