// CUDA's built-ins for a host compiler: the threads of a launch run one after the other.
#define TL_HOST
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __restrict__ __restrict
struct tl_dim3 { unsigned x, y, z; };
static thread_local tl_dim3 blockIdx, blockDim, threadIdx, gridDim;

// Compiled without contraction, so that each is one rounding.
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __ll2float_rn(int64_t x) { return (float)x; }
static inline float __ull2float_rn(uint64_t x) { return (float)x; }
static inline double __ll2double_rn(int64_t x) { return (double)x; }
static inline double __ull2double_rn(uint64_t x) { return (double)x; }
static inline uint32_t atomicOr(uint32_t *place, uint32_t value) { uint32_t old = *place; *place |= value; return old; }
