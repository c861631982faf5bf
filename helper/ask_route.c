/* A question comes in: which handler is it for? */

#include "ask_int.h"

#include "id.h"

#include <stdio.h>
#include <stdlib.h>


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

        case SB_T_EVENT_ID:
            q->event_id = v;
            break;

        case SB_T_LOCK_LEASE:
            q->lease = v;
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
    bool                ok;
    char                allow[64];
    sb_rc_t             rc;
    ask_int_t          *i;
    const ask_route_t  *route;

    const ask_handler_pt  *h;

    pthread_mutex_lock(&a->lock);
    a->asked++;
    rc = ask_find(a, conn, f->seq) ? SB_ERROR : SB_OK;
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
    i->shares = (f->flags & SB_FF_SHARE) != 0;
    ask_fields(i, sb_str(i->text, f->fields.len));

    if (i->q.method.len == 0 || f->seq == 0 || i->window == 0
        || i->window > SB_ASK_WINDOW || i->q.body.len > SB_ASK_BODY)
    {
        free(i);
        return SB_ERROR;
    }

    route = ask_route(a, &i->q, allow, sizeof(allow));

    if (route == NULL || i->q.role < route->role) {

        pthread_mutex_lock(&a->lock);
        rc = a->open >= a->limit ? SB_LIMIT : SB_OK;
        a->refused += rc != SB_OK;
        pthread_mutex_unlock(&a->lock);

        if (rc != SB_OK) {
            free(i);
            return rc;
        }

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

    for (h = a->stream_handlers; h && *h; h++) {
        i->stream = i->stream || *h == route->handler;
    }

    pthread_mutex_lock(&a->lock);

    rc = a->stop || (i->stream ? a->streams >= a->stream_limit
                               : a->open >= a->limit)
         ? SB_LIMIT : table_add(&a->table, &i->node, &i->conn, 16);

    if (rc != SB_OK) {
        a->refused++;
        pthread_mutex_unlock(&a->lock);
        free(i);
        return rc;
    }

    i->next = a->all;

    if (i->next) {
        i->next->prev = i;
    }

    a->all = i;

    if (i->stream) {
        a->streams++;

    } else {
        a->open++;
    }


    if (a->record.begin) {
        /* nobody calls it yet: it is in no list of those that are ready */
        i->state = ASK_RUNNING;
        pthread_mutex_unlock(&a->lock);
        ok = a->record.begin(a->record.data, &i->q, route);
        pthread_mutex_lock(&a->lock);

        if (!ok) {
            i->cancelled = true;
            rc = SB_LIMIT;
        }
    }

    ask_ready(a, i);

    pthread_mutex_unlock(&a->lock);

    return rc;
}
