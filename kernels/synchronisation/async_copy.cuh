// Copies from global to shared memory that go on while the thread computes (cp.async).
#pragma once

// Starts copying BYTES from memory, or zeros where `inside` does not hold; nothing is read then.
template <int BYTES>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what the hardware copies");
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int used = inside ? BYTES : 0;
    if constexpr (BYTES == 16)  // past the first-level cache
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(used) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(BYTES), "r"(used)
                     : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all groups of this thread but the LATEST.
template <int LATEST>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
}
