/*
 * finding.h: sentences that the data bears out, each with its numbers and what it points at. The rules are rows of
 * findings.def; the same findings are HTML on the page, lines above the tables of `memprof report`, and JSON.
 */
#ifndef MEMPROF_FINDING_H
#define MEMPROF_FINDING_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../print/record.h"

#include <sqlite3.h>
#include <stdint.h>

enum finding_severity { FINDING_BAD, FINDING_WARN, FINDING_INFO };

/* How what it saves at the peak is known. */
enum finding_claim {
    FINDING_UNCLAIMED, /* not: nobody asked, or there are no events */
    FINDING_EXACT,     /* were it done as it says */
    FINDING_AT_MOST,
    FINDING_AT_LEAST,
};

/* What it saves a part of. */
enum finding_base {
    FINDING_ACTIVE,   /* the device's peak of active bytes */
    FINDING_RESERVED, /* ... of reserved bytes */
    FINDING_BESIDE,   /* what allocators took at the first one beside the bytes that were asked for */
};

enum finding_part_kind {
    FINDING_TEXT,
    FINDING_CODE, /* a function's name */
    FINDING_LINE, /* a function's name, with its stacks and source behind it */
    /* for the page alone: a sentence that leads to */
    FINDING_MOMENT,  /* an instant, */
    FINDING_PEAK,    /* the device's peak, */
    FINDING_SECTION, /* a section of the page */
};

struct finding_part { /* of a finding's sentences, in order */
    enum finding_part_kind kind;
    char *text;
    int64_t number;     /* LINE: a site of the line; MOMENT: time_ns */
    const char *anchor; /* LINE: which of the page's tables has it; SECTION: its id */
};

struct finding_number { /* what it was told from */
    const char *name;
    int64_t value;
};

#define FINDING_NUMBERS 12

struct finding {
    const char *rule, *title;
    enum finding_severity severity;
    char *device;
    int is_told;      /* of rules that only tell what is: `memprof advise` has none of them */
    int is_minor;     /* for lists alone: the page and JSON; of severity INFO, so that WARN and BAD are a `*` line */
    int is_listed;    /* the same of a rule's information */
    int has_keeper;   /* it says who keeps the line's blocks */
    int is_fact;      /* a terminal has it before other information: nothing is to be done about it */
    int is_little;    /* its bytes are few beside those of another one of its severity and device: behind the others */
    int nth;          /* of its rule and device */
    int64_t bytes;    /* that it is about; 0: it is about none */
    int64_t active;   /* the device's peak of active bytes; 0: of no one device */
    int64_t time_ns;  /* -1: of no instant */
    char *function;   /* the line that it is about; NULL: none */
    char *file;       /* NULL: not known */
    int64_t line;     /* 0: not known */
    const char *next; /* what to do; NULL: nothing to say */
    char *caller;     /* that was named beside code without a symbol, shortened; NULL: none */
    struct buf skips; /* " --skip NAME" of a wrapper that it is about, and of others that it passes memory on for */
    enum finding_claim claim;
    enum finding_base base;
    int64_t saved_bytes; /* of base; */
    int64_t peak_bytes;  /* the peak was this */
    struct finding_number numbers[FINDING_NUMBERS];
    int number_count;
    struct finding_part *parts;
    size_t part_count, part_capacity;
};

/* What libraries, interpreters and allocators keep for themselves of a line's blocks on the host at the end. */
struct finding_kept {
    int64_t line_id, bytes, count;
    int noise; /* whose: of noise.h */
};

struct findings {
    struct finding *item; /* the worst first */
    size_t count, capacity;
    int device_count;   /* of the recording */
    int is_advise;      /* alone */
    int leaves_events;  /* of a large report: they were left to `memprof advise` */
    int64_t largest_id; /* the process that had most of the host's at its end, as a sentence has it; 0: none has */
    struct finding_kept *kept; /* where a sentence of what is live at the end was looked for */
    size_t kept_count, kept_capacity;
    const char *file; /* the recording, as it is named in commands; borrowed */
    int has_events;   /* all of them were there to be read, and were */
};

struct heap_end;

enum findings_for {
    FINDINGS_ADVISE = 1, /* `memprof advise`: all events are read, and what each saves at the peak is looked for */
    FINDINGS_REPORT =
        2, /* a report, its JSON and the page: all that advise says, and others; of large ones no events */
};

struct findings_options {
    enum findings_for asked_for;
    int64_t first_device;                     /* the id of the one whose findings come first */
    const char *device;                       /* its alone; NULL: of all */
    const char *file;                         /* the recording, as it was named; NULL: not */
    const struct heap_end *heap_end;          /* NULL: nothing is said of the heap */
    void (*progress)(void *arg, int percent); /* of advise; NULL: none */
    void *progress_arg;
};

/* 0 or -errno with err; free in both cases. */
int findings_load(sqlite3 *db, const struct findings_options *options, struct findings *findings, struct error *err);
void findings_free(struct findings *findings);
/* Whether nothing is to be done about it, or it is too little: for lists alone, behind the others. */
int finding_is_fact(const struct finding *f);

/* What a line of the recording is on the page, by one of its sites; -1: the page does not show it. */
typedef int64_t finding_page_line(void *context, int64_t site_id);
void findings_html(const struct findings *findings, struct buf *html, finding_page_line *line, void *context);
/* A line each, of the worst three: `*` for what a list shows as bad or as a warning, in grey what is information. */
void findings_print(const struct findings *findings, const struct report_out *out);
/* Appends the skips of those that findings_print shows. */
void findings_skips(const struct findings *findings, struct buf *options);
/* The sentences alone. */
void finding_plain(const struct finding *f, struct buf *text);
/* What its line begins with: "* ", of what memprof takes for a fault; "? ", of what saves at the peak, too, and may
 * well be meant; nothing: it saves nothing there, or nobody knows how much. */
const char *finding_mark(const struct finding *f);
/* Whether it saves more than next to nothing, a thousandth of the peak. */
int finding_saves_much(const struct finding *f);
/* "saves at most 1.00 MiB of a peak of 2.00 MiB"; nothing where that is not known. */
void finding_saving(const struct finding *f, struct buf *text);
/* What to do, with the command for it; nothing where there is nothing to say. */
void finding_next(const struct findings *findings, const struct finding *f, struct buf *text);
/* JSON: "findings": an array of what the page shows. */
void findings_record(const struct findings *findings, struct record *record);

#endif
