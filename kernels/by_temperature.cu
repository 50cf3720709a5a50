// What is measured of every copy at every temperature, from what is known of replicas: spinsim/engine/cuda/measuring.py.
typedef unsigned int u32;
typedef unsigned long long u64;

// Of two sums of a replica.
struct Linear { long long one, other, constant; };

struct Observables {
    Linear energy, magnetization;
    size_t stride;  // of sums, from sample to sample

    static __device__ __forceinline__ long long of(const Linear& x, long long one, long long other) {
        return x.one * one + x.other * other + x.constant;
    }
};

// Where everything stands in the buffer, in words of 64 bits, and how much there is of it.
struct Room {
    size_t energy, magnetization, holder, overlap, links, exchange;
    size_t replicas, compared, linked, words;  // of all samples; pairs of copies, those with links; words of the exchange
};

// A thread for each item of every kind. The sums are cleared. Overlaps begin as if no site or bond differed.
__global__ void sort_by_temperature(u64* to, Room room, u64* one, u64* other, Observables observables, double quantum,
                                    const int* holder, u32 replicas, const u64* exchange, u32 sites, u64 bonds) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < room.replicas) {
        const int replica = holder[i];
        const size_t from = i / replicas * observables.stride + replica;
        const long long first = one[from], second = other[from];
        one[from] = other[from] = 0;
        ((double*)to)[room.energy + i] = __dmul_rn((double)Observables::of(observables.energy, first, second), quantum);
        to[room.magnetization + i] = Observables::of(observables.magnetization, first, second);
        ((int*)(to + room.holder))[i] = replica;
    }
    if (i < room.compared) to[room.overlap + i] = sites;
    if (i < room.linked) to[room.links + i] = bonds;
    if (i < room.words) to[room.exchange + i] = exchange[i];
}
