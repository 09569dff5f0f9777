#include "cli.h"

#include "../common/buf.h"
#include "../report/text/sql.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { QUERY_BYTES_MAX = 16 << 20 };

static int read_query(struct buf *query)
{
    size_t n;
    char part[4096];
    if (isatty(STDIN_FILENO))
        cli_note("sql: reading SQL from the terminal; end with Ctrl-D");
    while ((n = fread(part, 1, sizeof part, stdin)) > 0)
        buf_add(query, part, n);
    if (query->failed)
        return cli_usage("sql: a query of more than %d bytes", QUERY_BYTES_MAX);
    buf_puts(query, "");
    return 0;
}

int cmd_sql(const struct arguments *a)
{
    struct report_out out;
    struct error err = {""};
    sqlite3 *db = NULL;
    struct buf query = BUF(QUERY_BYTES_MAX);
    if (a->rest_count == 0)
        return cli_usage("sql: no file given; expected: memprof sql FILE [QUERY]");
    if (a->rest_count > 2)
        return cli_usage(
            "sql: the query has to be one word for the shell; put it in quotes: memprof sql FILE 'SELECT ...'");
    int status = cli_output(a, &out);
    if (status == 0) {
        int rc = reader_open(a->rest[0], &db, &err);
        if (rc == 0 && a->rest_count == 2)
            buf_puts(&query, a->rest[1]);
        else if (rc == 0)
            status = read_query(&query);
        if (rc == 0 && status == 0)
            rc = sql_run(db, buf_text(&query), &out, &err);
        fflush(stdout); /* rows before the message about a later statement */
        if (rc)
            status = cli_fail(&err);
        sqlite3_close(db);
        status = cli_close_output(status);
    }
    buf_free(&query);
    return status;
}
