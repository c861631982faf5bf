#include "inspect.h"

#include "utf8.h"


static const struct {
    const char  *word;
    unsigned     found;
} words[] = {
    /* the worst one first */
    { "inconsistent", SB_IN_INCONSISTENT },
    { "climbs", SB_IN_CLIMBS },
    { "escapes", SB_IN_ESCAPES },
    { "devices", SB_IN_DEVICES },
    { "set-id", SB_IN_SETID },
    /* of one whose names are encrypted nothing else can be told */
    { "encrypted", SB_IN_ENCRYPTED },
    { "broken", SB_IN_BROKEN },
    { "duplicates", SB_IN_DUPLICATES },
    { "links", SB_IN_LINKS },
    { "misnamed", SB_IN_MISNAMED },
    { "any", SB_IN_ARCHIVE },
    { "unsafe", SB_IN_UNSAFE },
};

static const char *const  ends[] = {
    ".zip", ".tar", ".tgz", ".gz", ".bz2", ".tbz", ".tbz2", ".xz", ".txz",
    ".zst", ".tzst", ".lz", ".lz4", ".lzma", ".lzo", ".7z", ".rar", ".cab",
    ".xar", ".cpio", ".jar", ".war", ".ear", ".whl", ".egg", ".apk", ".docx",
    ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".deb", ".rpm", ".lha",
    ".lzh", ".nupkg", ".vsix", ".xpi", ".crx"
};


void
sb_inspect_most(uint64_t most[SB_IN_COUNTS])
{
    most[SB_IN_ENTRIES] = SB_IN_MOST_ENTRIES;
    most[SB_IN_SIZE] = SB_IN_MOST_SIZE;
    most[SB_IN_FILE_SIZE] = SB_IN_MOST_SIZE;
    most[SB_IN_RATIO] = SB_IN_MOST_RATIO;
    most[SB_IN_DEPTH] = SB_IN_MOST_DEPTH;
}


unsigned
sb_inspect_word(const char *word)
{
    size_t  i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i].word) == 0) {
            return words[i].found;
        }
    }

    return 0;
}


size_t
sb_inspect_rank(unsigned found)
{
    size_t  i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (found & words[i].found) {
            break;
        }
    }

    return i;
}


const char *
sb_inspect_name(unsigned found)
{
    size_t  i = sb_inspect_rank(found & ~SB_IN_ARCHIVE);

    return i < sizeof(words) / sizeof(words[0]) ? words[i].word : "archive";
}


bool
sb_inspect_named(sb_str_t path)
{
    size_t    i, n;
    sb_str_t  end;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        n = strlen(ends[i]);

        if (path.len > n) {
            end = sb_str(path.data + path.len - n, n);

            if (sb_ieq(end, sb_str(ends[i], n))) {
                return true;
            }
        }
    }

    return false;
}


void
sb_inspect_put(sb_frame_writer_t *w, const sb_inspect_t *in)
{
    size_t    i;
    sb_str_t  text;

    sb_frame_put_u64(w, SB_T_FOUND, in->found);

    for (i = 0; i < SB_IN_COUNTS; i++) {
        sb_frame_put_u64(w, SB_T_COUNT, in->counts[i]);
    }

    sb_frame_put_u64(w, SB_T_MATCHED, in->matched);

    if (in->cut) {
        sb_frame_put(w, SB_T_CUT, sb_lit(""));
    }

    text = sb_str(in->why, strnlen(in->why, sizeof(in->why) - 1));
    sb_frame_put(w, SB_T_REASON, text);
    text = sb_str(in->name, strnlen(in->name, sizeof(in->name) - 1));
    sb_frame_put(w, SB_T_PATH, text);
}


static void
sb_inspect_text(char *to, size_t size, sb_str_t from)
{
    size_t  n = sb_utf8_cut(from, size - 1);

    memcpy(to, from.data, n);
    to[n] = '\0';
}


bool
sb_inspect_get(const sb_frame_t *f, sb_inspect_t *in)
{
    bool      found = false;
    size_t    n = 0;
    uint16_t  tag;
    sb_str_t  fields = f->fields, value;

    memset(in, 0, sizeof(*in));

    while (sb_field_next(&fields, &tag, &value)) {

        switch (tag) {

        case SB_T_FOUND:
            found = value.len == 8;
            in->found = (unsigned) sb_value_u64(value, 0);
            break;

        case SB_T_COUNT:
            if (n < SB_IN_COUNTS && value.len == 8) {
                in->counts[n++] = sb_value_u64(value, 0);
            }

            break;

        case SB_T_MATCHED:
            in->matched = sb_value_u64(value, UINT64_MAX);
            break;

        case SB_T_CUT:
            in->cut = true;
            break;

        case SB_T_REASON:
            sb_inspect_text(in->why, sizeof(in->why), value);
            break;

        case SB_T_PATH:
            sb_inspect_text(in->name, sizeof(in->name), value);
            break;

        default:
            break;
        }
    }

    return found && n == SB_IN_COUNTS;
}
