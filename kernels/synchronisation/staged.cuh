// Words of the next group on their way from global to shared memory while the present one is decided: each thread copies
// and reads its own, so that no barrier is needed.
#pragma once
#include "bits/types.cuh"

// Starts copying 16 bytes that other threads have no use for: they pass by registers and the first-level cache.
__device__ __forceinline__ void copy_once(u32 address, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

template <u32 THREADS>
struct Staged {
    u32 address;  // of this thread's first 16 bytes; those of one index lie side by side

    __device__ __forceinline__ explicit Staged(const void* shared)
        : address((u32)__cvta_generic_to_shared(shared) + 16 * threadIdx.x) {}

    __device__ __forceinline__ void copy(int k, const void* from) const {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address + 16 * THREADS * k), "l"(from) : "memory");
    }
    __device__ __forceinline__ void copy_once(int k, const void* from) const { ::copy_once(address + 16 * THREADS * k, from); }
    __device__ __forceinline__ void wait() const { wait_for_copies(); }
    __device__ __forceinline__ uint4 load(int k) const {
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(address + 16 * THREADS * k));
        return v;
    }
};
