/*
 * The tables of a history file: schema version 1 of the format
 * (docs/history.md) and what we add, all of it prefixed "gateway_".
 */

#ifndef SCHEMA_H_INCLUDED
#define SCHEMA_H_INCLUDED

#include "sb.h"

#include <sqlite3.h>

#define SCHEMA_VERSION       1
#define SCHEMA_PROVIDER_KEY  "opensandbox-default"
#define SCHEMA_SDK_VERSION   "ngx_sandbox_module/" SB_VERSION

/* Directory and sandbox id of what belongs to no sandbox, and its instance. */
#define SCHEMA_GATEWAY           "_gateway"
#define SCHEMA_GATEWAY_INSTANCE  "gateway"

/*
 * Our tables.  All event_id refer to history_events, except in
 * gateway_records and gateway_chain, which outlive their events.
 *
 * gateway_state     key, value: "applied_cursor" (everything of this sandbox
 *                   up to it is in the file), "state" and "state_at" (what
 *                   upstream last said of the sandbox, "gone" included)
 * gateway_records   one row per record: seq, gap-free from 1; cursor of its
 *                   beginning; moved_to: the sandbox whose file has it now
 *                   (then the event itself is no longer in this file)
 * gateway_chain     the chain (chain.h): entry n, of which event (NULL: of none),
 *                   kind, detail (JSON; NULL: read from the rows), purged: the
 *                   purge entry that accounts for it when the event is gone
 * gateway_wire      what passed: method, path, port, client, agent (User-Agent),
 *                   request_id, http_status (sent to the client),
 *                   upstream_status (NULL: no answer), upstream (address),
 *                   route, bytes_in, bytes_out, duration_us, identity (how the
 *                   actor was known), parent (operation id), error_code,
 *                   reason, record ("strict"|"best_effort"), files_total,
 *                   sandbox (id named by the request; only in _gateway),
 *                   foldable (1: polling)
 * gateway_files     every file of an operation, n from 0; flags are SB_PATH_*
 *                   size and sha256 are of the file after the operation; before
 *                   says how the state before is known: history, assumed (a
 *                   command or another operation may have come between),
 *                   fetched, absent, unavailable; content: kept, too_large,
 *                   unavailable (of the file after it)
 * gateway_contents  contents of files, by SHA-256; used: cursor of the newest
 *                   record that speaks of it; stored: bytes of data
 * gateway_parts     pieces of files of operations that have not ended
 * gateway_output    order and time of output over both streams: row `ord`
 *                   (from 0, gap-free) is a run of `length` bytes at `offset`
 *                   of chunk (stream, chunk_index) of command_output_chunks;
 *                   `at` when the first byte of it passed.  With `runs` the
 *                   row holds many short runs of both streams: `length` bytes
 *                   in all, those of the other stream from chunk other_index
 *                   at other_offset on; for each run two numbers of 7 bits a
 *                   byte, the lowest first, the top bit tells that more
 *                   follow: length * 2 + (1: stderr), microseconds since the
 *                   run before
 * gateway_folded    polls counted into an event instead of having rows
 * gateway_gaps      what a gateway.gap event says: operations and output bytes
 *                   lost between from_at and to_at
 * gateway_detached  commands that go on without their request (the event is
 *                   still "started"); reason and result are those of the
 *                   request; the row stays, with ended_at, when the end of the
 *                   command became known
 * gateway_held      only in _gateway: events that will move to a sandbox's file
 *                   once upstream has shown that the id exists
 * gateway_purges    what a gateway.purge event says, a row for each step: how
 *                   many operations, changes and bytes of output went by which
 *                   rule, the range of their numbers and times
 * gateway_pending   polls that have begun and may yet be folded: their frames
 */

/* Creates all tables and indexes that are missing and sets user_version; to be
 * called inside a transaction.  Returns an SQLite code. */
int schema_create(sqlite3 *db);

/* Brings our tables of an older build to what they are today. */
int schema_upgrade(sqlite3 *db);

typedef struct {
    const char  *sandbox;       /* id, as upstream names it */
    const char  *instance;      /* sandbox_instance_id */
    const char  *name;          /* display name, or NULL */
    const char  *now;           /* time text */
} schema_identity_t;

/* Limits that new files say they have, to be called before any is made: as they
 * are configured (0: none), in the terms of the format: whole days, at least
 * one; at least as many bytes as it allows. */
void schema_limits(uint64_t ttl_us, uint64_t size, const char *overflow);

/* Writes the rows of history_meta of a new file; rows that exist stay. */
int schema_write_meta(sqlite3 *db, const schema_identity_t *id);

/* The instance id of a sandbox that has none (format 6): "legacy-" and 32 hex
 * digits. */
#define SCHEMA_LEGACY_LEN  39
void schema_legacy_instance(char dst[SCHEMA_LEGACY_LEN + 1], sb_str_t sandbox);

/* Settings of every connection (format 3).  `writer` also sets WAL. */
int schema_pragmas(sqlite3 *db, bool writer);

#endif /* SCHEMA_H_INCLUDED */
