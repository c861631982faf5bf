/* Making entries. */

#include "chain.h"

#include "id.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>

/* of texts from rows that are queued, of one transaction */
#define CHAIN_KEPT_MAX  (16u * 1024 * 1024)


int
chain_load(chain_t *c, sqlite3 *db)
{
    int            rc;
    sqlite3_stmt  *st;

    c->n = 0;
    c->kept = 0;
    c->wait = 0;
    memset(c->hash, 0, CHAIN_HASH);

    rc = sqlite3_prepare_v2(db, "select n, hash from gateway_chain"
                            " order by n desc limit 1", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        rc = SQLITE_OK;

        if (sqlite3_column_bytes(st, 1) == CHAIN_HASH) {
            c->n = sqlite3_column_int64(st, 0);
            memcpy(c->hash, sqlite3_column_blob(st, 1), CHAIN_HASH);

        } else {
            rc = SQLITE_CORRUPT;
        }

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


void
chain_free(chain_t *c)
{
    chain_forget(c);
    chain_stmts_free(&c->stmts);
    free(c->notes);
    c->notes = NULL;
    c->alloc = 0;
}


/* --- noting ------------------------------------------------------------- */

chain_note_t *
chain_add(chain_t *c, chain_kind_e kind, const uint8_t event[16])
{
    size_t         n;
    chain_note_t  *notes;

    if (c->nnotes == c->alloc) {
        n = c->alloc ? c->alloc * 2 : 64;

        notes = realloc(c->notes, n * sizeof(chain_note_t));
        if (notes == NULL) {
            c->failed = true;
            return NULL;
        }

        c->notes = notes;
        c->alloc = n;
    }

    notes = &c->notes[c->nnotes++];
    memset(notes, 0, sizeof(chain_note_t));
    notes->kind = kind;
    notes->detail.max = CHAIN_TEXT_MAX;

    if (event) {
        sb_uuid_text(notes->event, event);
    }

    return notes;
}


void
chain_note(chain_t *c, chain_kind_e kind, const uint8_t event[16])
{
    (void) chain_add(c, kind, event);
}


void
chain_note_rows(chain_t *c, chain_kind_e kind, const uint8_t event[16],
    const chain_rows_t *rows, const chain_output_t *o)
{
    chain_note_t  *note;

    note = chain_add(c, kind, event);

    if (note) {
        note->queued = true;
        note->rows = *rows;

        if (o) {
            note->output = *o;
        }
    }
}


void
chain_changes(chain_t *c, const uint8_t event[16])
{
    char    id[SB_UUID_LEN + 1];
    size_t  i;

    sb_uuid_text(id, event);

    for (i = c->nnotes; i > c->taken; i--) {

        if (strcmp(c->notes[i - 1].event, id) != 0) {
            break;
        }

        if (c->notes[i - 1].kind == CHAIN_END) {
            c->notes[i - 1].queued = false;
        }
    }
}


void
chain_take(chain_t *c, const bulk_t *bulk)
{
    sb_rc_t        rc;
    chain_note_t  *note;

    c->text.max = CHAIN_KEPT_MAX;

    for ( /* void */ ; c->taken < c->nnotes; c->taken++) {
        note = &c->notes[c->taken];

        if (!note->queued || note->rows.clears != bulk_clears(bulk)) {
            continue;
        }

        note->from = c->text.len;

        rc = chain_rows_text(bulk, note->kind, &note->rows, &note->output,
                             &c->text);

        /* without room it is read from the file */
        note->told = rc == SB_OK;

        if (rc == SB_OK) {
            note->len = c->text.len - note->from;

        } else {
            c->text.len = note->from;
        }
    }
}


void
chain_note_output(chain_t *c, const uint8_t event[16],
    const chain_output_t *o)
{
    chain_note_t  *note;

    note = chain_add(c, CHAIN_OUTPUT, event);

    if (note) {
        note->output = *o;
    }
}


void
chain_note_detail(chain_t *c, const uint8_t event[16], sb_str_t detail)
{
    chain_note_t  *note;

    note = chain_add(c, CHAIN_NOTE, event);

    if (note && sb_buf_add(&note->detail, detail.data, detail.len) != SB_OK) {
        c->failed = true;
    }
}


void
chain_note_terminal(chain_t *c, const uint8_t event[16], int64_t n,
    const uint8_t digest[CHAIN_HASH])
{
    int   len;
    char  hex[2 * CHAIN_HASH + 1], detail[160];

    sb_hex(hex, digest, CHAIN_HASH);
    len = snprintf(detail, sizeof(detail), "{\"terminal\":{\"n\":%lld,"
                   "\"sha256\":\"%s\"}}", (long long) n, hex);

    chain_note_detail(c, event, sb_str(detail, (size_t) len));
}


size_t
chain_mark(const chain_t *c)
{
    return c->nnotes;
}


void
chain_back(chain_t *c, size_t mark)
{
    while (c->nnotes > mark) {
        sb_buf_free(&c->notes[--c->nnotes].detail);
    }

    c->taken = c->taken > mark ? mark : c->taken;
}


void
chain_forget(chain_t *c)
{
    chain_back(c, 0);
    sb_buf_free(&c->text);
    c->failed = false;
}


/* --- writing ------------------------------------------------------------ */

static void
chain_entry(chain_t *c, bulk_t *bulk, const chain_note_t *note, int64_t seq,
    sb_str_t json)
{
    const char  *kind;

    chain_hash(c->hash, c->hash, seq, note->kind, json);
    c->n++;

    kind = chain_kind_name(note->kind);

    bulk_row(bulk, BULK_CHAIN);
    bulk_int(bulk, c->n);

    if (note->event[0]) {
        bulk_text(bulk, sb_str(note->event, strlen(note->event)));

    } else {
        bulk_null(bulk);
    }

    bulk_static(bulk, kind);

    switch (note->kind) {

    case CHAIN_BEGIN:
    case CHAIN_END:
    case CHAIN_GAP:
        bulk_null(bulk);
        break;

    default:
        bulk_text(bulk, json);
    }

    bulk_blob(bulk, c->hash, CHAIN_HASH);
}


/* The first entry: whose history it is, and how many records stand in the file
 * that the chain knows nothing of. */
static int
chain_first(chain_t *c, sqlite3 *db, bulk_t *bulk, sb_buf_t *text,
    int64_t records)
{
    int           rc;
    size_t        i;
    int64_t       seq;
    chain_note_t  note;

    for (i = 0; i < c->nnotes; i++) {
        records -= c->notes[i].kind == CHAIN_BEGIN
                   || c->notes[i].kind == CHAIN_GAP;
    }

    memset(&note, 0, sizeof(note));
    note.kind = CHAIN_FILE;

    rc = chain_content(db, &c->stmts, CHAIN_FILE, NULL, text, &seq);

    if (rc == SQLITE_OK) {
        chain_entry(c, bulk, &note, records, sb_str(text->data, text->len));
    }

    return rc;
}


static int
chain_output_text(chain_t *c, sqlite3 *db, const chain_note_t *note,
    sb_buf_t *text, int64_t *seq)
{
    int      rc;
    uint8_t  digest[CHAIN_HASH];

    rc = chain_seq(db, &c->stmts, note->event, seq);

    if (rc == SQLITE_OK) {
        rc = chain_output_digest(db, &c->stmts, note->event, &note->output,
                                 digest);
    }

    if (rc != SQLITE_OK) {
        return rc;
    }

    text->len = 0;

    return chain_output_detail(text, &note->output, digest) == SB_OK
           ? SQLITE_OK : SQLITE_NOMEM;
}


int
chain_write(chain_t *c, sqlite3 *db, bulk_t *bulk, int64_t records)
{
    int            rc;
    size_t         i;
    int64_t        seq;
    sb_buf_t       text;
    sb_str_t       json;
    chain_note_t  *note;

    if (c->failed) {
        return SQLITE_NOMEM;
    }

    if (c->nnotes == 0) {
        return SQLITE_OK;
    }

    memset(&text, 0, sizeof(text));
    text.max = CHAIN_TEXT_MAX;

    rc = c->n ? SQLITE_OK : chain_first(c, db, bulk, &text, records);

    for (i = 0; i < c->nnotes && rc == SQLITE_OK; i++) {
        note = &c->notes[i];
        seq = 0;

        if (note->told) {
            chain_entry(c, bulk, note, note->rows.seq,
                        sb_str(c->text.data + note->from, note->len));
            continue;
        }

        switch (note->kind) {

        case CHAIN_BEGIN:
        case CHAIN_END:
        case CHAIN_GAP:
            rc = chain_content(db, &c->stmts, note->kind, note->event, &text,
                               &seq);
            json = sb_str(text.data, text.len);
            break;

        case CHAIN_OUTPUT:
            rc = chain_output_text(c, db, note, &text, &seq);
            json = sb_str(text.data, text.len);
            break;

        default:
            json = sb_str(note->detail.data, note->detail.len);

            if (note->event[0]) {
                rc = chain_seq(db, &c->stmts, note->event, &seq);
            }
        }

        if (rc == SQLITE_OK) {
            chain_entry(c, bulk, note, seq, json);
        }
    }

    sb_buf_free(&text);

    /* SQLITE_NOTFOUND means something else to those who call */
    return rc == SQLITE_NOTFOUND ? SQLITE_ERROR : rc;
}


void
chain_done(chain_t *c)
{
    c->news |= c->nnotes != 0;
    chain_forget(c);
}
