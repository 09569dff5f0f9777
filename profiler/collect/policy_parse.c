#include "policy_parse.h"

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/units.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const policy_metric_names[POLICY_METRICS] = {"active", "freed", "max", "idle", "reserved"};
const char *const policy_what_names[POLICY_WHATS] = {
#define X(name, id, who) name,
#include "policy_actions.def"
#undef X
};
const enum policy_who policy_whose[POLICY_WHATS] = {
#define X(name, id, who) POLICY_##who,
#include "policy_actions.def"
#undef X
};

enum { WORD = 64, USED_END = 101 };

/* A line that is being read. */
struct reader {
    char *at; /* the rest, NUL-terminated */
    int is_trusted;
    char problem[256]; /* "": none yet */
};

/* Returns 0, so that `return wrong(...)` ends a part that could not be read. The first one stays. */
static int __attribute__((format(printf, 2, 3))) wrong(struct reader *r, const char *format, ...)
{
    va_list arguments;
    if (r->problem[0])
        return 0;
    va_start(arguments, format);
    vsnprintf(r->problem, sizeof r->problem, format, arguments);
    va_end(arguments);
    for (char *p = r->problem; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    return 0;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct reader *r)
{
    while (is_blank(*r->at))
        r->at++;
}

/* The next word; a comma is none of it. "" at the end. */
static void take_word(struct reader *r, char word[WORD])
{
    size_t n = 0;
    skip_blanks(r);
    while (*r->at && !is_blank(*r->at) && *r->at != ',') {
        if (n + 1 < WORD)
            word[n++] = *r->at;
        r->at++;
    }
    word[n] = 0;
}

/* Digits alone, up to most. */
static int take_number(const char **at, unsigned most, unsigned *number)
{
    const char *begin = *at;
    *number = 0;
    while (isdigit((unsigned char)**at) && *number <= most)
        *number = *number * 10 + (unsigned)(*(*at)++ - '0');
    return *at > begin && *number <= most;
}

static int read_device(struct reader *r, struct policy_band *b)
{
    char word[WORD];
    unsigned ordinal;
    take_word(r, word);
    const char *at = word + 5;
    if (strcmp(word, "host") != 0 && strcmp(word, "cuda:*") != 0 &&
        (strncmp(word, "cuda:", 5) != 0 || !take_number(&at, 253, &ordinal) || *at))
        return wrong(r, "device '%s': expected host, cuda:0 or cuda:*", word);
    snprintf(b->device, sizeof b->device, "%.15s", word);
    return 1;
}

static int read_used(struct reader *r, struct policy_band *b)
{
    char word[WORD];
    take_word(r, word);
    const char *at = word;
    if (!take_number(&at, USED_END, &b->from) || *at++ != '-' || !take_number(&at, USED_END, &b->to) || *at ||
        b->from >= b->to)
        return wrong(r, "used '%s': expected per cent as FROM-TO, such as 75-101", word);
    return 1;
}

static int read_metric(struct reader *r, struct policy_band *b)
{
    char word[WORD];
    take_word(r, word);
    for (unsigned i = 0; i < POLICY_METRICS; i++)
        if (strcmp(word, policy_metric_names[i]) == 0) {
            b->metric = (enum policy_metric)i;
            take_word(r, word);
            return strcmp(word, ">=") == 0 || wrong(r, "'%s': expected >= behind the metric", word);
        }
    return wrong(r, "metric '%s': expected active, freed, max, idle or reserved", word);
}

static int read_percent(const char *word, double *percent)
{
    unsigned whole = 0, part = 0, place = 1;
    const char *at = word;
    if (!take_number(&at, 100, &whole))
        return 0;
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at) && place < 1000000; at++, place *= 10)
            part = part * 10 + (unsigned)(*at - '0');
    *percent = whole + (double)part / place;
    return at[0] == '%' && !at[1] && *percent <= 100;
}

static int read_threshold(struct reader *r, struct policy_band *b)
{
    char word[WORD];
    int64_t bytes;
    take_word(r, word);
    if (strchr(word, '%')) {
        if (!read_percent(word, &b->percent))
            return wrong(r, "threshold '%s': expected up to 100%%", word);
    } else if (units_parse_bytes(word, &bytes) == 0 && bytes >= 0) {
        b->bytes = (uint64_t)bytes;
    } else {
        return wrong(r, "threshold '%s': expected bytes, such as 256MiB, or a share, such as 10%%", word);
    }
    return 1;
}

/* One, or the larger of two. */
static int read_thresholds(struct reader *r, struct policy_band *b)
{
    char word[WORD];
    if (!read_threshold(r, b))
        return 0;
    char *before = r->at;
    take_word(r, word);
    if (strcmp(word, "or") == 0)
        return read_threshold(r, b);
    r->at = before;
    return 1;
}

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},     {"QUIT", SIGQUIT}, {"ABRT", SIGABRT}, {"KILL", SIGKILL},
    {"USR1", SIGUSR1}, {"USR2", SIGUSR2},   {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CONT", SIGCONT},
    {"STOP", SIGSTOP}, {"WINCH", SIGWINCH}, {"URG", SIGURG},   {"PWR", SIGPWR},
};

int policy_signal(const char *name)
{
    unsigned number;
    const char *at = name;
    if (take_number(&at, 64, &number) && !*at)
        return (int)number;
    name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    return 0;
}

static int read_signal(struct reader *r, struct policy_action *a)
{
    char word[WORD];
    take_word(r, word);
    a->signal = policy_signal(word);
    return a->signal || wrong(r, "signal '%s': expected a name, such as USR1", word);
}

/* All that is left of the line, commas too. */
static int read_command(struct reader *r, struct policy_action *a)
{
    skip_blanks(r);
    size_t length = strlen(r->at);
    while (length && is_blank(r->at[length - 1]))
        length--;
    if (!length)
        return wrong(r, "run: expected a command behind it, to the end of the line");
    a->command = xmalloc(length + 1);
    memcpy(a->command, r->at, length);
    a->command[length] = 0;
    r->at += strlen(r->at);
    return 1;
}

static int read_callback(struct reader *r, struct policy_action *a)
{
    char word[WORD];
    take_word(r, word);
    if (strlen(word) >= sizeof a->name)
        return wrong(r, "callback '%s': a name has up to %zu bytes", word, sizeof a->name - 1);
    snprintf(a->name, sizeof a->name, "%.15s", *word ? word : "callback");
    return 1;
}

static int read_action(struct reader *r, struct policy_action *a)
{
    char word[WORD];
    take_word(r, word);
    for (unsigned i = 0; i < POLICY_WHATS; i++) {
        if (strcmp(word, policy_what_names[i]) != 0)
            continue;
        a->what = (enum policy_what)i;
        if (policy_whose[i] == POLICY_TRUSTED && !r->is_trusted)
            return wrong(r, "%s: only a policy of memprof run --policy may do that", word);
        return i == POLICY_SIGNAL     ? read_signal(r, a)
               : i == POLICY_RUN      ? read_command(r, a)
               : i == POLICY_CALLBACK ? read_callback(r, a)
                                      : 1;
    }
    return wrong(r,
                 "action '%s': expected malloc-trim, pool-trim, pool-trim-sync, callback, mark, keyframe, signal NAME "
                 "or run COMMAND",
                 word);
}

static int fits(struct reader *r, const struct policy_band *b, const struct policy_action *a)
{
    const int is_host = strcmp(b->device, "host") == 0;
    if (a->what == POLICY_MALLOC_TRIM && !is_host)
        return wrong(r, "malloc-trim: the heap is the host's, not that of %s", b->device);
    if ((a->what == POLICY_POOL_TRIM || a->what == POLICY_POOL_TRIM_SYNC) && is_host)
        return wrong(r, "%s: pools are a GPU's, such as cuda:0", policy_what_names[a->what]);
    return 1;
}

static int read_actions(struct reader *r, struct policy_band *b)
{
    for (;;) {
        if (b->action_count == POLICY_ACTIONS)
            return wrong(r, "more than %u actions", POLICY_ACTIONS);
        struct policy_action *a = &b->actions[b->action_count++];
        if (!read_action(r, a) || !fits(r, b, a))
            return 0;
        skip_blanks(r);
        if (!*r->at)
            return 1;
        if (*r->at++ != ',')
            return wrong(r, "'%.40s': expected a comma between actions", r->at - 1);
    }
}

static void free_band(struct policy_band *b)
{
    for (unsigned i = 0; i < b->action_count; i++)
        free(b->actions[i].command);
    free(b->text);
    *b = (struct policy_band){.line = 0};
}

/* For people and as a mark's name: columns that were laid out with blanks become words. */
static char *shown(const char *line)
{
    char *text = xmalloc(POLICY_SHOWN_MAX + 1);
    size_t n = 0;
    for (; *line && n < POLICY_SHOWN_MAX; line++)
        if (!is_blank(*line))
            text[n++] = *line;
        else if (n && text[n - 1] != ' ')
            text[n++] = ' ';
    text[n] = 0;
    return text;
}

static void read_line(struct policy *p, char *line, unsigned number, struct reader *r)
{
    struct policy_band band = {.line = number};
    r->at = line;
    r->problem[0] = 0;
    skip_blanks(r);
    if (!*r->at || *r->at == '#')
        return;
    if (p->count == POLICY_BANDS) {
        wrong(r, "more than %u bands", POLICY_BANDS);
        return;
    }
    band.text = shown(r->at);
    if (read_device(r, &band) && read_used(r, &band) && read_metric(r, &band) && read_thresholds(r, &band) &&
        read_actions(r, &band))
        p->bands[p->count++] = band;
    else
        free_band(&band);
}

unsigned policy_parse(struct policy *p, const char *text, size_t length, int is_trusted, policy_tell *tell, void *arg)
{
    struct reader r = {.is_trusted = is_trusted};
    unsigned number = 0, bad = 0;
    *p = (struct policy){.count = 0};
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t bytes = end ? (size_t)(end - text) - at : length - at;
        char *line = xmalloc(bytes + 1);
        memcpy(line, text + at, bytes);
        line[bytes] = 0;
        r.problem[0] = 0;
        number++;
        if (strlen(line) < bytes)
            wrong(&r, "it has a NUL, and is no text");
        else
            read_line(p, line, number, &r);
        free(line);
        if (r.problem[0]) {
            bad++;
            tell(arg, number, r.problem);
        }
        at += bytes + 1;
    }
    if (!bad && !p->count) {
        bad++;
        tell(arg, number ? number : 1, "no band is in it; a line is DEVICE FROM-TO METRIC >= THRESHOLD ACTION");
    }
    if (bad)
        policy_free(p);
    return bad;
}

void policy_free(struct policy *p)
{
    for (unsigned i = 0; i < p->count; i++)
        free_band(&p->bands[i]);
    p->count = 0;
}

int policy_is_of(const struct policy_band *band, const char *device)
{
    if (strcmp(band->device, "cuda:*") == 0)
        return strncmp(device, "cuda:", 5) == 0;
    return strcmp(band->device, device) == 0;
}

int policy_has_orders(const struct policy *p)
{
    for (unsigned i = 0; i < p->count; i++)
        for (unsigned k = 0; k < p->bands[i].action_count; k++)
            if (policy_whose[p->bands[i].actions[k].what] == POLICY_PROGRAM)
                return 1;
    return 0;
}
