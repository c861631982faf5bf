#include "ask.h"

#include "id.h"
#include "json.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


typedef enum { ASK_READY = 0, ASK_RUNNING, ASK_PARKED } ask_state_e;

typedef struct ask_int_s  ask_int_t;

/* One question; the text of the frame stands behind it. */
struct ask_int_s {
    ask_question_t   q;
    ask_t           *pool;
    ask_int_t       *prev, *next;       /* all */
    ask_int_t       *queue;             /* those that are ready */
    uint64_t         conn;
    uint64_t         seq;
    ask_handler_pt   handler;

    /* under the lock */
    ask_state_e      state;
    bool             again;             /* woken while it ran */
    bool             cancelled;
    size_t           window;            /* bytes that may be sent */
    uint64_t         wake_us;           /* 0: no time was asked for */

    /* of the thread that runs it */
    bool             head;              /* has been sent */
    unsigned         status;
    const char      *type;
    uint64_t         later_us;
    bool             ended;             /* the last piece is sent */
    bool             whole;             /* of ask_whole() */
    sb_buf_t         body;
    size_t           sent;

    char             text[];
};

struct ask_s {
    const ask_route_t  *routes;
    void               *context;
    int                 wake_fd;
    unsigned            limit;

    pthread_t           threads[ASK_THREADS_MAX];
    unsigned            nthreads;       /* wanted */
    unsigned            started;

    pthread_mutex_t     lock;
    pthread_cond_t      work;
    bool                stop;
    ask_int_t          *all;
    unsigned            open;
    unsigned            running;
    ask_int_t          *ready, **ready_last;
    ask_piece_t        *pieces, **pieces_last;
    uint64_t            asked;
    uint64_t            refused;
};


static const uint8_t  ask_no_op[16];


ask_t *
ask_new(const ask_route_t *routes, void *context, int wake_fd,
    unsigned threads, unsigned questions)
{
    ask_t               *a;
    pthread_condattr_t   attr;

    a = calloc(1, sizeof(ask_t));
    if (a == NULL) {
        return NULL;
    }

    a->routes = routes;
    a->context = context;
    a->wake_fd = wake_fd;
    a->limit = questions;
    a->nthreads = threads < ASK_THREADS_MAX ? threads : ASK_THREADS_MAX;
    a->ready_last = &a->ready;
    a->pieces_last = &a->pieces;

    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->work, &attr);
    pthread_condattr_destroy(&attr);

    return a;
}


static uint64_t
ask_now(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * 1000000u + (uint64_t) t.tv_nsec / 1000u;
}


/* With the lock held. */
static void
ask_ready(ask_t *a, ask_int_t *i)
{
    i->state = ASK_READY;
    i->again = false;
    i->queue = NULL;
    *a->ready_last = i;
    a->ready_last = &i->queue;
    pthread_cond_signal(&a->work);
}


/* With the lock held: something has happened to it. */
static void
ask_stir(ask_t *a, ask_int_t *i)
{
    if (i->state == ASK_PARKED) {
        ask_ready(a, i);

    } else {
        i->again = true;
    }
}


static void
ask_destroy(ask_int_t *i)
{
    if (i->q.release) {
        i->q.release(i->q.state);
    }

    sb_buf_free(&i->body);
    free(i);
}


static ask_int_t *
ask_find(ask_t *a, uint64_t conn, uint64_t seq)
{
    ask_int_t  *i;

    for (i = a->all; i; i = i->next) {
        if (i->conn == conn && i->seq == seq) {
            return i;
        }
    }

    return NULL;
}


/* Does a path have the form of a pattern?  Fills args. */
static bool
ask_match(const char *pattern, sb_str_t path, sb_str_t args[ASK_ARGS])
{
    size_t       n, m;
    unsigned     arg;
    const char  *p;

    arg = 0;

    for (p = pattern; /* void */ ; /* void */) {
        n = strcspn(p, "/");
        m = 0;

        while (m < path.len && path.data[m] != '/') {
            m++;
        }

        if (*p == '{') {
            if (m == 0 || arg == ASK_ARGS) {
                return false;
            }

            args[arg++] = sb_str(path.data, m);

        } else if (n != m || memcmp(p, path.data, n) != 0) {
            return false;
        }

        if (p[n] == '\0' || m == path.len) {
            return p[n] == '\0' && m == path.len;
        }

        p += n + 1;
        path.data += m + 1;
        path.len -= m + 1;
    }
}


/* A piece is ready: the thread with the connections is woken for the first.
 * With the lock held. */
static void
ask_push(ask_t *a, ask_piece_t *piece)
{
    bool      first;
    uint64_t  one;

    first = a->pieces == NULL;

    piece->next = NULL;
    *a->pieces_last = piece;
    a->pieces_last = &piece->next;

    if (first) {
        one = 1;

        if (write(a->wake_fd, &one, sizeof(one)) == -1) {
            /* the counter is full: the reader is awake anyway */
        }
    }
}


ask_piece_t *
ask_take(ask_t *a)
{
    ask_piece_t  *p;

    pthread_mutex_lock(&a->lock);
    p = a->pieces;
    a->pieces = NULL;
    a->pieces_last = &a->pieces;
    pthread_mutex_unlock(&a->lock);

    return p;
}


/* One frame of an answer; `cancel`: the end of one that cannot be finished. */
static bool
ask_send(ask_int_t *i, const void *p, size_t n, bool last, bool cancel)
{
    size_t              size;
    ask_piece_t        *piece;
    sb_frame_writer_t   w;

    size = SB_FRAME_HEAD + 128 + n;
    piece = malloc(sizeof(ask_piece_t) + size);

    if (piece == NULL) {
        return false;
    }

    piece->conn = i->conn;

    sb_frame_begin(&w, piece->frame, size, cancel ? SB_F_CANCEL : SB_F_ANSWER,
                   last ? SB_FF_LAST : 0, i->seq, ask_no_op, sb_now_us());

    if (!i->head && !cancel) {
        i->head = true;
        sb_frame_put_u64(&w, SB_T_HTTP_STATUS, i->status);
        sb_frame_put(&w, SB_T_CONTENT_TYPE, sb_str(i->type, strlen(i->type)));
    }

    if (n) {
        sb_frame_put(&w, SB_T_DATA, sb_str(p, n));
    }

    piece->len = sb_frame_end(&w);

    if (piece->len == 0) {
        free(piece);
        return false;
    }

    pthread_mutex_lock(&i->pool->lock);

    if (i->cancelled || n > i->window) {
        pthread_mutex_unlock(&i->pool->lock);
        free(piece);
        return false;
    }

    i->window -= n;
    ask_push(i->pool, piece);
    pthread_mutex_unlock(&i->pool->lock);

    return true;
}


size_t
ask_refusal(void *mem, size_t size, uint64_t seq, unsigned status,
    const char *code, const char *message, const char *allow)
{
    int                n;
    char               text[512];
    sb_frame_writer_t  w;

    n = snprintf(text, sizeof(text), "{\"code\":\"%s\",\"message\":\"%s\","
                 "\"details\":{}}", code, message);

    if (n < 0 || (size_t) n >= sizeof(text)) {
        return 0;
    }

    sb_frame_begin(&w, mem, size, SB_F_ANSWER, SB_FF_LAST, seq, ask_no_op,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_HTTP_STATUS, status);
    sb_frame_put(&w, SB_T_CONTENT_TYPE, sb_lit("application/json"));

    if (allow) {
        sb_frame_put(&w, SB_T_ALLOW, sb_str(allow, strlen(allow)));
    }

    sb_frame_put(&w, SB_T_DATA, sb_str(text, (size_t) n));

    return sb_frame_end(&w);
}


/* Answers a question that no handler takes. */
static sb_rc_t
ask_answer(ask_t *a, uint64_t conn, uint64_t seq, unsigned status,
    const char *code, const char *message, const char *allow)
{
    ask_piece_t  *piece;

    piece = malloc(sizeof(ask_piece_t) + 1024);
    if (piece == NULL) {
        return SB_NOMEM;
    }

    piece->conn = conn;
    piece->len = ask_refusal(piece->frame, 1024, seq, status, code, message,
                             allow);

    pthread_mutex_lock(&a->lock);
    ask_push(a, piece);
    pthread_mutex_unlock(&a->lock);

    return SB_OK;
}


static sb_role_e
ask_role(sb_str_t text)
{
    return sb_eq(text, sb_lit("admin")) ? SB_ROLE_ADMIN
           : sb_eq(text, sb_lit("operator")) ? SB_ROLE_OPERATOR
           : SB_ROLE_VIEWER;
}


/* The row of a question, or what it is refused with. */
static const ask_route_t *
ask_route(ask_t *a, ask_question_t *q, char *allow, size_t size)
{
    size_t              n;
    sb_str_t            args[ASK_ARGS];
    const ask_route_t  *r, *found;

    found = NULL;
    allow[0] = '\0';
    memset(args, 0, sizeof(args));

    for (r = a->routes; r->path; r++) {

        if (!ask_match(r->path, q->path, args)) {
            continue;
        }

        if (sb_eq(sb_str(r->method, strlen(r->method)), q->method)) {
            memcpy(q->args, args, sizeof(args));
            found = r;
        }

        n = strlen(allow);
        (void) snprintf(allow + n, size - n, "%s%s%s", n ? ", " : "",
                        r->method, strcmp(r->method, "GET") ? "" : ", HEAD");
    }

    return found;
}


static void
ask_fields(ask_int_t *i, sb_str_t fields)
{
    uint16_t         tag;
    sb_str_t         v;
    ask_question_t  *q;

    q = &i->q;

    while (sb_field_next(&fields, &tag, &v)) {

        switch (tag) {

        case SB_T_METHOD:
            q->method = v;
            break;

        case SB_T_PATH:
            q->path = v;
            break;

        case SB_T_QUERY:
            q->query = v;
            break;

        case SB_T_DATA:
            q->body = v;
            break;

        case SB_T_ACTOR_TYPE:
            q->actor_type = v;
            break;

        case SB_T_ACTOR_ID:
            q->actor_id = v;
            break;

        case SB_T_IDENTITY:
            q->identity = v;
            break;

        case SB_T_SANDBOX:
            q->sandbox = v;
            break;

        case SB_T_ROLE:
            q->role = ask_role(v);
            break;

        case SB_T_COUNT:
            i->window = (size_t) sb_value_u64(v, 0);
            break;

        default:
            break;
        }
    }
}


sb_rc_t
ask_put(ask_t *a, uint64_t conn, uid_t peer, const sb_frame_t *f)
{
    char                allow[64];
    sb_rc_t             rc;
    ask_int_t          *i;
    const ask_route_t  *route;

    pthread_mutex_lock(&a->lock);
    a->asked++;
    rc = a->open >= a->limit || a->stop ? SB_LIMIT : SB_OK;
    a->refused += rc != SB_OK;

    if (rc == SB_OK && ask_find(a, conn, f->seq)) {
        rc = SB_ERROR;
    }

    pthread_mutex_unlock(&a->lock);

    if (rc != SB_OK) {
        return rc;
    }

    i = calloc(1, sizeof(ask_int_t) + f->fields.len + 1);
    if (i == NULL) {
        return SB_NOMEM;
    }

    memcpy(i->text, f->fields.data, f->fields.len);

    i->pool = a;
    i->conn = conn;
    i->seq = f->seq;
    i->q.in = i;
    i->q.context = a->context;
    i->q.peer = peer;
    ask_fields(i, sb_str(i->text, f->fields.len));

    if (i->q.method.len == 0 || f->seq == 0 || i->window == 0
        || i->window > SB_ASK_WINDOW || i->q.body.len > SB_ASK_BODY)
    {
        free(i);
        return SB_ERROR;
    }

    route = ask_route(a, &i->q, allow, sizeof(allow));

    if (route == NULL || i->q.role < route->role) {

        if (route) {
            rc = ask_answer(a, conn, f->seq, 403, "GATEWAY_FORBIDDEN",
                            route->role == SB_ROLE_ADMIN
                            ? "This needs a token with the role admin."
                            : "This needs a token with the role operator.",
                            NULL);

        } else if (allow[0]) {
            rc = ask_answer(a, conn, f->seq, 405, "GATEWAY_METHOD_NOT_ALLOWED",
                            "The console API has no such method here; the "
                            "header Allow names those that it has.", allow);

        } else {
            rc = ask_answer(a, conn, f->seq, 404, "GATEWAY_NOT_FOUND",
                            "The console API has no such path; "
                            "docs/console-api.md lists them.", NULL);
        }

        free(i);
        return rc;
    }

    i->handler = route->handler;

    pthread_mutex_lock(&a->lock);

    i->next = a->all;

    if (i->next) {
        i->next->prev = i;
    }

    a->all = i;
    a->open++;
    ask_ready(a, i);

    pthread_mutex_unlock(&a->lock);

    return SB_OK;
}


void
ask_credit(ask_t *a, uint64_t conn, const sb_frame_t *f)
{
    uint64_t    n;
    ask_int_t  *i;

    n = sb_field_u64(f, SB_T_COUNT, 0);

    pthread_mutex_lock(&a->lock);

    i = ask_find(a, conn, f->seq);

    if (i) {
        /* more than a window is never on its way */
        n = n < SB_ASK_WINDOW - i->window ? n : SB_ASK_WINDOW - i->window;
        i->window += (size_t) n;
        ask_stir(a, i);
    }

    pthread_mutex_unlock(&a->lock);
}


void
ask_cancel(ask_t *a, uint64_t conn, const sb_frame_t *f)
{
    ask_int_t  *i;

    pthread_mutex_lock(&a->lock);

    i = ask_find(a, conn, f->seq);

    if (i) {
        i->cancelled = true;
        ask_stir(a, i);
    }

    pthread_mutex_unlock(&a->lock);
}


void
ask_closed(ask_t *a, uint64_t conn)
{
    ask_int_t  *i;

    pthread_mutex_lock(&a->lock);

    for (i = a->all; i; i = i->next) {
        if (i->conn == conn) {
            i->cancelled = true;
            ask_stir(a, i);
        }
    }

    pthread_mutex_unlock(&a->lock);
}


void
ask_head(ask_question_t *q, unsigned status, const char *type)
{
    q->in->status = status;
    q->in->type = type;
}


size_t
ask_room(ask_question_t *q)
{
    size_t  n;

    pthread_mutex_lock(&q->in->pool->lock);
    n = q->in->cancelled ? 0 : q->in->window;
    pthread_mutex_unlock(&q->in->pool->lock);

    return n;
}


bool
ask_write(ask_question_t *q, const void *p, size_t n)
{
    size_t       part;
    const char  *text;

    text = p;

    if (n > ask_room(q)) {
        return false;
    }

    while (n) {
        part = n < SB_ASK_PIECE ? n : SB_ASK_PIECE;

        if (!ask_send(q->in, text, part, false, false)) {
            return false;
        }

        text += part;
        n -= part;
    }

    return true;
}


/* Sends on what ask_whole() was given, as there is room. */
static ask_rc_e
ask_pump(ask_int_t *i)
{
    size_t  n, room;

    for ( ;; ) {
        n = i->body.len - i->sent;

        if (n == 0) {
            return ASK_DONE;
        }

        room = ask_room(&i->q);

        if (room == 0) {
            return ASK_AGAIN;
        }

        if (n <= room && n <= SB_ASK_PIECE) {
            /* its length is known then when it is the only piece */
            i->ended = ask_send(i, i->body.data + i->sent, n, true, false);
            return i->ended ? ASK_DONE : ASK_FAILED;
        }

        n = n < room ? n : room;
        n = n < SB_ASK_PIECE ? n : SB_ASK_PIECE;

        if (!ask_write(&i->q, i->body.data + i->sent, n)) {
            return ASK_FAILED;
        }

        i->sent += n;
    }
}


ask_rc_e
ask_whole(ask_question_t *q, unsigned status, const char *type, sb_buf_t *body)
{
    ask_head(q, status, type);

    sb_buf_free(&q->in->body);
    q->in->body = *body;
    q->in->sent = 0;
    q->in->whole = true;
    memset(body, 0, sizeof(*body));

    return ask_pump(q->in);
}


ask_rc_e
ask_refuse(ask_question_t *q, unsigned status, const char *code,
    const char *message)
{
    ask_rc_e  rc;
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = 8192;
    rc = ASK_FAILED;

    if (sb_buf_printf(&b, "{\"code\":\"%s\",\"message\":", code) == SB_OK
        && sb_json_write_str(&b, sb_str(message, strlen(message))) == SB_OK
        && sb_buf_add_str(&b, sb_lit(",\"details\":{}}")) == SB_OK)
    {
        rc = ask_whole(q, status, "application/json", &b);
    }

    sb_buf_free(&b);

    return rc;
}


void
ask_later(ask_question_t *q, uint64_t us)
{
    q->in->later_us = us ? us : 1;
}


bool
ask_over(ask_question_t *q)
{
    bool  over;

    pthread_mutex_lock(&q->in->pool->lock);
    over = q->in->cancelled || q->in->pool->stop;
    pthread_mutex_unlock(&q->in->pool->lock);

    return over;
}


void
ask_wake(ask_question_t *q)
{
    ask_t  *a;

    a = q->in->pool;

    pthread_mutex_lock(&a->lock);
    ask_stir(a, q->in);
    pthread_mutex_unlock(&a->lock);
}


/* The handler has been here for the last time. */
static void
ask_finish(ask_int_t *i, ask_rc_e rc)
{
    ask_t  *a;

    a = i->pool;

    if (rc == ASK_FAILED && !i->head && ask_room(&i->q) >= 256) {
        rc = ask_refuse(&i->q, 500, "GATEWAY_INTERNAL", "The helper could not "
                        "answer this; its log may have more.");
    }

    if (rc == ASK_DONE && !i->head && i->status == 0) {
        ask_head(&i->q, 204, "application/json");
    }

    if (!i->ended
        && (rc != ASK_DONE || !ask_send(i, "", 0, true, false)))
    {
        (void) ask_send(i, "", 0, false, true);
    }

    pthread_mutex_lock(&a->lock);

    if (i->prev) {
        i->prev->next = i->next;
    } else {
        a->all = i->next;
    }

    if (i->next) {
        i->next->prev = i->prev;
    }

    a->open--;
    a->running--;

    pthread_mutex_unlock(&a->lock);

    ask_destroy(i);
}


/* One call of the handler. */
static void
ask_run(ask_int_t *i)
{
    ask_t     *a;
    ask_rc_e   rc;

    a = i->pool;
    i->later_us = 0;

    rc = ask_over(&i->q) ? ASK_FAILED
         : i->whole ? ask_pump(i)
         : i->handler(&i->q);

    if (rc != ASK_AGAIN) {
        ask_finish(i, rc);
        return;
    }

    pthread_mutex_lock(&a->lock);

    a->running--;
    i->wake_us = i->later_us ? ask_now() + i->later_us : 0;

    if (i->again) {
        ask_ready(a, i);

    } else {
        i->state = ASK_PARKED;

        if (i->wake_us) {
            /* one that waits without a time, or for a later one, is told */
            pthread_cond_signal(&a->work);
        }
    }

    pthread_mutex_unlock(&a->lock);
}


/* Those whose time has come become ready; the next time, 0: none.  With the
 * lock held. */
static uint64_t
ask_times(ask_t *a)
{
    uint64_t    now, next;
    ask_int_t  *i;

    now = 0;
    next = 0;

    for (i = a->all; i; i = i->next) {

        if (i->state != ASK_PARKED || i->wake_us == 0) {
            continue;
        }

        now = now ? now : ask_now();

        if (i->wake_us <= now) {
            ask_ready(a, i);

        } else if (next == 0 || i->wake_us < next) {
            next = i->wake_us;
        }
    }

    return next;
}


static void *
ask_thread(void *data)
{
    ask_t            *a = data;
    uint64_t          next;
    ask_int_t        *i;
    struct timespec   until;

    pthread_mutex_lock(&a->lock);

    while (!a->stop) {

        next = ask_times(a);

        if (a->ready == NULL) {

            if (next) {
                until.tv_sec = (time_t) (next / 1000000u);
                until.tv_nsec = (long) (next % 1000000u) * 1000;
                (void) pthread_cond_timedwait(&a->work, &a->lock, &until);

            } else {
                (void) pthread_cond_wait(&a->work, &a->lock);
            }

            continue;
        }

        i = a->ready;
        a->ready = i->queue;

        if (a->ready == NULL) {
            a->ready_last = &a->ready;
        }

        i->state = ASK_RUNNING;
        i->again = false;
        a->running++;

        pthread_mutex_unlock(&a->lock);
        ask_run(i);
        pthread_mutex_lock(&a->lock);
    }

    pthread_mutex_unlock(&a->lock);

    return NULL;
}


bool
ask_start(ask_t *a)
{
    while (a->started < a->nthreads) {

        if (pthread_create(&a->threads[a->started], NULL, ask_thread, a) != 0) {
            return a->started != 0;
        }

        a->started++;
    }

    return true;
}


void
ask_stop(ask_t *a)
{
    if (a == NULL) {
        return;
    }

    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);

    while (a->started) {
        pthread_join(a->threads[--a->started], NULL);
    }
}


void
ask_free(ask_t *a)
{
    ask_int_t    *i;
    ask_piece_t  *p;

    if (a == NULL) {
        return;
    }

    ask_stop(a);

    while ((i = a->all) != NULL) {
        a->all = i->next;
        ask_destroy(i);
    }

    while ((p = a->pieces) != NULL) {
        a->pieces = p->next;
        free(p);
    }

    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->work);
    free(a);
}


void
ask_numbers(ask_t *a, ask_numbers_t *n)
{
    pthread_mutex_lock(&a->lock);
    n->open = a->open;
    n->limit = a->limit;
    n->running = a->running;
    n->threads = a->nthreads;
    n->asked = a->asked;
    n->refused = a->refused;
    pthread_mutex_unlock(&a->lock);
}
