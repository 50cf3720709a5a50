// Words of the next group on their way from global to shared memory while the present one is decided: each thread copies
// and reads its own, so that no barrier is needed.
#pragma once

typedef unsigned int u32;

// COHERENT copies bypass the first-level cache: another block may have written the words since this one last read them.
template <int WORDS, u32 THREADS, bool COHERENT>
struct Staged {
    u32 address;  // of this thread's first 16 bytes; those of one index lie side by side

    __device__ __forceinline__ explicit Staged(const void* shared)
        : address((u32)__cvta_generic_to_shared(shared) + 16 * threadIdx.x) {}

    __device__ __forceinline__ void copy(int k, const void* from) const {
        const u32 to = address + 16 * THREADS * k;
        if constexpr (COHERENT)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    }
    __device__ __forceinline__ void wait() const { asm volatile("cp.async.wait_all;" ::: "memory"); }
    __device__ __forceinline__ u32 load_word(int k, int w) const {
        u32 v;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address + 16 * THREADS * k + 4 * w));
        return v;
    }
    __device__ __forceinline__ uint4 load(int k) const {
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(address + 16 * THREADS * k));
        return v;
    }
};
