#include "inflight_int.h"

#include <stdlib.h>


static char *
inflight_dup(sb_str_t s)
{
    char  *p;

    p = malloc(s.len + 1);

    if (p) {
        memcpy(p, s.data, s.len);
        p[s.len] = '\0';
    }

    return p;
}


static void
inflight_set(char **dst, const sb_frame_t *f, uint16_t tag)
{
    char      *p;
    sb_str_t   v;

    if (sb_field_get(f, tag, &v) && v.len && v.len <= 1024) {
        p = inflight_dup(v);

        if (p) {
            free(*dst);
            *dst = p;
        }
    }
}


static bool
inflight_is(const char *text, sb_str_t s)
{
    return text && strlen(text) == s.len && memcmp(text, s.data, s.len) == 0;
}


inflight_t *
inflight_new(uint64_t follow_us)
{
    inflight_t  *t;

    t = calloc(1, sizeof(inflight_t));

    if (t) {
        t->follow_us = follow_us;
    }

    return t;
}


static void
inflight_op_unlink(inflight_t *t, inflight_op_t *op)
{
    if (op->prev) {
        op->prev->next = op->next;

    } else if (op->inst) {
        op->inst->ops = op->next;

    } else {
        t->detached = op->next;
    }

    if (op->next) {
        op->next->prev = op->prev;

    } else if (op->inst == NULL) {
        t->detached_last = op->prev;
    }

    if (op->inst == NULL) {
        t->ndetached--;
    }

    op->prev = NULL;
    op->next = NULL;
}


static void
inflight_op_free(inflight_t *t, inflight_op_t *op)
{
    if (op->ended) {
        t->nended--;
    }

    inflight_op_unlink(t, op);
    table_remove(&t->ops, &op->node);
    free(op->sandbox);
    free(op->command);
    free(op);
}


static void
inflight_inst_unlink(inflight_t *t, inflight_inst_t *i)
{
    if (i->prev) {
        i->prev->next = i->next;
    } else {
        t->first = i->next;
    }

    if (i->next) {
        i->next->prev = i->prev;
    } else {
        t->last = i->prev;
    }
}


/* As the one that was used last. */
static void
inflight_inst_link(inflight_t *t, inflight_inst_t *i)
{
    i->prev = t->last;
    i->next = NULL;

    if (t->last) {
        t->last->next = i;
    } else {
        t->first = i;
    }

    t->last = i;
}


static void
inflight_inst_free(inflight_t *t, inflight_inst_t *i)
{
    while (i->ops) {
        inflight_op_free(t, i->ops);
    }

    inflight_inst_unlink(t, i);
    table_remove(&t->instances, &i->node);
    free(i);
}


void
inflight_free(inflight_t *t)
{
    if (t == NULL) {
        return;
    }

    while (t->first) {
        inflight_inst_free(t, t->first);
    }

    while (t->detached) {
        inflight_op_free(t, t->detached);
    }

    table_free(&t->instances);
    table_free(&t->ops);
    free(t);
}


inflight_inst_t *
inflight_instance(inflight_t *t, uint64_t id)
{
    inflight_inst_t  *i, *old;

    i = table_find(&t->instances, &id, sizeof(id));
    if (i) {
        if (i != t->last) {
            inflight_inst_unlink(t, i);
            inflight_inst_link(t, i);
        }

        return i;
    }

    if (t->instances.count >= INFLIGHT_INSTANCES) {
        for (old = t->first; old; old = old->next) {
            if (old->connections == 0 && old->ops == NULL) {
                inflight_inst_free(t, old);
                break;
            }
        }
    }

    i = calloc(1, sizeof(inflight_inst_t));
    if (i == NULL) {
        return NULL;
    }

    i->id = id;

    if (table_add(&t->instances, &i->node, &i->id, sizeof(i->id)) != SB_OK) {
        free(i);
        return NULL;
    }

    inflight_inst_link(t, i);

    return i;
}


uint64_t
inflight_last_seq(const inflight_inst_t *i)
{
    return i->last_seq;
}


/* Links an operation as one of an instance, or (NULL) as a detached one. */
static void
inflight_op_link(inflight_t *t, inflight_op_t *op, inflight_inst_t *inst)
{
    op->inst = inst;

    if (inst) {
        op->next = inst->ops;

        if (op->next) {
            op->next->prev = op;
        }

        inst->ops = op;
        return;
    }

    op->prev = t->detached_last;

    if (op->prev) {
        op->prev->next = op;
    } else {
        t->detached = op;
    }

    t->detached_last = op;
    t->ndetached++;
}


static inflight_op_t *
inflight_op_new(inflight_t *t, inflight_inst_t *inst, const sb_frame_t *f)
{
    inflight_op_t  *op;

    op = calloc(1, sizeof(inflight_op_t));
    if (op == NULL) {
        return NULL;
    }

    memcpy(op->id, f->op, 16);
    op->begun_us = f->time_us;

    if (table_add(&t->ops, &op->node, op->id, 16) != SB_OK) {
        free(op);
        return NULL;
    }

    inflight_op_link(t, op, inst);

    return op;
}


/* What a BEGIN or a state frame says of its operation. */
static void
inflight_read(inflight_op_t *op, const sb_frame_t *f)
{
    sb_str_t  v;

    if (f->type == SB_F_BEGIN) {
        op->begun_us = sb_field_u64(f, SB_T_TIME, f->time_us);
    }

    inflight_set(&op->sandbox, f, SB_T_SANDBOX);
    inflight_set(&op->command, f, SB_T_COMMAND_ID);

    if (sb_field_get(f, SB_T_TYPE, &v)) {
        op->interrupts = sb_eq(v, sb_lit("command.interrupt"));
        op->deletes = sb_eq(v, sb_lit("sandbox.delete"));
    }
}


void
inflight_mark_ended(inflight_t *t, inflight_op_t *op)
{
    if (!op->ended) {
        op->ended = true;
        t->nended++;
    }
}


static inflight_op_t *
inflight_find_detached(inflight_t *t, const char *sandbox, sb_str_t command)
{
    inflight_op_t  *op;

    for (op = t->detached; op; op = op->next) {
        if (inflight_is(op->command, command) && op->sandbox && sandbox
            && strcmp(op->sandbox, sandbox) == 0)
        {
            return op;
        }
    }

    return NULL;
}


static void
inflight_sandbox_gone(inflight_t *t, sb_str_t sandbox, const char *reason)
{
    inflight_op_t  *op;

    for (op = t->detached; op; op = op->next) {
        if (inflight_is(op->sandbox, sandbox) && !op->ended) {
            op->reason = reason;
            inflight_mark_ended(t, op);
        }
    }
}


/* What the end of one operation says about a detached command. */
static void
inflight_end_tells(inflight_t *t, inflight_op_t *op, const sb_frame_t *f)
{
    bool            ok;
    sb_str_t        v, command;
    inflight_op_t  *other;

    ok = sb_field_get(f, SB_T_STATUS, &v) && sb_eq(v, sb_lit("succeeded"));

    if (op->deletes && ok && op->sandbox) {
        inflight_sandbox_gone(t, sb_str(op->sandbox, strlen(op->sandbox)),
                              "sandbox_deleted");
        return;
    }

    if (sb_field_get(f, SB_T_COMMAND_ID, &v)) {
        command = v;

    } else if (op->command) {
        command = sb_str(op->command, strlen(op->command));

    } else {
        return;
    }

    if (t->detached == NULL
        || (!op->interrupts && sb_field_u64(f, SB_T_RUNNING, 1) != 0))
    {
        return;
    }

    other = inflight_find_detached(t, op->sandbox, command);

    if (other == NULL || other == op || other->ended) {
        return;
    }

    if (op->interrupts) {
        other->interrupted = other->interrupted || ok;
        return;
    }

    if (sb_field_get(f, SB_T_EXIT_CODE, &v) && v.len == 8) {
        other->has_exit = true;
        other->exit_code = (int64_t) sb_value_u64(v, 0);

    } else {
        other->reason = "exit_code_unknown";
    }

    inflight_mark_ended(t, other);
}


static void
inflight_detach(inflight_t *t, inflight_op_t *op, uint64_t since_us)
{
    inflight_inst_t  *inst;

    inst = op->inst;

    if (inst == NULL) {
        return;
    }

    inflight_op_unlink(t, op);
    op->since_us = since_us;
    inflight_op_link(t, op, NULL);

    if (inst->ops == NULL && inst->gone_us) {
        inst->gone_us = 0;
        t->ngone--;
    }
}


/* An instance that is gone has nothing open any more. */
static void
inflight_settled(inflight_t *t, inflight_inst_t *inst)
{
    if (inst && inst->ops == NULL && inst->gone_us) {
        inst->gone_us = 0;
        t->ngone--;
    }
}


static void
inflight_note_end(inflight_t *t, const sb_frame_t *f)
{
    sb_str_t          v;
    inflight_op_t    *op;
    inflight_inst_t  *inst;

    op = table_find(&t->ops, f->op, 16);
    if (op == NULL) {
        return;
    }

    inst = op->inst;

    if (sb_field_get(f, SB_T_DETACHED, &v)) {
        inflight_set(&op->command, f, SB_T_COMMAND_ID);
        inflight_detach(t, op, f->time_us);
        return;
    }

    inflight_end_tells(t, op, f);
    inflight_op_free(t, op);
    inflight_settled(t, inst);
}


static void
inflight_note_seen(inflight_t *t, const sb_frame_t *f)
{
    uint16_t  tag;
    sb_str_t  fields, v, sandbox;

    fields = f->fields;
    sandbox = sb_str(NULL, 0);

    while (sb_field_next(&fields, &tag, &v)) {
        if (tag == SB_T_SANDBOX) {
            sandbox = v;

        } else if (tag == SB_T_STATE && sb_eq(v, sb_lit("gone"))
                   && sandbox.len)
        {
            inflight_sandbox_gone(t, sandbox, "sandbox_gone");
        }
    }
}


static void
inflight_note_state(inflight_t *t, const sb_frame_t *f)
{
    uint64_t          id;
    sb_str_t          v;
    inflight_op_t    *op;
    inflight_inst_t  *i;

    id = sb_field_u64(f, SB_T_INSTANCE, 0);

    if (f->type == JOURNAL_F_STATE_INSTANCE) {
        i = inflight_instance(t, id);

        if (i && sb_field_u64(f, SB_T_LAST_SEQ, 0) > i->last_seq) {
            i->last_seq = sb_field_u64(f, SB_T_LAST_SEQ, 0);
        }

        return;
    }

    if (table_find(&t->ops, f->op, 16)) {
        return;
    }

    i = inflight_instance(t, id);
    if (i == NULL) {
        return;
    }

    op = inflight_op_new(t, i, f);
    if (op == NULL) {
        return;
    }

    inflight_read(op, f);

    if (sb_field_get(f, SB_T_DETACHED, &v)) {
        inflight_detach(t, op, sb_field_u64(f, SB_T_TIME, f->time_us));
    }
}


void
inflight_note(inflight_t *t, uint64_t instance, const sb_frame_t *f)
{
    inflight_op_t    *op;
    inflight_inst_t  *i;

    i = NULL;

    if (instance) {
        i = inflight_instance(t, instance);

        if (i && f->seq > i->last_seq) {
            i->last_seq = f->seq;
        }
    }

    switch (f->type) {

    case SB_F_BEGIN:
        if (i == NULL || table_find(&t->ops, f->op, 16)) {
            return;
        }

        op = inflight_op_new(t, i, f);
        if (op == NULL) {
            return;
        }

        op->frames = 1;
        inflight_read(op, f);
        return;

    case SB_F_OUTPUT:
    case SB_F_CONTENT:
        op = table_find(&t->ops, f->op, 16);

        if (op) {
            op->frames++;
        }

        return;

    case SB_F_FACTS:
        op = table_find(&t->ops, f->op, 16);

        if (op) {
            op->frames++;
            inflight_set(&op->command, f, SB_T_COMMAND_ID);
        }

        return;

    case SB_F_END:
        inflight_note_end(t, f);
        return;

    case SB_F_SEEN:
        inflight_note_seen(t, f);
        return;

    case JOURNAL_F_STATE_INSTANCE:
    case JOURNAL_F_STATE_OPERATION:
        inflight_note_state(t, f);
        return;

    default:
        return;
    }
}


size_t
inflight_frames(const inflight_t *t, const uint8_t id[16])
{
    const inflight_op_t  *op;

    op = table_find(&t->ops, id, 16);

    return op ? op->frames : 0;
}


void
inflight_started(inflight_t *t, uint64_t now_us)
{
    inflight_inst_t  *i;

    for (i = t->first; i; i = i->next) {
        i->restarted = true;

        if (i->ops && i->connections == 0 && i->gone_us == 0) {
            i->gone_us = now_us;
            t->ngone++;
        }
    }
}


void
inflight_connected(inflight_t *t, inflight_inst_t *i)
{
    i->connections++;
    i->restarted = false;

    if (i->gone_us) {
        i->gone_us = 0;
        t->ngone--;
    }
}


void
inflight_closed(inflight_t *t, inflight_inst_t *i, uint64_t now_us)
{
    i->connections--;

    if (i->connections == 0 && i->ops) {
        i->gone_us = now_us;
        t->ngone++;
    }
}


bool
inflight_away(const inflight_t *t)
{
    return t->ngone != 0;
}


bool
inflight_waiting(const inflight_t *t)
{
    return t->ngone || t->nended || t->ndetached;
}


size_t
inflight_operations(const inflight_t *t)
{
    return t->ops.count - t->ndetached;
}


size_t
inflight_instances(const inflight_t *t)
{
    return t->instances.count;
}


size_t
inflight_detached(const inflight_t *t)
{
    return t->ndetached;
}
