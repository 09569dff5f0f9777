#include "page_file.h"

#include "../../common/db.h"
#include "../../common/replace.h"

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

static const struct {
    const char *text;
    const unsigned long *length;
} templates[PAGE_TEMPLATE_COUNT] = {
#define X(name) {templates_##name, &templates_##name##_length},
#include "templates.def"
#undef X
};

struct render {
    const struct page_form *form;
    void *of;
    FILE *out;
    char nonce[33];
};

static void write_template(struct render *r, enum page_template which)
{
    fwrite(templates[which].text, 1, *templates[which].length, r->out);
}

int page_write_html(struct buf *b, FILE *out)
{
    if (b->length)
        fwrite(b->data, 1, b->length, out);
    buf_free(b);
    return 0;
}

static int is_part(const char *part, const char *name, size_t length)
{
    return strlen(part) == length && memcmp(part, name, length) == 0;
}

static int render(struct render *r, enum page_template which);

/* What every page has. */
static const struct {
    const char *name;
    enum page_template which;
} shared[] = {{"head", PAGE_head_html}, {"style", PAGE_page_css}, {"theme", PAGE_theme_html}};

static int render_part(struct render *r, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (is_part(shared[i].name, name, length))
            return render(r, shared[i].which);
    if (is_part("nonce", name, length))
        return fputs(r->nonce, r->out) < 0 ? -EIO : 0;
    if (is_part("what", name, length))
        return fputs(r->form->what, r->out) < 0 ? -EIO : 0;
    if (is_part("script", name, length)) {
        for (int i = 0; i < r->form->script_count; i++)
            write_template(r, r->form->scripts[i]);
        return 0;
    }
    for (int i = 0; i < r->form->part_count; i++)
        if (is_part(r->form->parts[i].name, name, length))
            return r->form->parts[i].write(r->of, r->out);
    bug("templates: no part named %.*s", (int)length, name);
}

static int render(struct render *r, enum page_template which)
{
    const char *at = templates[which].text, *mark;
    int rc = 0;
    while (!rc && (mark = strstr(at, "{{"))) {
        const char *close = strstr(mark, "}}");
        if (!close)
            bug("templates: {{ without }}");
        fwrite(at, 1, (size_t)(mark - at), r->out);
        rc = render_part(r, mark + 2, (size_t)(close - mark - 2));
        at = close + 2;
    }
    if (!rc)
        fwrite(at, 1, strlen(at), r->out);
    return rc;
}

int page_file_write(const struct page_form *form, void *of, FILE *out, struct error *err)
{
    struct render r = {.form = form, .of = of, .out = out};
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_set(err, errno, "no random numbers: %s", strerror(errno));
    for (unsigned i = 0; i < sizeof random; i++)
        snprintf(r.nonce + 2 * i, 3, "%02x", random[i]);
    int rc = render(&r, form->html);
    if (!rc && (fflush(out) || ferror(out)))
        rc = error_set(err, errno ? errno : EIO, "writing the page: %s", strerror(errno ? errno : EIO));
    return rc;
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

int page_file_put(const struct page_place *place, int (*write)(void *of, FILE *out, struct error *err), void *of,
                  struct error *err)
{
    struct replace file;
    const char *path = place->path;
    if (!path)
        return write(of, stdout, err);
    for (const char *const *original = place->originals; *original; original++)
        if (db_same_file(*original, path))
            return error_set(err, EINVAL, "%s: is the recording itself; give the page another name with --html=PAGE",
                             path);
    int rc = db_check_replaced(path, err);
    if (rc)
        return rc;
    struct error why;
    rc = replace_open(&file, path, &why);
    int is_file = rc == 0 && file.temporary;
    if (rc)
        rc = error_set(err, -rc, "%s; name another place with --html=PAGE", why.text);
    else
        rc = replace_close(&file, write(of, file.out, err), err);
    if (is_file && !rc)
        printf("%s\n", path);
    if (!rc && place->open)
        open_page(path);
    return rc;
}
