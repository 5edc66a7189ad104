/* Peers of the benchmark of software floating point: loops over binary128 words by the compiler's __float128
   (libgcc, libquadmath) and by MPFR at 113 bits on numbers it already holds. Built by softfloat.py. */

#include <stdint.h>
#include <stdlib.h>

#ifdef PEER_QUADMATH
#include <quadmath.h>

#define LOOP(name, expression)                                                                            \
    void name(const __float128 *a, const __float128 *b, const __float128 *c, __float128 *out, long n) {   \
        for (long i = 0; i < n; i++) out[i] = (expression);                                               \
    }

LOOP(add, a[i] + b[i])
LOOP(multiply, a[i] * b[i])
LOOP(divide, a[i] / b[i])
LOOP(sqrt_, sqrtq(a[i]))
LOOP(fma_, fmaq(a[i], b[i], c[i]))
#endif

#ifdef PEER_MPFR
#include <mpfr.h>

/* n numbers of 113 bits, from words without NaN, infinities, zeros and subnormals; from nothing where words is null. */
mpfr_t *make(const uint64_t *words, long n) {
    mpfr_t *values = malloc(n * sizeof(mpfr_t));
    for (long i = 0; i < n; i++) {
        mpfr_init2(values[i], 113);
        if (!words) continue;
        uint64_t low = words[2 * i], high = words[2 * i + 1];
        mpfr_set_ui(values[i], (high & 0xFFFFFFFFFFFFu) | 1ul << 48, MPFR_RNDN);
        mpfr_mul_2ui(values[i], values[i], 64, MPFR_RNDN);
        mpfr_add_ui(values[i], values[i], low, MPFR_RNDN);
        mpfr_mul_2si(values[i], values[i], (long)(high >> 48 & 0x7FFF) - 16383 - 112, MPFR_RNDN);
        if (high >> 63) mpfr_neg(values[i], values[i], MPFR_RNDN);
    }
    return values;
}

/* Back to words; the numbers are in the range of normal ones. */
void words_of(mpfr_t *values, uint64_t *words, long n) {
    mpz_t integer;
    mpz_init(integer);
    for (long i = 0; i < n; i++) {
        long exponent = mpfr_get_z_2exp(integer, values[i]);
        int negative = mpz_sgn(integer) < 0;
        mpz_abs(integer, integer);
        uint64_t limbs[2] = {0, 0};
        mpz_export(limbs, NULL, -1, 8, 0, 0, integer);
        uint64_t field = (uint64_t)(exponent + 112 + 16383);
        words[2 * i] = limbs[0];
        words[2 * i + 1] = (limbs[1] & 0xFFFFFFFFFFFFu) | field << 48 | (uint64_t)negative << 63;
    }
    mpz_clear(integer);
}

#define LOOP(name, call)                                                     \
    void name(mpfr_t *a, mpfr_t *b, mpfr_t *c, mpfr_t *out, long n) {        \
        for (long i = 0; i < n; i++) call;                                   \
    }

LOOP(add, mpfr_add(out[i], a[i], b[i], MPFR_RNDN))
LOOP(multiply, mpfr_mul(out[i], a[i], b[i], MPFR_RNDN))
LOOP(divide, mpfr_div(out[i], a[i], b[i], MPFR_RNDN))
LOOP(sqrt_, mpfr_sqrt(out[i], a[i], MPFR_RNDN))
LOOP(fma_, mpfr_fma(out[i], a[i], b[i], c[i], MPFR_RNDN))
#endif
