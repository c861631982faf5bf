#include "history_api_apply.h"

#include <stdlib.h>


static int
history_base64_digit(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' ? 62 : c == '/' ? 63 : -1;
}


/* Decodes strict base64 in place of a buffer of text.len bytes; the length,
 * or -1. */
static int64_t
history_base64(uint8_t *dst, sb_str_t text)
{
    int       digit, pad;
    size_t    n;
    uint32_t  bits;

    if (text.len % 4) {
        return -1;
    }

    pad = 0;
    bits = 0;
    n = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '=' && i + 2 >= text.len) {
            pad++;
            digit = 0;

        } else {
            digit = history_base64_digit(text.data[i]);
        }

        if (digit == -1 || (pad && text.data[i] != '=')) {
            return -1;
        }

        bits = bits << 6 | (uint32_t) digit;

        if (i % 4 == 3) {
            dst[n++] = (uint8_t) (bits >> 16);
            dst[n++] = (uint8_t) (bits >> 8);
            dst[n++] = (uint8_t) bits;
            bits = 0;
        }
    }

    return (int64_t) n - pad;
}


bool
history_apply_chunk(history_apply_t *a, sb_str_t id, const sb_jv_t *chunk)
{
    bool            ok;
    uint8_t        *data;
    int64_t         len, index;
    sb_str_t        stream, text, encoding;
    sqlite3_stmt   *stmt;

    if (chunk->kind != SB_JSON_OPEN_OBJECT) {
        history_error(a->err, "HelperError", "chunks item must be an object");
        return false;
    }

    if (!history_need(a, chunk, "stream", &stream)
        || !history_need(a, chunk, "data_base64", &text))
    {
        return false;
    }

    encoding = sb_jv_str(chunk, "encoding");

    /* The published helper drops such chunks without a word. */

    if (!sb_eq(stream, sb_lit("stdout")) && !sb_eq(stream, sb_lit("stderr"))) {
        history_error(a->err, "HelperError", "stream must be stdout or stderr");
        return false;
    }

    if (encoding.len && !sb_eq(encoding, sb_lit("identity"))
        && !sb_eq(encoding, sb_lit("gzip")) && !sb_eq(encoding, sb_lit("zlib")))
    {
        history_error(a->err, "HelperError",
                      "encoding must be identity, gzip or zlib");
        return false;
    }

    if (!sb_jv_int(sb_jv_get(chunk, "chunk_index"), &index)) {
        history_error(a->err, "ValueError", "chunk_index must be an integer");
        return false;
    }

    data = malloc(text.len);
    if (data == NULL) {
        history_error(a->err, "MemoryError", "out of memory");
        return false;
    }

    len = history_base64(data, text);

    if (len == -1) {
        history_error(a->err, "Error", "data_base64 is not base64");
        free(data);
        return false;
    }

    stmt = history_prepare(a->db,
               "INSERT OR IGNORE INTO command_output_chunks(event_id, stream,"
               " chunk_index, data, encoding, original_size, created_at)"
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", a->err);
    ok = false;

    if (stmt != NULL) {
        history_bind_str(stmt, 1, id);
        history_bind_str(stmt, 2, stream);
        sqlite3_bind_int64(stmt, 3, index);
        sqlite3_bind_blob64(stmt, 4, data, (sqlite3_uint64) len, SQLITE_STATIC);
        history_bind_str(stmt, 5, encoding.len ? encoding : sb_lit("identity"));
        sqlite3_bind_int64(stmt, 6, len);
        sqlite3_bind_text(stmt, 7, a->now, -1, SQLITE_STATIC);

        ok = history_bind(a, stmt, 6, chunk, "original_size")
             && history_bind(a, stmt, 7, chunk, "created_at");

        if (ok) {
            ok = history_run(stmt, a->err);

        } else {
            sqlite3_finalize(stmt);
        }
    }

    free(data);

    return ok;
}
