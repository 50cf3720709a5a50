// CUDA's language on one thread of a CPU: the threads of a block are fibers that take turns at barriers, blocks run one by one, those of
// a cluster together from its first barrier on.
#include <sched.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static
#define __grid_constant__

struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };

struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) double2 { double x, y; };
struct uint3 { unsigned x, y, z; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }

static uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

constexpr unsigned WARP = 32;
constexpr size_t STACK = 1 << 17, SHARED = 232448, CLUSTER = 8;
alignas(128) static char dynamic_shared[CLUSTER][SHARED];  // of the blocks of a cluster

// Fibers wait until all that have not ended have arrived.
struct Barrier {
    unsigned size = 0, arrived = 0, phase = 0;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    bool ended = false;
    unsigned phase = 0;  // of the cluster's barrier when it arrived there
};

static ucontext_t scheduler;
static std::deque<Fiber> fibers;  // which stay where they are
static Barrier cluster_barrier;
static std::vector<Barrier> block_barriers, warp_barriers;
static Barrier named_barriers[CLUSTER][16];  // of blocks, by number
static std::vector<uint64_t> words;  // that threads of a warp show each other
static void (*body)(void**);
static void** arguments;

static unsigned current, begun;  // the fiber whose turn it is, of the cluster's; blocks that have begun

static unsigned thread() { return current; }
static unsigned rank() { return current / blockDim.x; }
static char* shared_memory() { return dynamic_shared[rank()]; }

static void yield() { swapcontext(&fibers[current].context, &scheduler); }

static void pass(Barrier& barrier) {
    if (barrier.arrived >= barrier.size) barrier.arrived = 0, ++barrier.phase;
}

static unsigned arrive(Barrier& barrier) {
    const unsigned phase = barrier.phase;
    ++barrier.arrived;
    pass(barrier);
    return phase;
}

static void wait(std::vector<Barrier>& barriers, unsigned number) {  // which grow meanwhile
    const unsigned phase = arrive(barriers[number]);
    while (barriers[number].phase == phase) yield();
}

static void leave(Barrier& barrier) {
    --barrier.size;
    if (barrier.size) pass(barrier);
}

static void enter() {
    body(arguments);
    fibers[current].ended = true;
    leave(cluster_barrier);
    leave(block_barriers[rank()]);
    leave(warp_barriers[current / WARP]);
    setcontext(&scheduler);
}

// Has the next block of a cluster begin.
static void begin_block() {
    const unsigned threads = blockDim.x, first = begun++ * threads;
    memset(dynamic_shared[begun - 1], 0x5a, SHARED);
    cluster_barrier.size += threads;
    block_barriers.push_back({threads});
    warp_barriers.resize(max<size_t>(warp_barriers.size(), (first + threads + WARP - 1) / WARP));
    words.resize(first + threads + WARP);
    while (fibers.size() < first + threads) fibers.emplace_back();
    for (unsigned t = first; t < first + threads; ++t) {
        ++warp_barriers[t / WARP].size;
        Fiber& fiber = fibers[t];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        fiber.ended = false;
        makecontext(&fiber.context, enter, 0);
    }
}

static void run_blocks(uint3 first) {
    cluster_barrier = {}, begun = 0;
    for (auto& of_block : named_barriers) std::fill(std::begin(of_block), std::end(of_block), Barrier{});
    block_barriers.clear(), warp_barriers.clear(), words.clear();
    begin_block();
    for (unsigned left = 1; left;) {
        left = 0;
        for (unsigned t = 0; t < begun * blockDim.x; ++t) {
            if (fibers[t].ended) continue;
            current = t, threadIdx = {t % blockDim.x, 0, 0}, blockIdx = {first.x + t / blockDim.x, first.y, first.z};
            swapcontext(&scheduler, &fibers[t].context);
            left += !fibers[t].ended;
        }
    }
}

template <typename... Types, size_t... Numbers>
static void unpack(void (*kernel)(Types...), void** values, std::index_sequence<Numbers...>) {
    kernel(*(Types*)values[Numbers]...);
}

template <typename... Types>
static void call(void (*kernel)(Types...), void** values) {
    unpack(kernel, values, std::index_sequence_for<Types...>());
}

static void launch(void (*kernel)(void**), void** values, const unsigned* grid, unsigned threads) {
    body = kernel, arguments = values;
    blockDim = {threads, 1, 1}, gridDim = {grid[0], grid[1], grid[2]};
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; x += begun) run_blocks({x, y, z});
}

static uint64_t* warp_words() { return words.data() + thread() / WARP * WARP; }
static void wait_warp() { wait(warp_barriers, thread() / WARP); }

// Every thread shows `value`; what `read` makes of the warp's values.
template <typename T, typename Read>
static T exchange(T value, Read read) {
    static_assert(sizeof(T) <= 8, "words have up to eight bytes");
    memcpy(warp_words() + threadIdx.x % WARP, &value, sizeof(T));
    wait_warp();
    const T found = read([all = warp_words()](unsigned lane) {
        T shown;
        memcpy(&shown, all + lane, sizeof(T));
        return shown;
    });
    wait_warp();
    return found;
}

// Shared memory has addresses of its own, of 32 bits, within that of the cluster.
static char* shared_at(unsigned address) { return dynamic_shared[0] + (int)address; }

}  // namespace emulation

static inline void __syncthreads() { emulation::wait(emulation::block_barriers, emulation::rank()); }
static inline int __syncthreads_or(int predicate) {
    uint64_t* const all = emulation::words.data() + emulation::thread() - threadIdx.x;
    all[threadIdx.x] = predicate != 0;
    __syncthreads();
    uint64_t any = 0;
    for (unsigned t = 0; t < blockDim.x; ++t) any |= all[t];
    __syncthreads();
    return any != 0;
}
static inline void __syncwarp(unsigned = ~0u) { emulation::wait_warp(); }
template <typename T> static T __shfl_sync(unsigned, T value, unsigned lane) {
    return emulation::exchange(value, [=](auto of) { return of(lane % 32); });
}
template <typename T> static T __shfl_xor_sync(unsigned, T value, unsigned mask) {
    const unsigned lane = threadIdx.x % 32;
    return emulation::exchange(value, [=](auto of) { return of(lane ^ mask); });
}
template <typename T> static T __shfl_down_sync(unsigned, T value, unsigned by) {
    const unsigned lane = threadIdx.x % 32;
    return emulation::exchange(value, [=](auto of) { return of(lane + by < 32 ? lane + by : lane); });
}
static inline unsigned __ballot_sync(unsigned, int predicate) {
    return emulation::exchange((unsigned)(predicate != 0), [](auto of) {
        unsigned votes = 0;
        for (int i = 0; i < 32; ++i) votes |= of(i) << i;
        return votes;
    });
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
static inline unsigned __reduce_add_sync(unsigned, unsigned value) {
    return emulation::exchange(value, [](auto of) {
        unsigned sum = 0;
        for (int i = 0; i < 32; ++i) sum += of(i);
        return sum;
    });
}
static inline size_t __cvta_generic_to_shared(const void* p) { return (size_t)((const char*)p - emulation::dynamic_shared[0]); }
template <typename T> static T __ldg(const T* p) { return *p; }
template <typename T> static T __ldcg(const T* p) { return *p; }
template <typename T> static T atomicAdd(T* p, T value) { const T old = *p; *p += value; return old; }
template <typename T> static T atomicAnd(T* p, T value) { const T old = *p; *p &= value; return old; }
template <typename T> static T atomicXor(T* p, T value) { const T old = *p; *p ^= value; return old; }
template <typename T> static T atomicMax(T* p, T value) { const T old = *p; *p = old < value ? value : old; return old; }
template <typename T> static T atomicOr(T* p, T value) { const T old = *p; *p |= value; return old; }
template <typename T> static T atomicCAS(T* p, T expected, T value) { const T old = *p; if (old == expected) *p = value; return old; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((uint64_t)high << 32) | low) >> (by & 31));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t both = (uint64_t)b << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned pick = selector >> 4 * i & 15;
        const unsigned byte = both >> 8 * (pick & 7) & 255;
        out |= (pick & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return out;
}
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline unsigned long long __double2ull_rz(double a) { return (unsigned long long)a; }
static inline int __float2int_rd(float a) { return a < 0x1p31f ? a > -0x1p31f ? (int)std::floor(a) : INT32_MIN : INT32_MAX; }
static inline double __longlong_as_double(long long a) { double d; memcpy(&d, &a, 8); return d; }
static inline float __uint_as_float(unsigned a) { float f; memcpy(&f, &a, 4); return f; }

// PTX by mnemonic: results first, then operands, as an asm statement lists them.
static inline void ptx_mov_u32(unsigned& lane) { lane = threadIdx.x % 32; }  // of %laneid, the only special register used
static inline void ptx_lop3_b32(unsigned& out, unsigned a, unsigned b, unsigned c, int table) {
    out = 0;
    for (int i = 0; i < 8; ++i)
        if (table >> i & 1) out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
}
// The lattice barrier and tickets: blocks run one by one, so that each finds itself alone.
static inline void ptx_red_release_gpu_global_add_u32(unsigned* p) { ++*p; }
static inline void ptx_ld_relaxed_gpu_global_u32(unsigned& now, const unsigned* p) { now = *p; }
static inline void ptx_ld_acquire_gpu_global_u32(unsigned& now, const unsigned* p) { now = *p; }
// Words that other blocks write: these begin when one of them is first waited for.
static inline void ptx_st_relaxed_gpu_global_u64(unsigned long long* p, unsigned long long value) { *p = value; }
static inline void ptx_ld_relaxed_gpu_global_u64(unsigned long long& now, const unsigned long long* p) {
    if (blockIdx.x - emulation::rank() + emulation::begun < gridDim.x) emulation::begin_block();
    emulation::yield();
    now = *p;
}
// Flags between devices, whose kernels run in other threads.
static inline void ptx_atom_acq_rel_gpu_global_add_u32(unsigned& before, unsigned* p) { before = (*p)++; }
static inline void ptx_fence_acq_rel_sys() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
static inline void ptx_fence_acq_rel_gpu() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
static inline void ptx_st_relaxed_sys_global_u32(unsigned* p, unsigned now) { __atomic_store_n(p, now, __ATOMIC_RELAXED); }
static inline void ptx_ld_acquire_sys_global_u32(unsigned& now, const unsigned* p) { now = __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void ptx_ld_relaxed_sys_global_u32(unsigned& now, const unsigned* p) {
    emulation::yield();
    sched_yield();
    now = __atomic_load_n(p, __ATOMIC_RELAXED);
}
[[noreturn]] static inline void __trap() { abort(); }
static inline void ptx_prmt_b32(int& out, unsigned word, unsigned selector) { out = (int)__byte_perm(word, 0, selector); }
static inline void ptx_lg2_approx_ftz_f32(float& out, float x) { out = log2f(x); }
static inline void ptx_ex2_approx_ftz_f32(float& out, float x) { out = exp2f(x); }
static inline void ptx_ld_shared_u32(unsigned& v, unsigned address) { memcpy(&v, emulation::shared_at(address), 4); }
static inline void ptx_ld_shared_v4_u32(unsigned& x, unsigned& y, unsigned& z, unsigned& w, unsigned address) {
    uint4 v;
    memcpy(&v, emulation::shared_at(address), 16);
    x = v.x, y = v.y, z = v.z, w = v.w;
}
static inline void ptx_ld_global_nc_v4_u32(unsigned& x, unsigned& y, unsigned& z, unsigned& w, const void* p) {
    uint4 v;
    memcpy(&v, p, 16);
    x = v.x, y = v.y, z = v.z, w = v.w;
}
static inline void ptx_ld_global_nc_v2_u32(unsigned& x, unsigned& y, const void* p) {
    memcpy(&x, p, 4), memcpy(&y, (const char*)p + 4, 4);
}
static inline void ptx_cp_async_ca_shared_global(unsigned address, const void* from) {
    memcpy(emulation::shared_at(address), from, 16);
}
static inline void ptx_cp_async_ca_shared_global_8(unsigned address, const void* from) {
    memcpy(emulation::shared_at(address), from, 8);
}
static inline void ptx_cp_async_cg_shared_global(unsigned address, const void* from) {
    memcpy(emulation::shared_at(address), from, 16);
}
// Hints for the second-level cache say nothing here.
static inline void ptx_createpolicy_fractional_L2(unsigned long long& policy) { policy = 0; }
static inline void ptx_cp_async_cg_shared_global_L2(unsigned address, const void* from, unsigned long long) {
    memcpy(emulation::shared_at(address), from, 16);
}
// With a number of bytes behind: so many are read, the rest is zero.
static inline void copy_async(unsigned address, const void* from, int size, int used) {
    memset(emulation::shared_at(address), 0, size);
    memcpy(emulation::shared_at(address), from, used);
}
static inline void ptx_cp_async_cg_shared_global(unsigned address, const void* from, int used) {
    copy_async(address, from, 16, used);
}
static inline void ptx_cp_async_ca_shared_global(unsigned address, const void* from, int size, int used) {
    copy_async(address, from, size, used);
}
static inline void ptx_cp_async_wait_all() {}
static inline void ptx_cp_async_commit_group() {}
static inline void ptx_cp_async_wait_group(int) {}
// Clusters of blocks; the first arrival says of how many.
static inline void ptx_barrier_cluster_arrive_release_aligned(int size) {
    while ((int)emulation::begun < size) emulation::begin_block();
    emulation::fibers[emulation::current].phase = emulation::arrive(emulation::cluster_barrier);
}
static inline void ptx_barrier_cluster_wait_acquire_aligned() {
    while (emulation::cluster_barrier.phase == emulation::fibers[emulation::current].phase) emulation::yield();
}
static inline void ptx_bar_arrive(int number, int threads) {
    emulation::Barrier& barrier = emulation::named_barriers[emulation::rank()][number];
    barrier.size = threads;
    emulation::arrive(barrier);
}
static inline void ptx_bar_sync(int number, int threads) {
    emulation::Barrier& barrier = emulation::named_barriers[emulation::rank()][number];
    barrier.size = threads;
    for (const unsigned phase = emulation::arrive(barrier); barrier.phase == phase;) emulation::yield();
}
static inline void ptx_mapa_shared(unsigned& out, unsigned address, unsigned rank) {
    out = address % emulation::SHARED + rank * emulation::SHARED;
}
static inline void ptx_ld_shared_s8(int& value, unsigned address) { value = *(const int8_t*)emulation::shared_at(address); }
static inline void ptx_st_shared_u8(unsigned address, int value) { *emulation::shared_at(address) = (char)value; }
static inline void ptx_ld_shared_u16(unsigned& value, unsigned address) { value = *(const uint16_t*)emulation::shared_at(address); }
static inline void ptx_bfind_u32(unsigned& bit, unsigned word) { bit = word ? 31 - __builtin_clz(word) : ~0u; }
static inline void ptx_st_shared_u16(unsigned address, unsigned value) { *(uint16_t*)emulation::shared_at(address) = (uint16_t)value; }
static inline void ptx_st_shared_u32(unsigned address, unsigned value) { memcpy(emulation::shared_at(address), &value, 4); }
// Of the cluster, in which such addresses are: a byte or a word.
static inline void ptx_ld_shared(int& value, unsigned address) { ptx_ld_shared_s8(value, address); }
static inline void ptx_ld_shared(unsigned& value, unsigned address) { ptx_ld_shared_u32(value, address); }
static inline void ptx_st_shared(unsigned address, int value) { ptx_st_shared_u8(address, value); }
static inline void ptx_st_shared(unsigned address, unsigned value) { ptx_st_shared_u32(address, value); }
// Tensor cores: lane 4 g + t holds columns 2 t, 2 t + 1 of C's row g, column t of A's, row t and column g of B.
static inline void ptx_mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(double& c0, double& c1, double a, double b) {
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    double x[4];
    emulation::exchange(a, [&](auto of) {
        for (unsigned p = 0; p < 4; ++p) x[p] = of(4 * g + p);
        return a;
    });
    emulation::exchange(b, [&](auto of) {
        for (unsigned p = 0; p < 4; ++p) c0 = std::fma(x[p], of(8 * t + p), c0), c1 = std::fma(x[p], of(8 * t + 4 + p), c1);
        return b;
    });
}
// Lane 4 g + t holds columns 2 t, 2 t + 1 of C's rows g and g + 8; bytes 4 t to 4 t + 3, and 16 more, of A's rows g, g + 8 and of B's
// column g.
static inline void ptx_mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(int& c0, int& c1, int& c2, int& c3, unsigned a0, unsigned a1,
                                                                       unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int8_t row[2][32], column[2][32];
    const auto share = [](uint64_t mine, auto take) {
        emulation::exchange(mine, [&](auto of) {
            take(of);
            return mine;
        });
    };
    const auto gather = [](int8_t* to, auto of, unsigned first) {  // what the four lanes from this one on have of a row
        for (unsigned lane = 0; lane < 4; ++lane) {
            const uint64_t both = of(first + lane);
            memcpy(to + 4 * lane, &both, 4), memcpy(to + 16 + 4 * lane, (const char*)&both + 4, 4);
        }
    };
    share((uint64_t)a2 << 32 | a0, [&](auto of) { gather(row[0], of, 4 * g); });
    share((uint64_t)a3 << 32 | a1, [&](auto of) { gather(row[1], of, 4 * g); });
    share((uint64_t)b1 << 32 | b0, [&](auto of) { gather(column[0], of, 8 * t), gather(column[1], of, 8 * t + 4); });
    for (unsigned k = 0; k < 32; ++k) {
        c0 += row[0][k] * column[0][k], c1 += row[0][k] * column[1][k];
        c2 += row[1][k] * column[0][k], c3 += row[1][k] * column[1][k];
    }
}
// The same tile of C; words t and t + 4 of A's rows g, g + 8 and of B's column g: ones that both have are counted.
static inline void ptx_mma_sync_aligned_m16n8k256_row_col_s32_b1_b1_s32_and_popc(int& c0, int& c1, int& c2, int& c3, unsigned a0,
                                                                                 unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                                                                 unsigned b1) {
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    unsigned row[2][8], column[2][8];
    const auto share = [](unsigned low, unsigned high, auto take) {
        emulation::exchange((uint64_t)high << 32 | low, [&](auto of) {
            take(of);
            return (uint64_t)0;
        });
    };
    const auto gather = [](unsigned* to, auto of, unsigned first) {
        for (unsigned k = 0; k < 4; ++k) to[k] = (unsigned)of(first + k), to[k + 4] = (unsigned)(of(first + k) >> 32);
    };
    share(a0, a2, [&](auto of) { gather(row[0], of, 4 * g); });
    share(a1, a3, [&](auto of) { gather(row[1], of, 4 * g); });
    share(b0, b1, [&](auto of) { gather(column[0], of, 8 * t), gather(column[1], of, 8 * t + 4); });
    for (unsigned k = 0; k < 8; ++k) {
        c0 += __popc(row[0][k] & column[0][k]), c1 += __popc(row[0][k] & column[1][k]);
        c2 += __popc(row[1][k] & column[0][k]), c3 += __popc(row[1][k] & column[1][k]);
    }
}
