// What generated kernels use beside CUDA's own functions. With TL_HOST the same source is compiled for the host, where
// tl_host.h has defined CUDA's functions before.
#ifndef TL_PRELUDE
#define TL_PRELUDE

#ifdef TL_HOST
#define TL_CONSTANT static const
#define TL_FUNCTION static inline
#define TL_CALLED static __attribute__((noinline))
#else
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
#define TL_CONSTANT __device__ const
#define TL_FUNCTION __device__ __forceinline__ static
#define TL_CALLED __device__ __noinline__ static
#endif

// What a function of several words returns.
template <int N> struct tl_words { uint64_t at[N]; };

// Neighbouring elements that are read and written at once.
template <class T, int N> struct alignas(sizeof(T) * N) tl_pack { T at[N]; };

#ifdef TL_HOST
TL_FUNCTION float tl_bits_float(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
TL_FUNCTION double tl_bits_double(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
TL_FUNCTION uint32_t tl_float_bits(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
TL_FUNCTION uint64_t tl_double_bits(double x) { uint64_t y; memcpy(&y, &x, 8); return y; }
TL_FUNCTION uint32_t tl_leading_zeros32(uint32_t x) { return (uint32_t)__builtin_clz(x); }
TL_FUNCTION uint64_t tl_leading_zeros64(uint64_t x) { return (uint64_t)__builtin_clzll(x); }
TL_FUNCTION uint64_t tl_ones(uint64_t x) { return (uint64_t)__builtin_popcountll(x); }
TL_FUNCTION uint64_t tl_high_product(uint64_t x, uint64_t y) { return (uint64_t)(((unsigned __int128)x * y) >> 64); }
#else
TL_FUNCTION float tl_bits_float(uint32_t x) { return __uint_as_float(x); }
TL_FUNCTION double tl_bits_double(uint64_t x) { return __longlong_as_double((long long)x); }
TL_FUNCTION uint32_t tl_float_bits(float x) { return __float_as_uint(x); }
TL_FUNCTION uint64_t tl_double_bits(double x) { return (uint64_t)__double_as_longlong(x); }
TL_FUNCTION uint32_t tl_leading_zeros32(uint32_t x) { return (uint32_t)__clz((int)x); }
TL_FUNCTION uint64_t tl_leading_zeros64(uint64_t x) { return (uint64_t)__clzll((long long)x); }
TL_FUNCTION uint64_t tl_ones(uint64_t x) { return (uint64_t)__popcll(x); }
TL_FUNCTION uint64_t tl_high_product(uint64_t x, uint64_t y) { return __umul64hi(x, y); }
#endif

TL_FUNCTION uint64_t tl_ctlz_uint64(uint64_t x) { return x ? tl_leading_zeros64(x) : 64u; }
TL_FUNCTION uint32_t tl_ctlz_uint32(uint32_t x) { return x ? tl_leading_zeros32(x) : 32u; }
TL_FUNCTION uint16_t tl_ctlz_uint16(uint16_t x) { return (uint16_t)(tl_ctlz_uint32(x) - 16u); }
TL_FUNCTION uint8_t tl_ctlz_uint8(uint8_t x) { return (uint8_t)(tl_ctlz_uint32(x) - 24u); }
TL_FUNCTION uint64_t tl_ctpop_uint64(uint64_t x) { return tl_ones(x); }
TL_FUNCTION uint32_t tl_ctpop_uint32(uint32_t x) { return (uint32_t)tl_ones(x); }
TL_FUNCTION uint16_t tl_ctpop_uint16(uint16_t x) { return (uint16_t)tl_ones(x); }
TL_FUNCTION uint8_t tl_ctpop_uint8(uint8_t x) { return (uint8_t)tl_ones(x); }

// The high word of high:low shifted left, and the low word of it shifted right; counts are below the width.
TL_FUNCTION uint64_t tl_fshl_uint64(uint64_t high, uint64_t low, uint64_t n) { return (high << n) | ((low >> 1) >> (63u - n)); }
TL_FUNCTION uint64_t tl_fshr_uint64(uint64_t high, uint64_t low, uint64_t n) { return (low >> n) | ((high << 1) << (63u - n)); }
TL_FUNCTION uint32_t tl_fshl_uint32(uint32_t high, uint32_t low, uint32_t n) { return (high << n) | ((low >> 1) >> (31u - n)); }
TL_FUNCTION uint32_t tl_fshr_uint32(uint32_t high, uint32_t low, uint32_t n) { return (low >> n) | ((high << 1) << (31u - n)); }

// Marks an iteration of the kernel's space in which a rounding is not decided.
TL_FUNCTION void tl_leave_open(uint32_t* marks, uint64_t iteration) {
  atomicOr(marks + 1u + iteration / 32u, 1u << (uint32_t)(iteration % 32u));
  atomicOr(marks, 1u);
}

// IEEE 754-2019 minimum and maximum: NaN where an operand is one, and -0 below +0.
TL_FUNCTION float tl_minimum_float(float x, float y) {
  if (x != x) return x;
  if (y != y) return y;
  return x < y || (x == y && tl_float_bits(x) >> 31) ? x : y;
}
TL_FUNCTION float tl_maximum_float(float x, float y) {
  if (x != x) return x;
  if (y != y) return y;
  return x > y || (x == y && !(tl_float_bits(x) >> 31)) ? x : y;
}
TL_FUNCTION double tl_minimum_double(double x, double y) {
  if (x != x) return x;
  if (y != y) return y;
  return x < y || (x == y && tl_double_bits(x) >> 63) ? x : y;
}
TL_FUNCTION double tl_maximum_double(double x, double y) {
  if (x != x) return x;
  if (y != y) return y;
  return x > y || (x == y && !(tl_double_bits(x) >> 63)) ? x : y;
}

TL_FUNCTION float tl_half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) return tl_bits_float(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x400u) return tl_bits_float(sign | ((magnitude << 13) + 0x38000000u));
  // a subnormal number is its word times 2^-24, which is exact
  float value = (float)magnitude * 5.9604644775390625e-08f;
  return tl_bits_float(sign | tl_float_bits(value));
}

TL_FUNCTION uint16_t tl_float_to_half(float x) {
  uint32_t word = tl_float_bits(x), sign = word >> 16 & 0x8000u, magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  // from halfway between the largest number and 2^16 on the result is infinity
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {
    uint32_t rounded = magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | rounded >> 13);
  }
  // below 2^-14: a multiple of 2^-24, rounded to nearest even
  if (magnitude < 0x33000000u) return (uint16_t)sign;
  uint32_t shift = 126u - (magnitude >> 23), significand = (magnitude & 0x7fffffu) | 0x800000u;
  uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1u), half = 1u << (shift - 1u);
  kept += rest > half || (rest == half && (kept & 1u));
  return (uint16_t)(sign | kept);
}

// What another lane of the warp has, whose number differs by the bits of the mask. All lanes take part.
TL_FUNCTION uint32_t tl_exchange_uint32(uint32_t x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
TL_FUNCTION uint64_t tl_exchange_uint64(uint64_t x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
TL_FUNCTION uint16_t tl_exchange_uint16(uint16_t x, int mask) { return (uint16_t)tl_exchange_uint32(x, mask); }
TL_FUNCTION uint8_t tl_exchange_uint8(uint8_t x, int mask) { return (uint8_t)tl_exchange_uint32(x, mask); }
TL_FUNCTION bool tl_exchange_bool(bool x, int mask) { return tl_exchange_uint32(x, mask) != 0u; }
TL_FUNCTION float tl_exchange_float(float x, int mask) { return tl_bits_float(tl_exchange_uint32(tl_float_bits(x), mask)); }
TL_FUNCTION double tl_exchange_double(double x, int mask) { return tl_bits_double(tl_exchange_uint64(tl_double_bits(x), mask)); }
#endif
