#include "frame.h"


#define SB_FIELD_HEAD  8


static uint16_t
sb_get_u16(const char *p)
{
    const uint8_t  *u = (const uint8_t *) p;

    return (uint16_t) (u[0] | u[1] << 8);
}


static uint32_t
sb_get_u32(const char *p)
{
    const uint8_t  *u = (const uint8_t *) p;

    return (uint32_t) u[0] | (uint32_t) u[1] << 8 | (uint32_t) u[2] << 16
           | (uint32_t) u[3] << 24;
}


static uint64_t
sb_get_u64(const char *p)
{
    return (uint64_t) sb_get_u32(p) | (uint64_t) sb_get_u32(p + 4) << 32;
}


static void
sb_set_u16(char *p, uint16_t v)
{
    p[0] = (char) (v & 0xff);
    p[1] = (char) (v >> 8);
}


static void
sb_set_u32(char *p, uint32_t v)
{
    sb_set_u16(p, (uint16_t) (v & 0xffff));
    sb_set_u16(p + 2, (uint16_t) (v >> 16));
}


static void
sb_set_u64(char *p, uint64_t v)
{
    sb_set_u32(p, (uint32_t) (v & 0xffffffff));
    sb_set_u32(p + 4, (uint32_t) (v >> 32));
}


sb_rc_t
sb_frame_read(sb_frame_t *f, const char *p, size_t n, size_t *need)
{
    size_t      left;
    uint32_t    length, size;
    const char *q;

    *need = SB_FRAME_HEAD;

    if (n < 4) {
        return SB_AGAIN;
    }

    /* A length that cannot be is told at once, not after waiting for it. */

    length = sb_get_u32(p);

    if (length < SB_FRAME_HEAD || length > SB_FRAME_MAX) {
        return SB_ERROR;
    }

    if (n >= 8 && sb_get_u16(p + 6) != SB_FRAME_VERSION) {
        return SB_ERROR;
    }

    if (n < SB_FRAME_HEAD) {
        return SB_AGAIN;
    }

    *need = length;

    if (n < length) {
        return SB_AGAIN;
    }

    q = p + SB_FRAME_HEAD;
    left = length - SB_FRAME_HEAD;

    while (left) {
        if (left < SB_FIELD_HEAD || sb_get_u16(q + 2) != 0) {
            return SB_ERROR;
        }

        size = sb_get_u32(q + 4);
        left -= SB_FIELD_HEAD;

        if (size > left) {
            return SB_ERROR;
        }

        q += SB_FIELD_HEAD + size;
        left -= size;
    }

    f->length = length;
    f->type = (uint8_t) p[4];
    f->flags = (uint8_t) p[5];
    f->seq = sb_get_u64(p + 8);
    memcpy(f->op, p + 16, 16);
    f->time_us = sb_get_u64(p + 32);
    f->fields = sb_str(p + SB_FRAME_HEAD, length - SB_FRAME_HEAD);

    return SB_OK;
}


sb_rc_t
sb_frame_peek(const char *p, size_t n, size_t *length, uint64_t *seq)
{
    if (n < SB_FRAME_HEAD) {
        return SB_ERROR;
    }

    *length = sb_get_u32(p);
    *seq = sb_get_u64(p + 8);

    return *length < SB_FRAME_HEAD || *length > n ? SB_ERROR : SB_OK;
}


sb_rc_t
sb_frame_fields(const char *p, size_t n, uint8_t *type, sb_str_t *fields)
{
    uint64_t  seq;

    if (sb_frame_peek(p, n, &n, &seq) != SB_OK) {
        return SB_ERROR;
    }

    *type = (uint8_t) p[4];
    *fields = sb_str(p + SB_FRAME_HEAD, n - SB_FRAME_HEAD);

    return SB_OK;
}


bool
sb_field_next(sb_str_t *fields, uint16_t *tag, sb_str_t *value)
{
    uint32_t  size;

    if (fields->len < SB_FIELD_HEAD) {
        return false;
    }

    size = sb_get_u32(fields->data + 4);

    if (size > fields->len - SB_FIELD_HEAD) {
        return false;
    }

    *tag = sb_get_u16(fields->data);
    *value = sb_str(fields->data + SB_FIELD_HEAD, size);

    fields->data += SB_FIELD_HEAD + size;
    fields->len -= SB_FIELD_HEAD + size;

    return true;
}


bool
sb_field_get(const sb_frame_t *f, uint16_t tag, sb_str_t *value)
{
    uint16_t  t;
    sb_str_t  fields = f->fields, v;

    while (sb_field_next(&fields, &t, &v)) {
        if (t == tag) {
            *value = v;
            return true;
        }
    }

    return false;
}


uint64_t
sb_value_u64(sb_str_t value, uint64_t def)
{
    return value.len == 8 ? sb_get_u64(value.data) : def;
}


uint64_t
sb_field_u64(const sb_frame_t *f, uint16_t tag, uint64_t def)
{
    sb_str_t  value;

    if (!sb_field_get(f, tag, &value)) {
        return def;
    }

    return sb_value_u64(value, def);
}


void
sb_frame_begin(sb_frame_writer_t *w, void *mem, size_t size, uint8_t type,
    uint8_t flags, uint64_t seq, const uint8_t op[16], uint64_t time_us)
{
    char  *p = mem;

    if (size > SB_FRAME_MAX) {
        size = SB_FRAME_MAX;
    }

    w->start = p;
    w->pos = p;
    w->end = p + size;
    w->full = size < SB_FRAME_HEAD;

    if (w->full) {
        return;
    }

    sb_set_u32(p, SB_FRAME_HEAD);
    p[4] = (char) type;
    p[5] = (char) flags;
    sb_set_u16(p + 6, SB_FRAME_VERSION);
    sb_set_u64(p + 8, seq);

    if (op) {
        memcpy(p + 16, op, 16);
    } else {
        memset(p + 16, 0, 16);
    }

    sb_set_u64(p + 32, time_us);

    w->pos = p + SB_FRAME_HEAD;
}


void
sb_frame_put(sb_frame_writer_t *w, uint16_t tag, sb_str_t value)
{
    size_t  room;

    if (w->full) {
        return;
    }

    room = (size_t) (w->end - w->pos);

    if (room < SB_FIELD_HEAD || value.len > room - SB_FIELD_HEAD) {
        w->full = true;
        return;
    }

    sb_set_u16(w->pos, tag);
    sb_set_u16(w->pos + 2, 0);
    sb_set_u32(w->pos + 4, (uint32_t) value.len);

    if (value.len) {
        memcpy(w->pos + SB_FIELD_HEAD, value.data, value.len);
    }

    w->pos += SB_FIELD_HEAD + value.len;
}


void
sb_frame_put_u64(sb_frame_writer_t *w, uint16_t tag, uint64_t v)
{
    char  buf[8];

    sb_set_u64(buf, v);
    sb_frame_put(w, tag, sb_str(buf, 8));
}


size_t
sb_frame_end(sb_frame_writer_t *w)
{
    size_t  n;

    if (w->full) {
        return 0;
    }

    n = (size_t) (w->pos - w->start);
    sb_set_u32(w->start, (uint32_t) n);

    return n;
}


void
sb_frame_set_seq(void *frame, uint64_t seq)
{
    sb_set_u64((char *) frame + 8, seq);
}
