#include "top.h"

#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct top {
    const struct top_options *options;
    struct running *live;
    struct frame frame;
    int64_t next_ns; /* when the next look is due; monotonic */
    struct error message;
    char *device; /* frame.view.device, where a key chose it */
    unsigned mark_count;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- keys --- */

/* The first one, the next, ..., all. */
static void next_device(struct top *t)
{
    const struct glance *look = running_glance(t->live);
    const char *now = t->frame.view.device, *next = NULL;
    for (size_t i = 0; i < look->device_count && !next; i++)
        if (!now || (i > 0 && !strcmp(look->devices[i - 1].name, now)))
            next = look->devices[i].name;
    char *own = xstrdup_if(next);
    free(t->device);
    t->frame.view.device = t->device = own;
}

static void scroll(struct top *t, int64_t rows)
{
    if (rows < 0 && (uint64_t)-rows > t->frame.first)
        t->frame.first = 0;
    else
        t->frame.first += (size_t)rows; /* frame_draw knows where the end is */
}

/* What came of it is told until the next look. */
static void set_mark(struct top *t)
{
    char name[32];
    snprintf(name, sizeof name, "top %u", t->mark_count + 1);
    if (running_mark(t->live, name, &t->message) == 0) {
        t->mark_count++;
        snprintf(t->message.text, sizeof t->message.text, "mark '%s' is set", name);
    }
    t->frame.message = t->message.text;
}

/* 0: quit. */
static int take_key(struct top *t, int key)
{
    struct running_view *view = &t->frame.view;
    const int64_t page = t->frame.page ? (int64_t)t->frame.page : 1;
    if (t->frame.has_help && key < TERMINAL_REDRAW) {
        t->frame.has_help = 0;
        return key != 'q' && key != 'Q';
    }
    switch (key) {
    case 'q':
    case 'Q':
    case TERMINAL_QUIT:
    case TERMINAL_CLOSED:
        return 0;
    case 's':
        view->sort = (view->sort + 1) % RUNNING_SORTS;
        break;
    case 'l':
        view->by = (view->by + 1) % SITE_NAMES_BYS;
        break;
    case 'd':
        next_device(t);
        break;
    case 'p':
    case ' ':
        t->frame.is_paused = !t->frame.is_paused;
        t->next_ns = t->frame.is_paused ? t->next_ns : 0;
        break;
    case 'm':
        set_mark(t);
        break;
    case '?':
    case 'h':
        t->frame.has_help = 1;
        break;
    case TERMINAL_UP:
    case TERMINAL_DOWN:
        scroll(t, key == TERMINAL_UP ? -1 : 1);
        break;
    case TERMINAL_PAGE_UP:
    case TERMINAL_PAGE_DOWN:
        scroll(t, key == TERMINAL_PAGE_UP ? -page : page);
        break;
    case TERMINAL_HOME:
    case TERMINAL_END:
        t->frame.first = key == TERMINAL_HOME ? 0 : SIZE_MAX / 2;
        break;
    default:
        break;
    }
    return 1;
}

/* --- the loop --- */

static int draw(struct top *t)
{
    struct buf lines = BUF(16 << 20);
    terminal_size(&t->frame.out.width, &t->frame.height);
    frame_draw(t->live, &t->frame, &lines);
    int failed = terminal_show(&lines);
    buf_free(&lines);
    return failed;
}

/* What goes wrong with one look is said until one works: the file may be about to be moved, or the disk be full. */
static void look(struct top *t)
{
    int rc = running_step(t->live, &t->message);
    t->frame.message = rc < 0 ? t->message.text : NULL;
    t->next_ns = now_ns() + t->options->interval_ns;
}

/* Held, nothing is looked at, so names are borrowed as long. */
static int64_t time_left(const struct top *t)
{
    int64_t left_ns = t->next_ns - now_ns();
    return t->frame.is_paused ? -1 : left_ns > 0 ? left_ns : 0;
}

static void run(struct top *t)
{
    for (;;) {
        if (!t->frame.is_paused && time_left(t) == 0)
            look(t);
        if (draw(t))
            return;
        int fd = t->frame.is_paused ? -1 : running_fd(t->live), key = terminal_wait(fd, time_left(t));
        if (key == TERMINAL_READY)
            t->next_ns = 0;
        else if (!take_key(t, key))
            return;
    }
}

static int run_on_terminal(struct top *t, struct error *err)
{
    int rc = terminal_open(err);
    if (rc)
        return rc;
    run(t);
    terminal_close();
    free(t->device);
    return 0;
}

static int print_once(struct top *t, struct error *err)
{
    const struct top_options *o = t->options;
    int rc = running_wait_names(t->live, err);
    if (rc == 0)
        frame_once(t->live, &o->view, o->file, o->rows, &o->out);
    return rc;
}

int top_run(const struct top_options *o, struct error *err)
{
    struct top t = {.options = o, .frame = {.out = o->out, .view = o->view}};
    int is_once = o->is_once || o->out.format != REPORT_TEXT || !terminal_is_there();
    int rc = running_open(o->file, o->open, !is_once, &t.live, err);
    if (rc)
        return rc;
    rc = is_once ? print_once(&t, err) : run_on_terminal(&t, err);
    running_close(t.live);
    return rc;
}
