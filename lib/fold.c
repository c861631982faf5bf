#include "fold.h"


typedef struct {
    uint32_t  first, last;
} fold_range_t;

typedef struct {
    uint32_t  first, last;
    uint32_t  step;             /* 2: every other one is a capital */
    int32_t   to;               /* what is added to a capital */
} fold_case_t;


/* From U+0080 on, what is neither a letter nor a digit, in order.  Everything
 * else is taken for a letter: who searches for it finds it. */
static const fold_range_t  fold_breaks[] = {
    { 0x80, 0xa9 }, { 0xab, 0xac }, { 0xae, 0xb1 }, { 0xb4, 0xb4 },
    { 0xb6, 0xb8 }, { 0xbb, 0xbb }, { 0xbf, 0xbf }, { 0xd7, 0xd7 },
    { 0xf7, 0xf7 }, { 0x2c2, 0x2c5 }, { 0x2d2, 0x2df }, { 0x2e5, 0x2eb },
    { 0x2ef, 0x2ff }, { 0x375, 0x375 }, { 0x37e, 0x37e }, { 0x384, 0x385 },
    { 0x387, 0x387 }, { 0x3f6, 0x3f6 }, { 0x482, 0x482 }, { 0x55a, 0x55f },
    { 0x589, 0x58f }, { 0x5be, 0x5be }, { 0x5c0, 0x5c0 }, { 0x5c3, 0x5c3 },
    { 0x5c6, 0x5c6 }, { 0x5f3, 0x60f }, { 0x61b, 0x61f }, { 0x66a, 0x66d },
    { 0x6d4, 0x6d4 }, { 0x6dd, 0x6de }, { 0x6e9, 0x6e9 }, { 0x6fd, 0x6fe },
    { 0x700, 0x70f }, { 0x7f6, 0x7f9 }, { 0x964, 0x965 }, { 0x970, 0x970 },
    { 0x9f2, 0x9f3 }, { 0xbf3, 0xbfa }, { 0xdf4, 0xdf4 }, { 0xe3f, 0xe3f },
    { 0xe4f, 0xe4f }, { 0xe5a, 0xe5b }, { 0xf01, 0xf17 }, { 0xf3a, 0xf3d },
    { 0x104a, 0x104f }, { 0x10fb, 0x10fb }, { 0x1360, 0x1368 },
    { 0x166d, 0x166e }, { 0x1680, 0x1680 }, { 0x169b, 0x169c },
    { 0x16eb, 0x16ed }, { 0x1735, 0x1736 }, { 0x17d4, 0x17d6 },
    { 0x17d8, 0x17db }, { 0x1800, 0x180a }, { 0x1940, 0x1945 },
    { 0x19de, 0x19ff }, { 0x1fbd, 0x1fbd }, { 0x1fbf, 0x1fc1 },
    { 0x1fcd, 0x1fcf }, { 0x1fdd, 0x1fdf }, { 0x1fed, 0x1fef },
    { 0x1ffd, 0x200a }, { 0x2010, 0x2029 }, { 0x202f, 0x205f },
    { 0x207a, 0x207e }, { 0x208a, 0x208e }, { 0x20a0, 0x20c0 },
    { 0x2100, 0x2101 }, { 0x2103, 0x2106 }, { 0x2108, 0x2109 },
    { 0x2114, 0x2114 }, { 0x2116, 0x2118 }, { 0x211e, 0x2123 },
    { 0x2140, 0x2144 }, { 0x214a, 0x214d }, { 0x218a, 0x244a },
    { 0x2500, 0x2775 }, { 0x2794, 0x2bff }, { 0x2ce5, 0x2cea },
    { 0x2cf9, 0x2cff }, { 0x2e00, 0x2e7f }, { 0x3000, 0x3004 },
    { 0x3008, 0x3020 }, { 0x3030, 0x3030 }, { 0x3036, 0x3037 },
    { 0x303d, 0x303f }, { 0x309b, 0x309c }, { 0x30a0, 0x30a0 },
    { 0x30fb, 0x30fb }, { 0x3190, 0x3191 }, { 0x31c0, 0x31e3 },
    { 0x3200, 0x33ff }, { 0x4dc0, 0x4dff }, { 0xa490, 0xa4c6 },
    { 0xa4fe, 0xa4ff }, { 0xa60d, 0xa60f }, { 0xa6f2, 0xa716 },
    { 0xa828, 0xa839 }, { 0xa874, 0xa877 }, { 0xa8ce, 0xa8cf },
    { 0xa92e, 0xa92f }, { 0xa95f, 0xa95f }, { 0xa9c1, 0xa9cd },
    { 0xaa5c, 0xaa5f }, { 0xaaf0, 0xaaf1 }, { 0xabeb, 0xabeb },
    { 0xd800, 0xf8ff }, { 0xfb29, 0xfb29 }, { 0xfbb2, 0xfbc2 },
    { 0xfd3e, 0xfd4f }, { 0xfdfc, 0xfdff }, { 0xfe10, 0xfe19 },
    { 0xfe30, 0xfe6b }, { 0xff5f, 0xff65 }, { 0xffe0, 0xffff },
    { 0x10100, 0x10102 }, { 0x10137, 0x101fc }, { 0x1cf50, 0x1d3ff },
    { 0x1d800, 0x1dfff }, { 0x1f000, 0x1f0ff }, { 0x1f10d, 0x1fbca },
    { 0xe0000, 0x10ffff }
};

/* Combining marks that texts have or have not, selectors of variants, what
 * joins, and directions. */
static const fold_range_t  fold_marks[] = {
    { 0xad, 0xad }, { 0x300, 0x36f }, { 0x483, 0x489 }, { 0x591, 0x5bd },
    { 0x5bf, 0x5bf }, { 0x5c1, 0x5c2 }, { 0x5c4, 0x5c5 }, { 0x5c7, 0x5c7 },
    { 0x610, 0x61a }, { 0x640, 0x640 }, { 0x64b, 0x65f }, { 0x670, 0x670 },
    { 0x6d6, 0x6dc }, { 0x6df, 0x6e4 }, { 0x180b, 0x180f },
    { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200f },
    { 0x202a, 0x202e }, { 0x2060, 0x206f }, { 0x20d0, 0x20ff },
    { 0x302a, 0x302f }, { 0x3099, 0x309a }, { 0xfe00, 0xfe0f },
    { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff }, { 0xe0001, 0xe01ef }
};

/* Han, kana, bopomofo, hangul, yi; and Thai, Lao, Tibetan, Burmese, Khmer, whose
 * words nothing parts either. */
static const fold_range_t  fold_pairs[] = {
    { 0xe00, 0xfff }, { 0x1000, 0x109f }, { 0x1100, 0x11ff },
    { 0x1780, 0x17ff }, { 0x1950, 0x19df }, { 0x1a20, 0x1aaf },
    { 0x2e80, 0x2fdf }, { 0x3005, 0x3007 }, { 0x3021, 0x3029 },
    { 0x3031, 0x3035 }, { 0x3038, 0x303c }, { 0x3041, 0x3096 },
    { 0x309d, 0x30ff }, { 0x3105, 0x312f }, { 0x3131, 0x318e },
    { 0x3192, 0x31bf }, { 0x31f0, 0x31ff }, { 0x3400, 0x4dbf },
    { 0x4e00, 0x9fff }, { 0xa000, 0xa48c }, { 0xa960, 0xa97c },
    { 0xa9e0, 0xa9fe }, { 0xaa60, 0xaa7f }, { 0xac00, 0xd7ff },
    { 0xf900, 0xfaff }, { 0xff66, 0xffdc }, { 0x16fe0, 0x18dff },
    { 0x1aff0, 0x1b2ff }, { 0x20000, 0x3ffff }
};

static const fold_case_t  fold_cases[] = {
    { 0xc0, 0xd6, 1, 32 }, { 0xd8, 0xde, 1, 32 }, { 0x100, 0x12e, 2, 1 },
    { 0x132, 0x136, 2, 1 }, { 0x139, 0x147, 2, 1 }, { 0x14a, 0x176, 2, 1 },
    { 0x178, 0x178, 1, -121 }, { 0x179, 0x17d, 2, 1 },
    { 0x182, 0x184, 2, 1 }, { 0x187, 0x187, 1, 1 }, { 0x189, 0x18a, 1, 205 },
    { 0x18b, 0x18b, 1, 1 }, { 0x18e, 0x18e, 1, 79 }, { 0x18f, 0x18f, 1, 202 },
    { 0x190, 0x190, 1, 203 }, { 0x191, 0x191, 1, 1 }, { 0x198, 0x198, 1, 1 },
    { 0x1a0, 0x1a4, 2, 1 }, { 0x1a7, 0x1a7, 1, 1 }, { 0x1ac, 0x1ac, 1, 1 },
    { 0x1af, 0x1af, 1, 1 }, { 0x1b3, 0x1b5, 2, 1 }, { 0x1c4, 0x1c4, 1, 2 },
    { 0x1c7, 0x1c7, 1, 2 }, { 0x1ca, 0x1ca, 1, 2 }, { 0x1cd, 0x1db, 2, 1 },
    { 0x1de, 0x1ee, 2, 1 }, { 0x1f1, 0x1f1, 1, 2 }, { 0x1f4, 0x1f4, 1, 1 },
    { 0x1f8, 0x21e, 2, 1 }, { 0x222, 0x232, 2, 1 }, { 0x246, 0x24e, 2, 1 },
    { 0x370, 0x372, 2, 1 }, { 0x386, 0x386, 1, 38 }, { 0x388, 0x38a, 1, 37 },
    { 0x38c, 0x38c, 1, 64 }, { 0x38e, 0x38f, 1, 63 }, { 0x391, 0x3a1, 1, 32 },
    { 0x3a3, 0x3ab, 1, 32 }, { 0x3c2, 0x3c2, 1, 1 }, { 0x3d8, 0x3ee, 2, 1 },
    { 0x400, 0x40f, 1, 80 }, { 0x410, 0x42f, 1, 32 }, { 0x460, 0x480, 2, 1 },
    { 0x48a, 0x4be, 2, 1 }, { 0x4c0, 0x4c0, 1, 15 }, { 0x4c1, 0x4cd, 2, 1 },
    { 0x4d0, 0x52e, 2, 1 }, { 0x531, 0x556, 1, 48 },
    { 0x10a0, 0x10c5, 1, 7264 }, { 0x13a0, 0x13ef, 1, 38864 },
    { 0x1c90, 0x1cba, 1, -3008 }, { 0x1e00, 0x1e94, 2, 1 },
    { 0x1e9e, 0x1e9e, 1, -7615 }, { 0x1ea0, 0x1efe, 2, 1 },
    { 0x2c00, 0x2c2f, 1, 48 }, { 0x2c80, 0x2ce2, 2, 1 },
    { 0xa640, 0xa66c, 2, 1 },
    { 0xa680, 0xa69a, 2, 1 }, { 0xa722, 0xa72e, 2, 1 },
    { 0xa732, 0xa76e, 2, 1 }, { 0x10400, 0x10427, 1, 40 },
    { 0x104b0, 0x104d3, 1, 40 }, { 0x118a0, 0x118bf, 1, 32 },
    { 0x1e900, 0x1e921, 1, 34 }
};

/* The letter without its accents, from U+00C0; "." where there is none. */
static const char  fold_latin[] =
    "aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.y"
    "aaaaaaccccccccdd..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll."
    "...nnnnnn...oooooo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzz."
    "................................oo.............uu..............."
    ".............aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa...."
    "aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............"
    "................";

/* From U+1E00. */
static const char  fold_latin_more[] =
    "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm"
    "mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv"
    "wwwwwwwwwwxxxxyyzzzzzzhtwy......aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
    "eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......";

/* Greek from U+0386 and U+1F00: a alpha, e epsilon, h eta, i iota, o omicron,
 * u upsilon, w omega, r rho. */
static const char  fold_greek[] =
    "a.ehi.o.uwi.........................iuaehiu....................."
    "....iuouw";
static const char  fold_greek_more[] =
    "aaaaaaaaaaaaaaaaeeeeee..eeeeee..hhhhhhhhhhhhhhhhiiiiiiiiiiiiiiii"
    "oooooo..oooooo..uuuuuuuu.u.u.u.uwwwwwwwwwwwwwwwwaaeehhiioouuww.."
    "aaaaaaaaaaaaaaaahhhhhhhhhhhhhhhhwwwwwwwwwwwwwwwwaaaaa.aaaaaaa..."
    "..hhh.hheehhh...iiii..iiiiii....uuuurruuuuuur.....www.wwoowww...";


static bool
fold_in(const fold_range_t *ranges, size_t n, uint32_t code)
{
    size_t  lo, hi, mid;

    lo = 0;
    hi = n;

    while (lo < hi) {
        mid = (lo + hi) / 2;

        if (code < ranges[mid].first) {
            hi = mid;

        } else if (code > ranges[mid].last) {
            lo = mid + 1;

        } else {
            return true;
        }
    }

    return false;
}

#define fold_is(ranges, code)                                                \
    fold_in(ranges, sizeof(ranges) / sizeof((ranges)[0]), code)


static uint32_t
fold_case(uint32_t code)
{
    size_t              lo, hi, mid;
    const fold_case_t  *c;

    lo = 0;
    hi = sizeof(fold_cases) / sizeof(fold_cases[0]);

    while (lo < hi) {
        mid = (lo + hi) / 2;
        c = &fold_cases[mid];

        if (code < c->first) {
            hi = mid;

        } else if (code > c->last) {
            lo = mid + 1;

        } else if ((code - c->first) % c->step) {
            return code;

        } else {
            return (uint32_t) ((int32_t) code + c->to);
        }
    }

    return code;
}


static uint32_t
fold_greek_letter(char c)
{
    switch (c) {

    case 'a':
        return 0x3b1;
    case 'e':
        return 0x3b5;
    case 'h':
        return 0x3b7;
    case 'i':
        return 0x3b9;
    case 'o':
        return 0x3bf;
    case 'u':
        return 0x3c5;
    case 'w':
        return 0x3c9;
    case 'r':
        return 0x3c1;
    default:
        return 0;
    }
}


/* Without accents, or 0. */
static uint32_t
fold_plain(uint32_t code)
{
    char  c;

    c = '.';

    if (code >= 0xc0 && code < 0xc0 + sizeof(fold_latin) - 1) {
        c = fold_latin[code - 0xc0];

    } else if (code >= 0x1e00 && code <= 0x1eff) {
        c = fold_latin_more[code - 0x1e00];

    } else if (code >= 0x386 && code < 0x386 + sizeof(fold_greek) - 1) {
        return fold_greek_letter(fold_greek[code - 0x386]);

    } else if (code >= 0x1f00 && code <= 0x1fff) {
        return fold_greek_letter(fold_greek_more[code - 0x1f00]);

    } else if (code == 0x401 || code == 0x451) {
        return 0x435;
    }

    return c == '.' ? 0 : (uint32_t) (unsigned char) c;
}


static sb_char_e
fold_ascii(uint32_t code, uint32_t *folded)
{
    *folded = code;

    if (code >= 'A' && code <= 'Z') {
        *folded = code + 32;
        return SB_CHAR_WORD;
    }

    return (code >= 'a' && code <= 'z') || (code >= '0' && code <= '9')
           ? SB_CHAR_WORD : SB_CHAR_BREAK;
}


sb_char_e
sb_fold(uint32_t code, uint32_t *folded)
{
    uint32_t  plain;

    if (code < 0x80) {
        return fold_ascii(code, folded);
    }

    *folded = code;

    if (code >= 0x4e00 && code <= 0x9fff) {
        return SB_CHAR_PAIR;
    }

    if (code >= 0xff01 && code <= 0xff5e) {
        return fold_ascii(code - 0xfee0, folded);
    }

    if (fold_is(fold_marks, code)) {
        return SB_CHAR_MARK;
    }

    if (fold_is(fold_breaks, code)) {
        return SB_CHAR_BREAK;
    }

    if (fold_is(fold_pairs, code)) {
        return SB_CHAR_PAIR;
    }

    plain = fold_plain(code);
    *folded = plain ? plain : fold_case(code);

    return SB_CHAR_WORD;
}
