/*
 * process.h: the recorded processes (images: an exec ends one and starts the next), from their slots in shared memory
 * to rows of table process. One thread, the collector's.
 */
#ifndef MEMPROF_PROCESS_H
#define MEMPROF_PROCESS_H

#include "../store/stacks.h"
#include "../store/store.h"
#include "clock.h"
#include "pids.h"
#include "session.h"
#include "watch.h"

#include <stdint.h>

struct devices;
struct resident_map;
struct sources;
struct mapping;

/* The threads of a process of another pid namespace, as they call themselves: their numbers cannot be asked after. */
struct thread_look {
    int *ids;
    uint32_t count, room; /* count over room: not all are there */
    uint32_t number;      /* of this look; 0: none yet */
    uint64_t ns, next_ns; /* when, and when the next one may be; monotonic */
};

struct copying {                    /* of a process that may share pages: copied.h */
    uint64_t faults, looked_faults; /* minor ones: at the newest sample, and at the last look, */
    uint64_t looked_own_bytes;      /* which found so much that no other process has */
    uint64_t bytes;                 /* what of inherited pages it may have copied since then */
    unsigned vain_count;            /* looks that found nothing of it, one after another */
};

struct process {
    uint32_t slot;
    int pid;                /* as it calls itself */
    int outer_pid;          /* as we must call it: another one where it lives in a pid namespace of its own */
    uint64_t pid_namespace; /* which its pid is of */
    int pidfd;              /* -1: none to be had; then asked with kill(2) */
    uint16_t process_id;
    uint8_t inherited;      /* began as a fork: knows blocks of its parent */
    uint8_t attached;       /* while it ran: blocks of before are not known */
    uint8_t dead;           /* gone: its rings get no more words */
    uint8_t replaced;       /* by exec */
    uint8_t rings_known;    /* all that it had: they were looked for after it was gone */
    uint8_t discard;        /* no number left for it: its words are thrown away */
    uint8_t overdue;        /* has words stamped after dead_stamp */
    uint8_t has_exit;       /* EXIT record seen */
    uint8_t reaped;         /* its row has its status, and its pid is another's */
    uint8_t has_exec;       /* EXEC record seen, and nothing since from that thread */
    uint64_t start_stamp;   /* as it says: to be compared, no more */
    uint64_t dead_stamp;    /* when it was seen to be gone */
    uint64_t exec_stamp;    /* of the EXEC record */
    uint64_t exec_check_ns; /* when to look whether it became a program that is not recorded; monotonic */
    int exit_value;         /* of the EXIT record */
    uint32_t leaving_ring;  /* the ring of that EXIT or EXEC record */
    uint64_t
        leaving_deadline_ns; /* monotonic: how long the order waits for the end that it announced; 0: not leaving */
    uint32_t ring_count;     /* adopted rings */
    uint32_t unread;         /* of them, with words that this round has not read yet */
    struct thread_look look; /* of another namespace */
    int statm_fd;            /* -1: not open yet */
    uint64_t rss_bytes;      /* newest sample */
    uint64_t sampled_bytes, sampled_peak_bytes; /* of the round that samples all, and what peak_rss_bytes was before */
    uint64_t sampled_ns;                        /* monotonic: when it was last seen to have some; at first adopted_ns */
    uint64_t peak_rss_bytes;                    /* as far as it was seen */
    uint64_t adopted_ns;                        /* monotonic: when it was first seen */
    uint64_t looked_rss_bytes;                  /* the sample at the last look at its pages, */
    uint64_t looked_ns;                         /* which took so long */
    struct resident_map *begun;                 /* a fork's child: what it had mapped when it joined; NULL: not known */
    size_t begun_count;
    uint16_t family;       /* the process that it came from by forks alone; itself */
    uint8_t looked_at_end; /* the look for its end was made */
    uint8_t seen_leaving;  /* that it is about to end was known as the round of looks began */
    uint8_t looks_fail;    /* its pages cannot be read */
    struct copying copying;
    struct stack_map *stacks;
    struct python *python;   /* its code objects */
    struct sources *sources; /* NULL: it said no text of code yet */
    struct mapping *mapping;
    struct devices *devices; /* NULL: no call of a device or a sub-allocator yet */
    uint64_t alloc_retries;  /* of the host's memory */
    uint64_t address_limit;  /* as its last failure told it; 0: none did */
    uint8_t address_limits;  /* how many different ones in a row are in the file */
    char *exe;               /* its path; what its first module is, where a chroot hides that */
    char *linked;            /* the path of the file that exe is a link to, as its module says; NULL: none */
    char *command;           /* shell-quoted: what the last exec gave it, or the process that it was forked from */
    char started_as[WIRE_TITLE_MAX]; /* the first bytes of these arguments as they lie in memory */
    uint32_t started_bytes;
    char title[WIRE_TITLE_MAX]; /* the same, as it was seen last */
    uint32_t title_bytes;       /* 0: not seen */
    uint64_t title_next_ns;     /* when it may be looked at again; monotonic */
    char *target;               /* of the EXEC record: what it was executing; NULL: not known */
    uint32_t target_reach;      /* the same: enum wire_reach */
    char comm[16];              /* the name that its first thread gave itself; "": none */
    char name[64];              /* for messages: the last part of its path */
};

#define PROCESSES_EXPECTED 64u
#define PROCESSES_JOIN_NS  1000000000u /* within which a program that is being executed joins */

struct processes {
    struct session *session;
    struct store *store;
    struct clock *clock;
    struct watch *watch;
    struct stacks *stacks;
    struct named *named;
    struct process *by_slot[WIRE_PROCS];
    uint32_t slot_end;       /* slots below were used at some time */
    uint32_t live;           /* of them with a process now */
    uint32_t claimed;        /* of all, by processes that are about to join */
    uint64_t claim_check_ns; /* when to look whether those still are; monotonic */
    uint64_t spawns_seen;    /* of control->spawns_told */
    uint32_t total;          /* rows so far */
    uint32_t others;         /* recorded processes so far beside the first one, whose images are one process */
    uint32_t refused;        /* processes beyond what a process_id can number */
    int first_pid;
    int first_status; /* wait status of the first program, once first_ended */
    int first_ended;
    uint64_t first_before_bytes; /* peak resident bytes of its process before it was the program */
    uint64_t first_peak_bytes;   /* and of all that it ever was, and of children that it waited for; once first_ended */
    int own_pid;
    uint64_t pid_namespace;     /* ours; 0: not known */
    int other_namespace;        /* processes of another pid namespace were seen */
    uint64_t expected_check_ns; /* when to look after them; monotonic */
    struct expected {
        int pid;            /* does an exec whose new image may still join, */
        uint16_t parent_id; /* the row that it comes from */
        uint64_t stamp;     /* when it did */
        uint64_t until_ns;  /* until then; monotonic */
        uint32_t reach;     /* enum wire_reach */
        int is_judged;      /* nothing is known against it */
        int is_gone;        /* its process had ended at the last look */
        char *path;         /* what it executes; NULL: not known */
    } expected[PROCESSES_EXPECTED];
    struct orphan {
        uint16_t process_id; /* began with a parent that had no row, */
        int parent_pid;      /* which was this one */
        uint64_t stamp;
    } orphans[PROCESSES_EXPECTED];
    uint64_t begun_ns;     /* of processor time, for the mappings that forks' children began with */
    uint32_t orphan_count; /* so far; of very many the newest are kept */
    struct pids pids;
};

void processes_open(struct processes *ps, struct session *session, struct store *store, struct clock *clock,
                    struct watch *watch, struct stacks *stacks, int first_pid);
void processes_close(struct processes *ps);

/* Finds slots that went live, and processes that ended. Before rings are looked at. */
void processes_scan(struct processes *ps);
/* Those that announced an exec and were silent since: whether another image runs now. */
void processes_scan_execs(struct processes *ps, uint64_t now_ns);
/* Children without a ring that execute a program; after processes_scan, so that a parent that was seen to be gone has
 * said all. */
void processes_scan_spawns(struct processes *ps, uint64_t now_ns);
/* A process (by its pid here) was executing a program then (path: NULL where that is not known), which may join. */
void processes_expect(struct processes *ps, int outer_pid, uint16_t parent_id, uint64_t stamp, uint64_t now_ns,
                      const char *path, uint32_t reach);
/* Whether one of those may still join. */
int processes_expected(const struct processes *ps, uint64_t now_ns);
/* The process of a ring; NULL: its slot is not live (yet), or another's. */
struct process *processes_of_slot(struct processes *ps, uint32_t slot, int pid);
/* A parent has reaped its child of this pid, so it is gone whatever we saw; status as of wait4. Returns it while it is
 * in the table. */
struct process *processes_reaped(struct processes *ps, const struct process *parent, int pid, int wait_status,
                                 uint64_t stamp);
/* All its events are accounted: row and counters are completed, the slot is given back, p is freed. */
void processes_end(struct processes *ps, struct process *p, int64_t end_ns);
/* The recording ends before the process does. */
void processes_abandon(struct processes *ps, struct process *p);

/* --- images that are not recorded: process_missing.c. Each becomes a row that says why --- */

/* Looks after what was expected: what is gone, or cannot join, becomes a row. */
void processes_scan_missing(struct processes *ps, uint64_t now_ns);
/* Those that are expected to the end did not join. */
void processes_finish_missing(struct processes *ps);
/* What is expected of this pid is over with: it joined, or was never executed. */
void processes_forget_expected(struct processes *ps, int outer_pid, uint64_t until_stamp);
/* It did not join, for whoever asks has seen what it did or how it ended. */
void processes_settle_expected(struct processes *ps, int outer_pid, uint64_t stamp);
void processes_settle_one(struct processes *ps, struct expected *e);
/* p ended as the program that it was executing: the end that was written of it is that one's. */
void processes_end_missing(struct processes *ps, const struct process *p, int has_status);

/* The end of a row: with the first program's status, or with none that is known. */
void processes_write_gone(struct processes *ps, uint16_t process_id, int64_t end_ns, int is_first);

/* Gives back the slots of processes that were killed before they had filled them. */
void processes_scan_claims(struct processes *ps, uint64_t now_ns);
/* The slot is anybody's. */
void processes_free_slot(struct processes *ps, uint32_t slot);
/* Takes up slots that went live. */
void processes_adopt(struct processes *ps);
/* Whether it is an image of the program that was started. */
static inline int process_is_first(const struct processes *ps, const struct process *p)
{
    return p->pid == ps->first_pid && p->pid_namespace == ps->pid_namespace;
}
/* What the file of that name in its directory of /proc begins with, as text; empty: not to be had. */
void process_text(const struct process *p, const char *name, char *text, size_t size_bytes);
/* How many live on when the program has ended, and one of them. What has ended, and lacks its last events only as the
 * collector is late, does not. */
unsigned processes_that_outlive(const struct processes *ps, const struct process **one);
/* The futex word at which it waits, as it ends, for the last look at its pages (resident.c). */
static inline uint32_t *process_last_look(const struct processes *ps, const struct process *p)
{
    return &ps->session->procs[p->slot].last_look;
}
/* Whether it waits there, its EXIT record written: it goes on living, and nobody else's records wait for its end. */
static inline int process_awaits_look(const struct processes *ps, const struct process *p)
{
    return p->leaving_deadline_ns && !p->has_exec &&
           __atomic_load_n(process_last_look(ps, p), __ATOMIC_RELAXED) == WIRE_LOOK_WANTED;
}
/* Resident bytes now; 0: not to be had. Where they differ from the sample before, p->peak_rss_bytes is asked for. */
uint64_t process_rss(const struct processes *ps, struct process *p);
/* The most resident bytes, once it has ended: what it said itself, or what was seen. */
uint64_t process_peak_rss(const struct processes *ps, const struct process *p);

#endif
