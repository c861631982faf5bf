/* /sandboxes/{id}/snapshots, /snapshots: answers. */

#include <stdio.h>
#include <stdlib.h>

#include "lifecycle.h"
#include "snapshot.h"
#include "url.h"


static const char *const  rt_snap_states[] = {
    "Creating", "Ready", "Failed", "Deleting"
};


static void
rt_lc_snap(sb_buf_t *b, const rt_snap_t *s)
{
    sb_buf_printf(b, "{\"id\":\"%s\",\"sandboxId\":\"%s\"", s->id, s->box);

    if (s->name != NULL) {
        sb_buf_printf(b, ",\"name\":");
        rt_lc_str(b, sb_str(s->name, strlen(s->name)));
    }

    sb_buf_printf(b, ",\"status\":{\"state\":\"%s\",\"reason\":\"%s\","
                     "\"message\":", rt_snap_states[s->state], s->reason);
    rt_lc_str(b, sb_str(s->message, strlen(s->message)));
    sb_buf_printf(b, ",\"lastTransitionAt\":");
    rt_lc_time(b, s->changed_us);
    sb_buf_printf(b, "},\"createdAt\":");
    rt_lc_time(b, s->created_us);
    sb_buf_add_c(b, '}');
}


static void
rt_lc_snap_unknown(rt_req_t *r, const char *id)
{
    rt_lc_fail(r, 404, "SNAPSHOT::NOT_FOUND", "Snapshot %.200s not found",
               id);
}


/* The name that the body asks for.  false: 422 was answered. */

static bool
rt_lc_snap_name(rt_req_t *r, sb_jdoc_t **doc, sb_str_t *name, bool *named)
{
    const sb_jv_t  *v;

    *doc = NULL;
    *named = false;

    if (r->body.len == 0
        || (r->body.len == 4 && memcmp(r->body.data, "null", 4) == 0))
    {
        return true;
    }

    *doc = rt_lc_body(r);

    if (*doc == NULL) {
        return false;
    }

    v = sb_jv_get(sb_jdoc_root(*doc), "name");

    if (v == NULL || v->kind == SB_JSON_NULL) {
        return true;
    }

    if (v->kind != SB_JSON_STRING) {
        rt_lc_invalid(r, "string_type", "\"body\",\"name\"",
                      "Input should be a valid string", NULL, NULL);
        return false;
    }

    if (v->text.len == 0) {
        rt_lc_invalid(r, "string_too_short", "\"body\",\"name\"",
                      "String should have at least 1 character", "\"\"",
                      "{\"min_length\":1}");
        return false;
    }

    *name = v->text;
    *named = true;

    return true;
}


void
rt_lc_snap_create(rt_req_t *r, const char *id, const char *last)
{
    bool        named, running;
    sb_buf_t    buf;
    sb_str_t    name;
    rt_box_t   *b;
    sb_jdoc_t  *doc;
    rt_snap_t   snap;

    (void) last;

    if (!rt_lc_snap_name(r, &doc, &name, &named)) {
        sb_jdoc_free(doc);
        return;
    }

    b = rt_box_find(sb_str(id, strlen(id)));

    if (b == NULL) {
        rt_lc_unknown(r, sb_str(id, strlen(id)));
        sb_jdoc_free(doc);
        return;
    }

    rt_boxes_lock();
    running = b->state == RT_BOX_RUNNING;
    rt_boxes_unlock();

    if (!running) {
        rt_lc_fail(r, 409, "SNAPSHOT::INVALID_SOURCE_STATE",
                   "Snapshot can only be created from a Running sandbox.");

    } else if (!rt_snap_create(b, named ? &name : NULL, &snap)) {
        rt_lc_fail(r, 500, "SNAPSHOT::CREATE_FAILED", "there are %d snapshots "
                   "already: delete some first", RT_SNAPSHOTS_MAX);

    } else {
        memset(&buf, 0, sizeof(buf));
        buf.max = RT_BODY_MAX;
        rt_lc_snap(&buf, &snap);
        rt_outf(r, "location", "/v1/snapshots/%s", snap.id);
        rt_snap_clear(&snap);
        rt_lc_json(r, 202, &buf);
    }

    rt_box_release(b);
    sb_jdoc_free(doc);
}


void
rt_lc_snap_get(rt_req_t *r, const char *id, const char *last)
{
    sb_buf_t   buf;
    rt_snap_t  snap;

    (void) last;

    if (!rt_snap_find(id, &snap)) {
        rt_lc_snap_unknown(r, id);
        return;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = RT_BODY_MAX;
    rt_lc_snap(&buf, &snap);
    rt_snap_clear(&snap);
    rt_lc_json(r, 200, &buf);
}


void
rt_lc_snap_delete(rt_req_t *r, const char *id, const char *last)
{
    (void) last;

    switch (rt_snap_delete(id)) {

    case RT_SNAP_DONE:
        rt_lc_empty(r, 204);
        break;

    case RT_SNAP_BUSY:
        rt_lc_fail(r, 409, "SNAPSHOT::INVALID_STATE", "Snapshot %s is still "
                   "being created and cannot be deleted", id);
        break;

    case RT_SNAP_USED:
        rt_lc_fail(r, 409, "SNAPSHOT::DELETE_CONFLICT", "Snapshot %s is the "
                   "base of a sandbox: delete that one first", id);
        break;

    default:
        rt_lc_snap_unknown(r, id);
        break;
    }
}


/* Whether a snapshot is among those asked for; states match exactly here. */

static bool
rt_lc_snap_shown(const rt_snap_t *s, const char *box, const char *query)
{
    bool        any, hit;
    rt_query_t  q;

    any = hit = false;
    rt_query_init(&q, query);

    while (rt_query_next(&q)) {
        if (strcmp(q.name.data, "state") == 0) {
            any = true;
            hit |= strcmp(q.value.data, rt_snap_states[s->state]) == 0;
        }
    }

    rt_query_free(&q);

    return (!any || hit) && (box == NULL || strcmp(box, s->box) == 0);
}


void
rt_lc_snap_list(rt_req_t *r, const char *id, const char *last)
{
    char       *box;
    size_t      i, n;
    sb_buf_t    buf;
    rt_snap_t  *list;
    rt_page_t   page;

    (void) id;
    (void) last;

    if (!rt_lc_page(r, &page)) {
        return;
    }

    box = rt_query_get(r->query, "sandboxId");
    list = rt_snaps_list(&n);
    memset(&buf, 0, sizeof(buf));
    buf.max = RT_BODY_MAX;
    sb_buf_printf(&buf, "{\"items\":[");

    for (i = 0; list != NULL && i < n; i++) {
        if (rt_lc_snap_shown(&list[i], box, r->query)
            && rt_lc_page_item(&buf, &page))
        {
            rt_lc_snap(&buf, &list[i]);
        }

        rt_snap_clear(&list[i]);
    }

    free(list);
    free(box);
    rt_lc_page_end(&buf, &page);
    rt_lc_json(r, 200, &buf);
}
