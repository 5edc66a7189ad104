// CUDA's built-ins for a host compiler. The threads of a block take turns: each runs until it waits for others.
#define TL_HOST
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
// one block runs at a time
#define __shared__ static
struct tl_dim3 { unsigned x, y, z; };
static tl_dim3 blockIdx, blockDim, threadIdx, gridDim;

// A thread of the block: a stack of its own, and what it waits for.
enum tl_state { TL_READY, TL_AT_WARP, TL_AT_BLOCK, TL_DONE };
struct tl_thread { ucontext_t context; jmp_buf place; bool begun; tl_state state; uint64_t slot; };
enum { TL_THREADS = 1024, TL_STACK = 1 << 17 };
static tl_thread tl_block[TL_THREADS];
static jmp_buf tl_scheduler;
static void (*tl_body)(void);

// Contexts begin the stacks; jumps between them afterwards need no system call.
static __attribute__((noinline)) void tl_wait(tl_state what) {
  tl_thread *me = &tl_block[threadIdx.x];
  me->state = what;
  if (!_setjmp(me->place)) _longjmp(tl_scheduler, 1);
}
static __attribute__((noinline)) void tl_resume(tl_thread *thread) {
  if (_setjmp(tl_scheduler)) return;
  if (thread->begun) _longjmp(thread->place, 1);
  thread->begun = true;
  setcontext(&thread->context);
}
static inline void __syncthreads(void) { tl_wait(TL_AT_BLOCK); }
static inline void __syncwarp(void) { tl_wait(TL_AT_WARP); }
static inline uint64_t tl_exchange(uint64_t word, unsigned mask) {
  tl_block[threadIdx.x].slot = word;
  __syncwarp();
  uint64_t other = tl_block[threadIdx.x ^ mask].slot;
  __syncwarp();
  return other;
}
static inline uint32_t __shfl_xor_sync(unsigned, uint32_t x, int mask) { return (uint32_t)tl_exchange(x, (unsigned)mask); }
static inline uint64_t __shfl_xor_sync(unsigned, uint64_t x, int mask) { return tl_exchange(x, (unsigned)mask); }

// Threads that wait in ``first`` to ``end`` go on where all of them that are not done have come to the same place.
static bool tl_release(unsigned first, unsigned end, tl_state what) {
  unsigned waiting = 0, alive = 0;
  for (unsigned t = first; t < end; ++t) {
    waiting += tl_block[t].state == what;
    alive += tl_block[t].state != TL_DONE;
  }
  if (!waiting || waiting != alive) return false;
  for (unsigned t = first; t < end; ++t)
    if (tl_block[t].state == what) tl_block[t].state = TL_READY;
  return true;
}

static void tl_enter(void) {
  tl_body();
  tl_block[threadIdx.x].state = TL_DONE;
  _longjmp(tl_scheduler, 1);
}

// Runs a block whose threads wait for each other, in ascending order of the threads or in descending order: words that
// depend on it have a barrier missing. False where threads wait for what never comes.
static bool tl_run_block(unsigned size, bool descending) {
  static char *stacks = (char *)malloc((size_t)TL_THREADS * TL_STACK);
  for (unsigned t = 0; t < size; ++t) {
    tl_thread *thread = &tl_block[t];
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stacks + (size_t)t * TL_STACK;
    thread->context.uc_stack.ss_size = TL_STACK;
    thread->context.uc_link = NULL;
    thread->begun = false;
    thread->state = TL_READY;
    makecontext(&thread->context, tl_enter, 0);
  }
  for (;;) {
    for (unsigned k = 0; k < size; ++k) {
      unsigned t = descending ? size - 1 - k : k;
      if (tl_block[t].state != TL_READY) continue;
      threadIdx.x = t;
      tl_resume(&tl_block[t]);
    }
    bool released = false, done = true;
    for (unsigned first = 0; first < size; first += 32)
      released |= tl_release(first, first + 32 < size ? first + 32 : size, TL_AT_WARP);
    released |= tl_release(0, size, TL_AT_BLOCK);
    for (unsigned t = 0; t < size; ++t) done &= tl_block[t].state == TL_DONE;
    if (done) return true;
    if (!released) return false;
  }
}

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
