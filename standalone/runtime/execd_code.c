/* /code, /code/context*: kernels by their ids and languages. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "execd_kernel.h"
#include "url.h"


pthread_mutex_t      rt_kernels_lock = PTHREAD_MUTEX_INITIALIZER;

static rt_kernel_t  *rt_kernels;        /* newest first */
static unsigned      rt_nkernels;


static const char *const  rt_kernel_names[] = { "python", "bash" };


/* Languages that the real execd knows. */

static bool
rt_language(sb_str_t lang)
{
    size_t  i;

    static const char *const  names[] = {
        "bash", "python", "java", "javascript", "typescript", "go", "sql"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sb_eq(lang, sb_str(names[i], strlen(names[i])))) {
            return true;
        }
    }

    return false;
}


/* Under the lock. */

static rt_kernel_t **
rt_kernel_find(const char *id)
{
    rt_kernel_t  **p;

    for (p = &rt_kernels; *p != NULL; p = &(*p)->next) {
        if (strcmp((*p)->id, id) == 0) {
            return p;
        }
    }

    return NULL;
}


/* Under the lock: takes one out of the table and ends it. */

static void
rt_kernel_remove(rt_kernel_t **p)
{
    rt_kernel_t  *k;

    k = *p;
    *p = k->next;
    rt_nkernels--;
    k->deleted = true;

    /* the pump of one that is busy sees its end and does the rest */

    if (k->busy && k->pid > 0) {
        kill(-k->pid, SIGKILL);
    }

    rt_kernel_unref(k);
}


/* Under the lock: a new kernel, or NULL with one sentence. */

static rt_kernel_t *
rt_kernel_new(sb_str_t lang, char *cwd, bool standard, const char **why)
{
    size_t        i;
    rt_kernel_t  *k;

    for (i = 0; i < 2; i++) {
        if (sb_eq(lang, sb_str(rt_kernel_names[i],
                               strlen(rt_kernel_names[i]))))
        {
            break;
        }
    }

    *why = rt_execd.no_kernels ? "this runtime was started without kernels"
           : i == 2 ? "this runtime has no kernel for that language: python "
                      "and bash only"
           : rt_nkernels == RT_KERNELS_MAX
             ? "there are too many contexts: delete some first" : NULL;

    k = *why ? NULL : calloc(1, sizeof(rt_kernel_t));

    if (k == NULL) {
        free(cwd);
        return NULL;
    }

    rt_uuid4(k->id);
    k->lang = (rt_kernel_lang_e) i;
    k->standard = standard;
    k->cwd = cwd;
    k->refs = 1;

    if (rt_kernel_start(k) == -1) {
        *why = strerror(errno);
        rt_kernel_unref(k);
        return NULL;
    }

    k->next = rt_kernels;
    rt_kernels = k;
    rt_nkernels++;

    return k;
}


void
rt_code_context_create(rt_req_t *r)
{
    char           *path;
    sb_buf_t        b;
    sb_str_t        lang, cwd;
    sb_jdoc_t      *doc;
    const char     *why;
    rt_kernel_t    *k;
    const sb_jv_t  *root;

    lang = cwd = sb_lit("");
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT
        || rt_go_str(root, "language", &lang) < 0
        || rt_go_str(root, "cwd", &cwd) < 0)
    {
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "the body must be a JSON object with a language");
        sb_jdoc_free(doc);
        return;
    }

    path = cwd.len ? rt_expand(cwd, true) : NULL;

    if (cwd.len > 0 && (path == NULL || rt_mkdirs(path, 0777) == -1)) {
        rt_fail(r, 500, "RUNTIME_ERROR", "error creating code context. %s: "
                "%s", cwd.data, strerror(errno));
        free(path);
        sb_jdoc_free(doc);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;

    pthread_mutex_lock(&rt_kernels_lock);
    k = rt_kernel_new(lang, path, false, &why);

    if (k != NULL) {
        sb_buf_printf(&b, "{\"id\":\"%s\",\"language\":\"%s\"", k->id,
                      rt_kernel_names[k->lang]);
    }

    pthread_mutex_unlock(&rt_kernels_lock);

    if (k == NULL) {
        rt_fail(r, 500, "RUNTIME_ERROR", "error creating code context. %s",
                why);

    } else {
        if (cwd.len > 0) {
            sb_buf_printf(&b, ",\"cwd\":");
            rt_go_write(&b, cwd);
        }

        sb_buf_add_c(&b, '}');
        rt_json(r, 200, &b);
    }

    sb_jdoc_free(doc);
}


static void
rt_kernel_show(sb_buf_t *b, const rt_kernel_t *k)
{
    sb_buf_printf(b, "{\"id\":\"%s\",\"language\":\"%s\"}", k->id,
                  rt_kernel_names[k->lang]);
}


void
rt_code_contexts(rt_req_t *r)
{
    char         *lang;
    sb_buf_t      b;
    rt_kernel_t  *k;

    lang = rt_query_get(r->query, "language");

    if (lang != NULL && (strcmp(lang, "command") == 0
                         || strcmp(lang, "background-command") == 0
                         || strcmp(lang, "sql") == 0))
    {
        rt_fail(r, 500, "RUNTIME_ERROR", "there are no contexts of %s", lang);
        free(lang);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_add_c(&b, '[');

    pthread_mutex_lock(&rt_kernels_lock);

    for (k = rt_kernels; k != NULL; k = k->next) {
        if (lang == NULL || lang[0] == '\0'
            || strcmp(lang, rt_kernel_names[k->lang]) == 0)
        {
            sb_buf_add(&b, ",", b.len > 1 ? 1 : 0);
            rt_kernel_show(&b, k);
        }
    }

    pthread_mutex_unlock(&rt_kernels_lock);

    free(lang);
    sb_buf_add_c(&b, ']');
    rt_json(r, 200, &b);
}


void
rt_code_contexts_delete(rt_req_t *r)
{
    char          *lang;
    rt_kernel_t  **p;

    lang = rt_query_get(r->query, "language");

    if (lang == NULL || lang[0] == '\0') {
        rt_fail(r, 400, "MISSING_QUERY",
                "missing query parameter 'language'");
        free(lang);
        return;
    }

    pthread_mutex_lock(&rt_kernels_lock);

    for (p = &rt_kernels; *p != NULL; /* void */ ) {
        if (strcmp(lang, rt_kernel_names[(*p)->lang]) == 0) {
            rt_kernel_remove(p);

        } else {
            p = &(*p)->next;
        }
    }

    pthread_mutex_unlock(&rt_kernels_lock);
    free(lang);
    rt_ok(r);
}


void
rt_code_context(rt_req_t *r, const char *id)
{
    bool           delete;
    sb_buf_t       b;
    rt_kernel_t  **p;

    delete = strcmp(r->method, "DELETE") == 0;
    memset(&b, 0, sizeof(b));
    b.max = 256;

    pthread_mutex_lock(&rt_kernels_lock);
    p = rt_kernel_find(id);

    if (p != NULL) {
        rt_kernel_show(&b, *p);

        if (delete) {
            rt_kernel_remove(p);
        }
    }

    pthread_mutex_unlock(&rt_kernels_lock);

    if (p != NULL && !delete) {
        rt_json(r, 200, &b);
        return;
    }

    sb_buf_free(&b);

    if (p == NULL) {
        rt_fail(r, 404, "CONTEXT_NOT_FOUND", "no context has the id %s", id);

    } else {
        rt_ok(r);
    }
}


bool
rt_kernel_interrupt(const char *id)
{
    rt_kernel_t  **p;

    pthread_mutex_lock(&rt_kernels_lock);
    p = rt_kernel_find(id);

    if (p != NULL && (*p)->busy && (*p)->pid > 0) {
        kill(-(*p)->pid, SIGINT);
    }

    pthread_mutex_unlock(&rt_kernels_lock);

    return p != NULL;
}


/* The kernel for code: that of the id, else the standard one of the language.
 * Under the lock; NULL with one sentence. */

static rt_kernel_t *
rt_code_kernel(sb_str_t lang, const char *id, const char **why)
{
    rt_kernel_t  *k, **p;

    if (id[0] != '\0') {
        p = rt_kernel_find(id);
        *why = "context not found";
        return p ? *p : NULL;
    }

    for (k = rt_kernels; k != NULL; k = k->next) {
        if (k->standard
            && sb_eq(lang, sb_str(rt_kernel_names[k->lang],
                                  strlen(rt_kernel_names[k->lang]))))
        {
            return k;
        }
    }

    return rt_kernel_new(lang, NULL, true, why);
}


/* A stream of which the head is out already says so at its end. */

static void
rt_code_busy(rt_req_t *r, const char *id)
{
    rt_events_t  *e;

    e = rt_events_new(r, 0);

    if (e == NULL) {
        abort();
    }

    rt_events_text(e, "init", sb_str(id, 36));
    rt_events_raw(e, sb_lit("{\"code\":\"RUNTIME_ERROR\",\"message\":"
                            "\"error running codes session is busy\"}"));
    rt_events_close(e);
    rt_events_release(e);
    rt_events_reply(r, e);
}


void
rt_code_in_kernel(rt_req_t *r, sb_str_t lang, const char *id, sb_str_t code)
{
    bool          busy;
    char          held[37];
    const char   *why;
    rt_kernel_t  *k;

    if (!rt_language(lang)) {
        rt_fail(r, 500, "RUNTIME_ERROR", "error running codes unknown "
                "language: %.*s", (int) (lang.len < 64 ? lang.len : 64),
                lang.data);
        return;
    }

    busy = false;
    why = "it did not start";

    pthread_mutex_lock(&rt_kernels_lock);
    k = rt_execd.no_kernels ? NULL : rt_code_kernel(lang, id, &why);

    if (rt_execd.no_kernels) {
        why = "this runtime was started without kernels";
    }

    if (k != NULL && memchr(code.data, '\0', code.len) != NULL) {
        why = "the code holds a NUL";
        k = NULL;
    }

    if (k != NULL && !k->busy && k->pid == 0 && rt_kernel_start(k) == -1) {
        why = strerror(errno);
        k = NULL;
    }

    if (k != NULL) {
        busy = k->busy;
        memcpy(held, k->id, sizeof(held));

        if (!busy) {
            k->busy = true;
            k->refs++;
        }
    }

    pthread_mutex_unlock(&rt_kernels_lock);

    if (k == NULL) {
        rt_fail(r, 500, "RUNTIME_ERROR", "error running codes %s", why);

    } else if (busy) {
        rt_code_busy(r, held);

    } else {
        rt_kernel_run(r, k, code);
    }
}
