/*
 * rules.h: what the functions of the rules share: the recording, the device that they are asked about, and how they
 * write a finding.
 */
#ifndef MEMPROF_FINDING_RULES_H
#define MEMPROF_FINDING_RULES_H

#include "../../common/map.h"
#include "../../common/units.h"
#include "../query/callers.h"
#include "../query/named_caller.h"
#include "../query/noise.h"
#include "../query/saving.h"
#include "finding.h"

/* Of lines, summed over their sites; which of page's tables shows it. */
enum line_sum {
    LINE_PEAK_BYTES,
    LINE_PEAK_COUNT,
    LINE_ALLOC_COUNT,
    LINE_TEMPORARY_COUNT,
    LINE_TEMPORARY_BYTES,
    LINE_OF_SITES, /* the others are known of few sites, and come from elsewhere */
    LINE_UNTOUCHED_BYTES = LINE_OF_SITES,
    LINE_END_BYTES, /* of live_at_end.c: without what the C library and interpreters keep for themselves, and
                     * what other programs had that the recorded one ran */
    LINE_END_COUNT,
    LINE_END_UNTOUCHED_BYTES, /* of these: on no page at the last look */
    LINE_END_EVEN_BYTES,      /* of these: came evenly over the run, */
    LINE_END_EVEN_COUNT,
    LINE_END_KILLED_BYTES, /* of these: of processes that a signal killed, as far as their parts are known */
    LINE_END_TORN_BYTES,   /* none of these: freed while an interpreter took itself down */
    LINE_END_TORN_COUNT,
    LINE_END_OTHER_BYTES, /* none of these: of other programs that the recorded one ran */
    LINE_END_OTHER_COUNT,
    LINE_END_REPLACED_BYTES, /* nor of images that executed another program in their place */
    LINE_END_REPLACED_COUNT,
    LINE_END_KEPT_BYTES, /* nor what the C library, interpreters and allocators keep for themselves: bytes and count of
                          * each kind of noise.h */
    LINE_SUMS = LINE_END_KEPT_BYTES + 2 * (NOISE_KINDS - 1)
};

/* The bytes of a kind; what follows them is their count. */
#define LINE_END_KEPT(noise) (enum line_sum)(LINE_END_KEPT_BYTES + 2 * ((noise)-1))

struct rule_line { /* of one device */
    int64_t device_id, site_id;
    int64_t sums[LINE_SUMS];
};

#define FINDINGS_MOST 1000 /* of a rule on a device */
#define GROWTH_POINTS 12
/* 1: what was live at any instant is known. */
#define RULE_HAS_INSTANTS "SELECT EXISTS (SELECT 1 FROM keyframe) OR EXISTS (SELECT 1 FROM event_chunk)"

struct rule_site {
    int64_t site_id;
    uint32_t line;     /* lines */
    uint32_t recorded; /* recorded */
    uint32_t even;     /* even, from 1; 0: it is none of those */
    int has_ends;      /* what it has at the end is its line's LINE_END_BYTES; of live_at_end.c */
    int64_t grown;     /* between the first and the last of growth_ns */
};

/* Lines as they were recorded, whatever --skip shows: what there is to say, and how bad it is, is theirs to tell. */
struct rule_recorded {
    int64_t device_id, site_id;
    int64_t end_bytes; /* of its blocks that are lines' LINE_END_BYTES; of live_at_end.c */
};

struct rule_even { /* a site of many blocks of which hardly any was freed */
    int64_t site_id;
    int64_t live[GROWTH_POINTS];
};

struct rule_device {
    int64_t device_id;
    const char *name;
    int64_t alloc_count, temporary_count, peak_active, peak_ns, peak_count, peak_reserved, peak_reserved_ns, end_bytes,
        end_count;
};

struct rule;

struct heap_end;

enum rule_watch {
#define WATCH(name) WATCH_##name,
#include "watches.def"
#undef WATCH
    WATCHES
};

struct rules {
    sqlite3 *db;
    struct error *err;
    struct findings *findings;
    const struct rule *rule; /* that is being asked */
    const struct rule_device *device;
    const struct heap_end *heap_end; /* NULL: not looked at */
    int64_t duration_ns;
    struct rule_line *lines; /* read when first asked for */
    uint32_t line_count, line_capacity;
    struct rule_site *sites; /* by id */
    size_t site_count, site_capacity;
    struct rule_recorded *recorded;
    uint32_t recorded_count, recorded_capacity;
    struct map line_of;
    int has_lines, has_ends;
    /* of find_growth.c, for all devices: by line, and by recorded line, what it held at each of growth_ns; NULL: not
     * known */
    int64_t *growth, *recorded_growth, growth_ns[GROWTH_POINTS];
    int has_growth;
    const struct pass *pass; /* once all events were read; NULL: they are not all there, or too many */
    int is_advise;
    void *watch[WATCHES + 1]; /* watches.def */
    struct rule_even *even;   /* by site; live where growth is known */
    size_t even_count, even_capacity;
    char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], d[UNITS_TEXT];
};

/* Reads lines and sites; 0 or -errno with r->err. */
int rule_lines(struct rules *r);
/* Adds to a sum of a site's line, where it has one. */
void rule_add(struct rules *r, int64_t site_id, enum line_sum sum, int64_t value);
/* The sum over all lines of the device, and the line that has most of it; NULL: none has any. */
const struct rule_line *rule_top_line(struct rules *r, enum line_sum sum, int64_t *all);
/* The line of a site, once lines were read; NULL: none. */
const struct rule_line *rule_line_of(const struct rules *r, int64_t site_id);
/* A site, once lines were read; NULL: none. */
const struct rule_site *rule_site_of(const struct rules *r, int64_t site_id);
/* The table that has site_id and line_id as recorded. */
const char *rule_recorded_table(sqlite3 *db);

/* Of find_growth.c: reads growth and even, once; nothing where the file does not have instants. */
void rule_growth(struct rules *r);
/* For finding_line_by: what a site grew by, and what it has at the end if it grew evenly. */
int64_t rule_grown(void *rules, int64_t site_id, int64_t end_bytes);
int64_t rule_even_bytes(void *rules, int64_t site_id, int64_t end_bytes);
/* Whether the site's live bytes grew from their first to the end, over half of the run or so, without a rest. */
int rule_is_even(const struct rules *r, int64_t site_id);

/* A statement; NULL with r->err. */
sqlite3_stmt *rule_query(struct rules *r, const char *sql);
/* A size, count or time of the database: a damaged one may be anything, and sums of sane ones must fit. */
static inline int64_t rule_sane(int64_t value)
{
    const int64_t most = INT64_C(1) << 52;
    return value < 0 ? 0 : value > most ? most : value;
}
int64_t rule_amount(sqlite3_stmt *s, int column);
/* The one that a query with these values bound gives; unknown: it gives none. */
int64_t rule_query_amount(struct rules *r, const char *sql, const int64_t *values, int count, int64_t unknown);
int rule_percent(int64_t part, int64_t whole);
/* Whether the heap has blocks that nobody saw (unseen.h): then what it holds beside the others is not known to be free.
 */
int rule_has_unseen(struct rules *r);
/* ... and so many of them were freed that what grew on the device may have come in their place. */
int rule_replaces_unseen(struct rules *r);
/* Whether calls that were not seen freed a notable part of what counts as live at the end. */
int rule_frees_unseen(struct rules *r);

/* A finding of the rule on a device, with the row's severity. Until the next one of them. */
struct finding *rule_finding(struct rules *r, const char *device);
/* Too little for a terminal, and so no warning anywhere. */
void finding_lessen(struct finding *f);
void finding_say(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_code(struct finding *f, const char *function, const char *file, int64_t line);
/* table: "peak", "end" or "run". Who called code without a name: of what was live at the end, in that table. */
void finding_line(struct rules *r, struct finding *f, int64_t site_id, const char *table);
/* The same for "end", where the finding is about a part of that. */
void finding_line_by(struct rules *r, struct finding *f, int64_t site_id, named_caller_bytes *bytes);
/* That a line is a wrapper's, and whom it gave most of these bytes to, where they are all of its callers': a sentence.
 * 1 where it is; else 0, with finding_passed of what is live at the end. */
int finding_wrapper(struct rules *r, struct finding *f, const struct rule_line *line, enum line_sum bytes);
/* Whom a line whose function is named like a wrapper passed most of these bytes to: a sentence, or nothing. */
void finding_passed(struct rules *r, struct finding *f, const struct rule_line *line, named_caller_bytes *bytes);
/* What to do about a line whose blocks a runtime mapped for itself (runtimes.def). 1 where it is one's. */
int finding_runtime(struct rules *r, struct finding *f, int64_t site_id);
/* A sentence for the page that leads to an instant, the device's peak, a section: without its full stop. */
void finding_look(struct finding *f, enum finding_part_kind kind, int64_t time_ns, const char *section,
                  const char *text);

/* --- what a finding saves: saves.c --- */

/* A number that the finding was told from, for programs; name: of JSON, constant. */
void finding_number(struct finding *f, const char *name, int64_t value);
/* Behind finding_line of a wrapper's line: ", most for CALLER," of the stack of this site; of caller.c. */
void finding_caller(struct rules *r, struct finding *f, int64_t site_id);
/* Of what a line (of its sites that is_kept; NULL: all) has live at the end, the innermost caller that keeps nearly all
 * that comes through it, where the line itself does not: a sentence. 1 where there is one. */
int finding_keeper(struct rules *r, struct finding *f, const struct rule_line *line,
                   int (*is_kept)(const struct rules *r, int64_t site_id));
/* What the finding saves of r->device's peak of active bytes, by replaying it: of a saving that was filled, which is
 * closed. claim: FINDING_EXACT where what is said to be done leaves just these bytes out, FINDING_AT_MOST where it may
 * leave out less. A finding that saves next to nothing is information. Nothing where r->pass is NULL. */
void finding_saves(struct rules *r, struct finding *f, struct saving *saving, enum finding_claim claim);
/* The same without a replay: no more than these bytes, which were live at the device's peak. */
void finding_saves_at_most(struct rules *r, struct finding *f, int64_t bytes);
/* The same of what base says, without a replay. */
void finding_saves_of(const struct rules *r, struct finding *f, enum finding_base base, enum finding_claim claim,
                      int64_t saved_bytes, int64_t peak_bytes);
/* Adds the blocks of a line (NULL: of all of them on r->device) that were live when their process ended, from their
 * births on; is_kept NULL: of all of its sites. How many they were. */
int64_t rule_add_gone(struct rules *r, struct saving *saving, const struct rule_line *line,
                      int (*is_kept)(const struct rules *r, int64_t site_id));

void findings_lessen_same(struct findings *all);

/* What watches gather of some lines, each for itself. */
struct line_savings {
    const struct rules *r;
    uint32_t *index_of; /* by line: 1 + place in savings; 0: not asked for */
    struct saving *savings;
    uint32_t count, capacity;
};
void line_savings_open(struct line_savings *all, const struct rules *r);
void line_savings_add(struct line_savings *all, const struct rule_line *line);
/* Of the line of a site; NULL: it was not asked for. */
struct saving *line_savings_of(const struct line_savings *all, int64_t site_id);
void line_savings_close(struct line_savings *all);

/* Reads all events for the watches. 0, also where they are not all there or damaged, or the error in r->err. */
int watches_load(struct rules *r, struct pass *pass, void (*progress)(void *arg, int percent), void *progress_arg);
void watches_close(struct rules *r);

#define WATCH(name)                                                                                                    \
    void *watch_##name##_open(struct rules *r);                                                                        \
    void watch_##name##_see(void *watch, const struct pass_event *e);                                                  \
    void watch_##name##_close(void *watch);
#include "watches.def"
#undef WATCH

#define FINDING(name, title, severity, of, needs, where) void find_##name(struct rules *r);
#include "findings.def"
#undef FINDING

#endif
