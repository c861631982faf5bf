/* SHA-256, HMAC, CRC-32C, hex, base64url. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "digest.h"


static void
assert_hex(const uint8_t *p, size_t n, const char *want)
{
    char  text[129];

    assert_true(n <= 64);
    sb_hex(text, p, n);
    assert_string_equal(text, want);
}


static void
test_sha256(void **state)
{
    char          million[1000];
    uint8_t       out[32];
    sb_sha256_t  *h;

    (void) state;

    /* FIPS 180-2, appendix B, and the empty text */

    sb_sha256(out, sb_lit("abc"));
    assert_hex(out, 32, "ba7816bf8f01cfea414140de5dae2223"
               "b00361a396177a9cb410ff61f20015ad");

    sb_sha256(out, sb_str(NULL, 0));
    assert_hex(out, 32, "e3b0c44298fc1c149afbf4c8996fb924"
               "27ae41e4649b934ca495991b7852b855");

    memset(million, 'a', sizeof(million));
    h = sb_sha256_new();
    assert_non_null(h);

    for (int i = 0; i < 1000; i++) {
        sb_sha256_add(h, million, sizeof(million));
        sb_sha256_add(h, NULL, 0);
    }

    sb_sha256_final(h, out);
    assert_hex(out, 32, "cdc76e5c9914fb9281a1c7e284d73e67"
               "f1809a48a497200e046d39ccc7112cd0");

    h = sb_sha256_new();
    sb_sha256_add(h, "x", 1);
    sb_sha256_free(h);
    sb_sha256_free(NULL);
}


static void
test_hmac(void **state)
{
    char     key[131], data[152];
    uint8_t  out[32];

    (void) state;

    /* RFC 4231, test cases 1 to 4, 6, 7 */

    memset(key, 0x0b, 20);
    sb_hmac_sha256(out, sb_str(key, 20), sb_lit("Hi There"));
    assert_hex(out, 32, "b0344c61d8db38535ca8afceaf0bf12b"
               "881dc200c9833da726e9376c2e32cff7");

    sb_hmac_sha256(out, sb_lit("Jefe"),
                   sb_lit("what do ya want for nothing?"));
    assert_hex(out, 32, "5bdcc146bf60754e6a042426089575c7"
               "5a003f089d2739839dec58b964ec3843");

    memset(key, 0xaa, sizeof(key));
    memset(data, 0xdd, 50);
    sb_hmac_sha256(out, sb_str(key, 20), sb_str(data, 50));
    assert_hex(out, 32, "773ea91e36800e46854db8ebd09181a7"
               "2959098b3ef8c122d9635514ced565fe");

    for (int i = 0; i < 25; i++) {
        key[i] = (char) (i + 1);
    }

    memset(data, 0xcd, 50);
    sb_hmac_sha256(out, sb_str(key, 25), sb_str(data, 50));
    assert_hex(out, 32, "82558a389a443c0ea4cc819899f2083a"
               "85f0faa3e578f8077a2e3ff46729665b");

    memset(key, 0xaa, sizeof(key));
    sb_hmac_sha256(out, sb_str(key, 131),
                   sb_lit("Test Using Larger Than Block-Size Key - "
                          "Hash Key First"));
    assert_hex(out, 32, "60e431591ee0b67f0d8a26aacbf5b77f"
               "8e0bc6213728c5140546040f0ee37f54");

    sb_hmac_sha256(out, sb_str(key, 131),
                   sb_lit("This is a test using a larger than block-size key "
                          "and a larger than block-size data. The key needs "
                          "to be hashed before being used by the HMAC "
                          "algorithm."));
    assert_hex(out, 32, "9b09ffa71b942fcb27635fbcd5b0e944"
               "bfdc63644f0713938a7f51535c3a35e2");

    /* no key and no data are texts of their own */

    sb_hmac_sha256(out, sb_str(NULL, 0), sb_str(NULL, 0));
    assert_hex(out, 32, "b613679a0814d9ec772f95d778c35fc5"
               "ff1697c493715653c6c712144292c5ad");
}


static void
test_crc32c(void **state)
{
    char      data[300];
    uint32_t  whole, pieces;

    (void) state;

    assert_int_equal(sb_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sb_crc32c_portable(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sb_crc32c(0, "", 0), 0);

    /* RFC 3720, B.4 */

    memset(data, 0, 32);
    assert_int_equal(sb_crc32c(0, data, 32), 0x8a9136aa);
    memset(data, 0xff, 32);
    assert_int_equal(sb_crc32c(0, data, 32), 0x62a8ab43);

    for (int i = 0; i < 32; i++) {
        data[i] = (char) i;
    }

    assert_int_equal(sb_crc32c(0, data, 32), 0x46dd794e);

    /* both ways agree at every length, offset and split */

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char) (i * 131 + 7);
    }

    for (size_t n = 0; n <= 64; n++) {
        for (size_t off = 0; off < 9; off++) {
            whole = sb_crc32c(0, data + off, n);
            assert_int_equal(sb_crc32c_portable(0, data + off, n), whole);

            pieces = sb_crc32c(0, data + off, n / 3);
            pieces = sb_crc32c_portable(pieces, data + off + n / 3,
                                        n - n / 3);
            assert_int_equal(pieces, whole);
        }
    }

    assert_int_equal(sb_crc32c(0, data, sizeof(data)),
                     sb_crc32c_portable(0, data, sizeof(data)));
}


static void
test_hex(void **state)
{
    char     text[9];
    uint8_t  out[4];

    (void) state;

    assert_int_equal(sb_unhex(out, 4, sb_lit("00ffA5b6")), SB_OK);
    assert_memory_equal(out, "\x00\xff\xa5\xb6", 4);

    sb_hex(text, out, 4);
    assert_string_equal(text, "00ffa5b6");

    sb_hex(text, out, 0);
    assert_string_equal(text, "");

    assert_int_equal(sb_unhex(out, 4, sb_lit("00ffa5b")), SB_ERROR);
    assert_int_equal(sb_unhex(out, 4, sb_lit("00ffa5b600")), SB_ERROR);
    assert_int_equal(sb_unhex(out, 4, sb_lit("00ffa5g6")), SB_ERROR);
    assert_int_equal(sb_unhex(out, 4, sb_lit("00ff a56")), SB_ERROR);
    assert_int_equal(sb_unhex(out, 0, sb_lit("")), SB_OK);
}


static void
test_base64url(void **state)
{
    static const struct {
        const char  *plain;
        const char  *text;
    } cases[] = {
        { "", "" },
        { "f", "Zg" },
        { "fo", "Zm8" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg" },
        { "fooba", "Zm9vYmE" },
        { "foobar", "Zm9vYmFy" },
        { "\xfb\xff\xfe", "-__-" },
    };

    static const char *const  bad[] = {
        "A", "AAAAA", "Zg==", "Zh", "Zm9", "+/AA", "Z g", "Zm9v\n", "Z\xc3",
    };

    char     text[16];
    size_t   n;
    uint8_t  out[16], all[256], back[256];
    char     longer[400];

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        n = strlen(cases[i].plain);

        assert_int_equal(sb_b64url(text, (const uint8_t *) cases[i].plain, n),
                         strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);

        memset(out, 0, sizeof(out));
        assert_int_equal(sb_unb64url(out, &n, sb_str(text, strlen(text))),
                         SB_OK);
        assert_int_equal(n, strlen(cases[i].plain));
        assert_memory_equal(out, cases[i].plain, n);
    }

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sb_unb64url(out, &n, sb_str(bad[i], strlen(bad[i]))),
                         SB_ERROR);
    }

    for (size_t i = 0; i < 256; i++) {
        all[i] = (uint8_t) i;
    }

    n = sb_b64url(longer, all, 256);
    assert_int_equal(n, (256 * 4 + 2) / 3);
    assert_int_equal(sb_unb64url(back, &n, sb_str(longer, n)), SB_OK);
    assert_int_equal(n, 256);
    assert_memory_equal(back, all, 256);
}


/* C145: the verdict of the compare; its time is that of the length */
static void
test_equal_ct(void **state)
{
    char  a[43], b[43];

    (void) state;

    memset(a, 7, sizeof(a));
    memset(b, 7, sizeof(b));

    for (size_t n = 0; n <= sizeof(a); n++) {
        assert_true(sb_equal_ct(a, b, n));

        for (size_t i = 0; i < sizeof(a); i++) {
            for (unsigned bit = 1; bit < 256; bit <<= 1) {
                b[i] = (char) (b[i] ^ (int) bit);
                assert_true(sb_equal_ct(a, b, n) == (i >= n));
                b[i] = (char) (b[i] ^ (int) bit);
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_crc32c),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_base64url),
        cmocka_unit_test(test_equal_ct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
