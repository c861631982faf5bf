/* What handlers do to answer. */

#include "ask_int.h"

#include "id.h"
#include "json.h"

#include <stdlib.h>


#define ASK_SHARED  1024        /* questions that one piece is for */


bool
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
ask_more(ask_question_t *q, size_t room)
{
    bool  more;

    pthread_mutex_lock(&q->in->pool->lock);
    more = !q->in->cancelled && q->in->window > room;
    q->in->deaf = true;
    q->in->hungry = !more;
    pthread_mutex_unlock(&q->in->pool->lock);

    return more;
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


static bool
ask_shared_may(const ask_share_t *s, uint64_t conn, size_t len)
{
    const ask_int_t  *i;

    i = s->q->in;

    return !s->taken && i->conn == conn && i->shares && i->head
           && !i->cancelled && i->window >= len;
}


/* One piece: for the first of them, and all behind it that are of the same
 * connection.  With the lock held. */
static void
ask_shared_piece(ask_share_t *shares, size_t n, sb_str_t data)
{
    size_t              k, size;
    ask_int_t          *i;
    ask_piece_t        *piece;
    sb_frame_writer_t   w;

    i = shares[0].q->in;
    n = n < ASK_SHARED ? n : ASK_SHARED;
    size = SB_FRAME_HEAD + 32 + data.len + n * 16;
    piece = malloc(sizeof(ask_piece_t) + size);

    if (piece == NULL) {
        return;
    }

    sb_frame_begin(&w, piece->frame, size, SB_F_ANSWER, 0, i->seq, ask_no_op,
                   sb_now_us());
    sb_frame_put(&w, SB_T_DATA, data);

    for (k = 0; k < n; k++) {

        if (!ask_shared_may(&shares[k], i->conn, data.len)) {
            continue;
        }

        shares[k].taken = true;
        shares[k].q->in->window -= data.len;

        if (k) {
            sb_frame_put_u64(&w, SB_T_ALSO, shares[k].q->in->seq);
        }
    }

    piece->conn = i->conn;
    piece->len = sb_frame_end(&w);
    ask_push(i->pool, piece);
}


void
ask_write_shared(ask_share_t *shares, size_t n, const void *p, size_t len)
{
    size_t  k;
    ask_t  *a;

    for (k = 0; k < n; k++) {
        shares[k].taken = false;
    }

    if (n == 0 || len == 0 || len > SB_ASK_PIECE) {
        return;
    }

    a = shares[0].q->in->pool;

    pthread_mutex_lock(&a->lock);

    for (k = 0; k < n; k++) {
        if (ask_shared_may(&shares[k], shares[k].q->in->conn, len)) {
            ask_shared_piece(&shares[k], n - k, sb_str(p, len));
        }
    }

    pthread_mutex_unlock(&a->lock);
}


ask_rc_e
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
