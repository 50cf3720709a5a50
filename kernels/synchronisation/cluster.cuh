// Thread blocks of a cluster, side by side in grid x: they run at once and reach each other's shared memory. One alone is a cluster too.
#pragma once
#include "bits/types.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define OF_CLUSTERS(SIZE)  // they begin with sm_90, and nothing before launches any
constexpr bool CLUSTERS = false;
#else
#define OF_CLUSTERS(SIZE) __cluster_dims__(SIZE, 1, 1)
constexpr bool CLUSTERS = true;
#endif

template <int SIZE>
struct Cluster {
    static constexpr bool SEVERAL = CLUSTERS && SIZE > 1;

    __device__ __forceinline__ static u32 rank() { return SEVERAL ? blockIdx.x % SIZE : 0; }

    // Says that this thread has done its part; none goes on from `wait` before all threads of the cluster have said so.
    __device__ __forceinline__ static void arrive() {
        if constexpr (SEVERAL) asm volatile("barrier.cluster.arrive.release.aligned;" ::"n"(SIZE) : "memory");
    }
    __device__ __forceinline__ static void wait() {
        if constexpr (SEVERAL)
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        else
            __syncthreads();
    }

    // Returns the address at which the block of this rank has what lies at `own` in this one.
    __device__ __forceinline__ static u32 at(const void* own, u32 rank) {
        const u32 place = (u32)__cvta_generic_to_shared(own);
        u32 address = place;
        if constexpr (SEVERAL) asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(place), "r"(rank));
        return address;
    }

    // Memory at such addresses.
    __device__ __forceinline__ static int load(u32 at) {  // of a signed byte
        int value;
        if constexpr (SEVERAL)
            asm volatile("ld.shared::cluster.s8 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
        else
            asm volatile("ld.shared.s8 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
        return value;
    }
    __device__ __forceinline__ static void store(u32 at, int value) {  // its lowest byte
        if constexpr (SEVERAL)
            asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(at), "r"(value) : "memory");
        else
            asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(value) : "memory");
    }
    __device__ __forceinline__ static u32 load_word(u32 at) {
        u32 value;
        if constexpr (SEVERAL)
            asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
        else
            asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
        return value;
    }
    __device__ __forceinline__ static void store_word(u32 at, u32 value) {
        if constexpr (SEVERAL)
            asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
        else
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
    }
};
