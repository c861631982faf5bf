#include "inspect_int.h"

#include "utf8.h"

#include <stdlib.h>


#define SEEN_MEMBER  0x01u      /* a file, or a link */
#define SEEN_DIR     0x02u
#define SEEN_LINK    0x04u      /* a symbolic one */
#define SEEN_ABOVE   0x08u      /* another member is below it */

typedef struct {
    uint64_t  hash;             /* 0: free */
    unsigned  flags;
} seen_slot_t;

/* Hashes instead of names: with a seed that nobody knows, two names that are
 * taken for one are a refusal too many, and as good as never. */
struct inspect_seen_s {
    size_t        n, room;
    seen_slot_t  *slots;
};


inspect_seen_t *
inspect_seen_new(void)
{
    return calloc(1, sizeof(inspect_seen_t));
}


void
inspect_seen_free(inspect_seen_t *seen)
{
    if (seen) {
        free(seen->slots);
        free(seen);
    }
}


static seen_slot_t *
seen_find(seen_slot_t *slots, size_t room, uint64_t hash)
{
    size_t  i;

    for (i = (size_t) hash & (room - 1); slots[i].hash && slots[i].hash != hash;
         i = (i + 1) & (room - 1))
    {
        /* void */
    }

    return &slots[i];
}


/* The slot of a name, new or not; NULL without memory. */
static seen_slot_t *
seen_slot(inspect_seen_t *seen, uint64_t hash)
{
    size_t        i, room;
    seen_slot_t  *slots, *slot;

    if (2 * seen->n >= seen->room) {
        room = seen->room ? 2 * seen->room : 256;

        slots = calloc(room, sizeof(seen_slot_t));
        if (slots == NULL) {
            return NULL;
        }

        for (i = 0; i < seen->room; i++) {
            if (seen->slots[i].hash) {
                *seen_find(slots, room, seen->slots[i].hash) = seen->slots[i];
            }
        }

        free(seen->slots);
        seen->slots = slots;
        seen->room = room;
    }

    slot = seen_find(seen->slots, seen->room, hash);

    if (slot->hash == 0) {
        slot->hash = hash;
        seen->n++;
    }

    return slot;
}


static uint64_t
seen_hash(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    h ^= h >> 33;

    return h ? h : 1;
}


/* The next segment of a path that is neither empty nor "."; false: there is
 * none. */
static bool
name_segment(sb_str_t *rest, sb_str_t *segment)
{
    const char  *slash;

    while (rest->len) {
        slash = memchr(rest->data, '/', rest->len);
        segment->data = rest->data;
        segment->len = slash ? (size_t) (slash - rest->data) : rest->len;

        rest->data += segment->len + (slash ? 1 : 0);
        rest->len -= segment->len + (slash ? 1 : 0);

        if (segment->len && !sb_eq(*segment, sb_lit("."))) {
            return true;
        }
    }

    return false;
}


/* Of what a segment of a path is made; the hash of the path so far goes on. */
static uint64_t
name_hash(uint64_t h, sb_str_t segment)
{
    size_t  i;

    h = (h ^ '/') * 0x100000001b3u;

    for (i = 0; i < segment.len; i++) {
        h = (h ^ (unsigned char) segment.data[i]) * 0x100000001b3u;
        h ^= h >> 29;
    }

    return h;
}


/* A path that other systems, or execd, read in another way. */
static bool
name_odd(sb_str_t name)
{
    return name.len == 0 || memchr(name.data, '\\', name.len)
           || memchr(name.data, '\0', name.len)
           || (name.len > 1 && name.data[1] == ':'
               && ((name.data[0] | 0x20) >= 'a' && (name.data[0] | 0x20) <= 'z'))
           || !sb_utf8_valid(name);
}


bool
inspect_climbs(sb_str_t name)
{
    sb_str_t  rest = name, segment;

    if (name_odd(name) || name.data[0] == '/') {
        return true;
    }

    while (name_segment(&rest, &segment)) {
        if (sb_eq(segment, sb_lit(".."))) {
            return true;
        }
    }

    return false;
}


/* May a symbolic link lead out, from so many directories down?  Climbing is
 * known only at its beginning: behind a name it may begin anywhere. */
static bool
link_escapes(sb_str_t target, size_t down)
{
    bool      named = false;
    sb_str_t  rest = target, segment;

    if (name_odd(target) || target.data[0] == '/') {
        return true;
    }

    while (name_segment(&rest, &segment)) {

        if (!sb_eq(segment, sb_lit(".."))) {
            named = true;
            continue;
        }

        if (named || down-- == 0) {
            return true;
        }
    }

    return false;
}


/* A hard link is to be to a file that came before. */
static bool
hard_escapes(const inspect_t *in, const inspect_seen_t *seen, sb_str_t target)
{
    uint64_t            h = in->seed;
    sb_str_t            rest = target, segment;
    const seen_slot_t  *slot;

    if (inspect_climbs(target) || seen->room == 0) {
        return true;
    }

    while (name_segment(&rest, &segment)) {
        h = name_hash(h, segment);
    }

    slot = seen_find(seen->slots, seen->room, seen_hash(h));

    return slot->hash == 0 || !(slot->flags & SEEN_MEMBER)
           || (slot->flags & SEEN_LINK);
}


/* Everything above a member, then itself. */
static bool
name_place(inspect_t *in, inspect_seen_t *seen, sb_str_t name,
    inspect_kind_e kind, size_t *down)
{
    bool          more;
    uint64_t      h = in->seed;
    sb_str_t      rest = name, segment;
    seen_slot_t  *slot;

    *down = 0;

    if (!name_segment(&rest, &segment)) {
        /* "." */
        return true;
    }

    do {
        h = name_hash(h, segment);
        more = name_segment(&rest, &segment);

        slot = seen_slot(seen, seen_hash(h));
        if (slot == NULL) {
            return false;
        }

        if (more) {
            if (slot->flags & SEEN_LINK) {
                inspect_found(in, SB_IN_ESCAPES, "A member is to be written "
                              "through a link.", name);
            }

            slot->flags |= SEEN_ABOVE;
            (*down)++;
        }
    } while (more);

    if (kind == INSPECT_IS_LINK && (slot->flags & SEEN_ABOVE)) {
        inspect_found(in, SB_IN_ESCAPES, "A link stands above another member.",
                      name);
    }

    if ((slot->flags & SEEN_MEMBER)
        || (slot->flags & SEEN_DIR && kind != INSPECT_IS_DIR))
    {
        inspect_found(in, SB_IN_DUPLICATES, "A name occurs more than once.",
                      name);

        if (slot->flags & SEEN_LINK) {
            inspect_found(in, SB_IN_ESCAPES, "A member is to be written "
                          "through a link.", name);
        }
    }

    slot->flags |= kind == INSPECT_IS_DIR ? SEEN_DIR : SEEN_MEMBER;
    slot->flags |= kind == INSPECT_IS_LINK ? SEEN_LINK : 0;

    return true;
}


bool
inspect_name(inspect_t *in, inspect_seen_t *seen, sb_str_t name,
    inspect_kind_e kind, sb_str_t target)
{
    size_t  down;

    if (in->names) {
        in->out.matched |= sb_policy_names_match(in->names, name,
                                                 kind == INSPECT_IS_DIR);
    }

    if (inspect_climbs(name)) {
        inspect_found(in, SB_IN_CLIMBS, "A member's name may lead out of where "
                      "it is unpacked.", name);
    }

    if (kind == INSPECT_IS_HARD && hard_escapes(in, seen, target)) {
        inspect_found(in, SB_IN_ESCAPES, "A hard link is not to a file that "
                      "comes before it.", name);
    }

    if (!name_place(in, seen, name, kind, &down)) {
        return false;
    }

    if (kind == INSPECT_IS_LINK && link_escapes(target, down)) {
        inspect_found(in, SB_IN_ESCAPES, "A symbolic link may lead out of where "
                      "it is unpacked.", name);
    }

    return true;
}
