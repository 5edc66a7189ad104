// Integers of any number of bits, as kernels of wide formats use them: limbs of 64 bits, least significant first, the bits
// above BITS zero. Operations are loops over limbs that are not unrolled: code must not grow with the number.
#ifndef TL_BIG
#define TL_BIG

#ifdef TL_HOST
#define TL_LOOP
#define TL_MEMBER inline
#define TL_LONG inline
#else
#define TL_LOOP _Pragma("unroll 1")
#define TL_MEMBER __device__ inline
#define TL_LONG __device__ __noinline__
#endif

template <int BITS> struct tl_uint {
  static constexpr int N = (BITS + 63) / 64;
  uint64_t at[N];

  TL_MEMBER tl_uint() {}
  TL_MEMBER explicit tl_uint(uint64_t word) {
    at[0] = word;
    TL_LOOP for (int k = 1; k < N; ++k) at[k] = 0;
    cut();
  }
  template <int OTHER> TL_LONG explicit tl_uint(const tl_uint<OTHER>& x) {
    TL_LOOP for (int k = 0; k < N; ++k) at[k] = k < x.N ? x.at[k] : 0;
    cut();
  }
  TL_MEMBER explicit operator uint64_t() const { return at[0]; }
  TL_MEMBER explicit operator uint32_t() const { return (uint32_t)at[0]; }
  TL_MEMBER explicit operator uint16_t() const { return (uint16_t)at[0]; }
  TL_MEMBER explicit operator uint8_t() const { return (uint8_t)at[0]; }

  TL_MEMBER void cut() {
    if (BITS % 64) at[N - 1] &= ~0ull >> (64 * N - BITS) % 64;
  }
  TL_MEMBER uint64_t limb(int k) const { return k >= 0 && k < N ? at[k] : 0; }
};

template <int BITS> TL_MEMBER tl_uint<BITS> tl_limbs(const uint64_t* limbs) {
  tl_uint<BITS> x;
  TL_LOOP for (int k = 0; k < x.N; ++k) x.at[k] = limbs[k];
  x.cut();
  return x;
}

template <int BITS, class... WORDS> TL_MEMBER tl_uint<BITS> tl_literal(WORDS... words) {
  const uint64_t limbs[] = {words...};
  return tl_limbs<BITS>(limbs);
}

template <int BITS> TL_LONG tl_uint<BITS> operator+(const tl_uint<BITS>& x, const tl_uint<BITS>& y) {
  tl_uint<BITS> z;
  uint64_t carry = 0;
  TL_LOOP for (int k = 0; k < z.N; ++k) {
    const uint64_t sum = x.at[k] + y.at[k], total = sum + carry;
    carry = (uint64_t)(sum < x.at[k]) | (uint64_t)(total < sum);
    z.at[k] = total;
  }
  z.cut();
  return z;
}

template <int BITS> TL_LONG tl_uint<BITS> operator-(const tl_uint<BITS>& x, const tl_uint<BITS>& y) {
  tl_uint<BITS> z;
  uint64_t borrow = 0;
  TL_LOOP for (int k = 0; k < z.N; ++k) {
    const uint64_t difference = x.at[k] - y.at[k];
    z.at[k] = difference - borrow;
    borrow = (uint64_t)(x.at[k] < y.at[k]) | (uint64_t)(difference < borrow);
  }
  z.cut();
  return z;
}

template <int BITS> TL_LONG tl_uint<BITS> operator|(const tl_uint<BITS>& x, const tl_uint<BITS>& y) {
  tl_uint<BITS> z;
  TL_LOOP for (int k = 0; k < z.N; ++k) z.at[k] = x.at[k] | y.at[k];
  return z;
}

template <int BITS> TL_MEMBER uint64_t operator&(const tl_uint<BITS>& x, uint32_t y) { return x.at[0] & y; }

// Counts are below BITS.
template <int BITS> TL_LONG tl_uint<BITS> operator<<(const tl_uint<BITS>& x, const tl_uint<BITS>& count) {
  tl_uint<BITS> z;
  const int words = (int)(count.at[0] >> 6);
  const uint64_t rest = count.at[0] & 63u;
  TL_LOOP for (int k = 0; k < z.N; ++k) z.at[k] = tl_fshl_uint64(x.limb(k - words), x.limb(k - words - 1), rest);
  z.cut();
  return z;
}

template <int BITS> TL_LONG tl_uint<BITS> operator>>(const tl_uint<BITS>& x, const tl_uint<BITS>& count) {
  tl_uint<BITS> z;
  const int words = (int)(count.at[0] >> 6);
  const uint64_t rest = count.at[0] & 63u;
  TL_LOOP for (int k = 0; k < z.N; ++k) z.at[k] = tl_fshr_uint64(x.limb(k + words + 1), x.limb(k + words), rest);
  return z;
}

template <int BITS> TL_LONG bool operator==(const tl_uint<BITS>& x, const tl_uint<BITS>& y) {
  uint64_t different = 0;
  TL_LOOP for (int k = 0; k < x.N; ++k) different |= x.at[k] ^ y.at[k];
  return different == 0;
}

template <int BITS> TL_MEMBER bool operator!=(const tl_uint<BITS>& x, const tl_uint<BITS>& y) { return !(x == y); }

template <int BITS> TL_LONG bool operator<(const tl_uint<BITS>& x, const tl_uint<BITS>& y) {
  bool less = false;
  TL_LOOP for (int k = 0; k < x.N; ++k) less = x.at[k] < y.at[k] || (x.at[k] == y.at[k] && less);
  return less;
}

template <int BITS> TL_LONG uint64_t tl_ctlz_uint64(const tl_uint<BITS>& x) {
  uint64_t zeros = 0;
  bool still = true;
  TL_LOOP for (int k = x.N - 1; k >= 0; --k) {
    if (still) zeros += tl_ctlz_uint64(x.at[k]);
    still = still && x.at[k] == 0;
  }
  return zeros - (64 * x.N - BITS);
}

// low + 2**64 high = x y + a + b
struct tl_double_word { uint64_t low, high; };

TL_MEMBER tl_double_word tl_times_plus(uint64_t x, uint64_t y, uint64_t a, uint64_t b) {
  tl_double_word z = {x * y, tl_high_product(x, y)};
  z.low += a;
  z.high += z.low < a;
  z.low += b;
  z.high += z.low < b;
  return z;
}

// The lowest limbs of x y, row by row.
template <int BITS, int X, int Y> TL_LONG tl_uint<BITS> tl_product(const tl_uint<X>& x, const tl_uint<Y>& y) {
  tl_uint<BITS> z((uint64_t)0);
  TL_LOOP for (int i = 0; i < (x.N < z.N ? x.N : z.N); ++i) {
    const int columns = y.N < z.N - i ? y.N : z.N - i;
    uint64_t carry = 0;
    TL_LOOP for (int j = 0; j < columns; ++j) {
      const tl_double_word total = tl_times_plus(x.at[i], y.at[j], z.at[i + j], carry);
      z.at[i + j] = total.low;
      carry = total.high;
    }
    if (columns < z.N - i) z.at[i + columns] = carry;
  }
  return z;
}

// rest 2**DIGIT - digit * by, on ``count`` limbs; ``below`` is the limb below those of the rest.
template <int DIGIT> TL_LONG void tl_next_rest(uint64_t* rest, const uint64_t* by, int count, uint64_t below, uint64_t digit) {
  uint64_t carry = 0, borrow = 0;
  TL_LOOP for (int k = 0; k < count; ++k) {
    const tl_double_word taken = tl_times_plus(digit, by[k], carry, 0);
    const uint64_t limb = rest[k], moved = (limb << DIGIT) | (below >> (64 - DIGIT)), difference = moved - taken.low;
    rest[k] = difference - borrow;
    borrow = (uint64_t)(moved < taken.low) | (uint64_t)(difference < borrow);
    carry = taken.high;
    below = limb;
  }
}

TL_MEMBER uint64_t tl_digit(uint64_t leading, double inverse, double scale) {
  return (uint64_t)__dmul_rn(__dmul_rn(__ull2double_rn(leading), inverse), scale);
}

// The digits of rest / divisor, DIGIT bits each, made one number of which the lowest bits are kept; what is left of the rest is less than twice the divisor.
// The divisor's highest bit is the last but one of its limbs, and the rest less than twice the divisor.
template <int BITS, int DIGIT, int N>
TL_LONG tl_uint<BITS> tl_quotient(tl_uint<N>& rest, const tl_uint<N>& divisor, uint64_t steps, double shrink, double scale) {
  tl_uint<BITS> found((uint64_t)0);
  const int top = rest.N - 1;
  const double inverse = __dmul_rn(__ddiv_rn(1.0, __ull2double_rn(divisor.at[top] >> 10)), shrink);
  TL_LOOP for (uint64_t step = 0; step < steps; ++step) {
    const uint64_t digit = tl_digit(rest.at[top] >> 1, inverse, scale);
    tl_next_rest<DIGIT>(rest.at, divisor.at, rest.N, 0, digit);
    uint64_t carry = digit, below = 0;
    TL_LOOP for (int k = 0; k < found.N; ++k) {
      const uint64_t limb = found.at[k], moved = (limb << DIGIT) | (below >> (64 - DIGIT));
      found.at[k] = moved + carry;
      carry = found.at[k] < moved;
      below = limb;
    }
  }
  return found;
}

// The digits of a square root: ``doubled`` is 2 A and ``rest`` T of the docstring of BigUint.square_root, whose 62 leading
// bits begin at ``lowest``; the first digit is added at the bit ``place`` of A.
template <int DIGIT, int D, int R>
TL_LONG void tl_root(tl_uint<D>& doubled, tl_uint<R>& rest, double first, int place, int lowest, int steps, double shrink, double scale) {
  const double inverse = __dmul_rn(__ddiv_rn(1.0, first), shrink);
  const int high = rest.N - doubled.N;
  TL_LOOP for (int step = 0; step < steps; ++step, place -= DIGIT) {
    const uint64_t window = tl_fshr_uint64(rest.limb(lowest / 64 + 1), rest.limb(lowest / 64), lowest % 64);
    const uint64_t digit = tl_digit(window & (~0ull >> 2), inverse, scale);
    const int limb = place / 64, offset = place % 64;
    const uint64_t low = digit << offset, over = offset ? digit >> (64 - offset) : 0;
    doubled.at[limb] |= low;
    if (limb + 1 < doubled.N) doubled.at[limb + 1] |= over;
    uint64_t below = 0;
    TL_LOOP for (int k = 0; k < high; ++k) {
      const uint64_t word = rest.at[k];
      rest.at[k] = (word << DIGIT) | (below >> (64 - DIGIT));
      below = word;
    }
    tl_next_rest<DIGIT>(rest.at + high, doubled.at, doubled.N, below, digit);
    uint64_t carry = 0;
    TL_LOOP for (int k = limb; k < doubled.N; ++k) {
      const uint64_t more = k == limb ? low : k == limb + 1 ? over : 0, sum = doubled.at[k] + more, total = sum + carry;
      carry = (uint64_t)(sum < more) | (uint64_t)(total < sum);
      doubled.at[k] = total;
    }
  }
}

#endif
