// One site of a replica-packed lattice: 128 replicas updated at once, as in spinsim/engine/moves/metropolis/replica_packed/cpu_sweep.py.
// A lattice's words lie in batch order, so that sites updated together stand side by side.
#pragma once
#include "metropolis/group.cuh"

// The sites of one colour and parity of degree (spinsim/engine/moves/metropolis/replica_packed/batches.py).
struct Batch { u32 first, size, slots, base, parity, offset; };
CHECK_STRUCT(Batch, engine.moves.metropolis.replica_packed.cuda_lattices.BATCH);

struct Model {
    const u32* order;          // [place]: its site
    const u32* neighbour;      // [batch.offset + slot * batch.size + q]: places
    const u8* signs;           // likewise: 1 where equal spins leave the bond unsatisfied
    size_t sign_stride;        // from sample to sample, 0 where all share them
    const uint4* near;         // up to 7 slots: [2 * place], eight words, the site and 16 times its neighbours' places
    const uint2* negative;     // [place]: bytes 0xff where `signs` is 1
    size_t negative_stride;
};
CHECK_STRUCT(Model, engine.moves.metropolis.replica_packed.cuda_lattices.MODEL);

struct Tables {
    const uint4* always;       // [part][parity][class]
    const uint4* planes;       // [part][parity][plane][class]
    const u64* thresholds;     // [part][parity][class][lane]
    const uint4* lanes;        // [block]: lanes in use
    size_t stride;             // parts from sample to sample: its blocks, 0 where all samples share them

    __device__ __forceinline__ size_t part(u32 sample, u32 block) const { return sample * stride + block; }
};
CHECK_STRUCT(Tables, engine.moves.metropolis.replica_packed.cuda_lattices.TABLES);

static_assert(HOST(engine.moves.metropolis.replica_packed.cuda_lattices.PLACE) == sizeof(uint4), "a place holds 128 lanes");
static_assert(4 * (1 + HOST(engine.moves.metropolis.replica_packed.cuda_lattices.SLOTS)) == 2 * sizeof(uint4), "a record is two quadruples");

// A site's number, its neighbours' places and the signs of its bonds; fetched one site ahead, so that nothing waits for it.
struct Record {
    uint4 head, rest;
    uint2 negative;

    // Volatile, so that it stays where it is written: earlier it would take registers, later the warp would wait.
    __device__ __forceinline__ void fetch(const Model& model, u32 sample, u32 place) {
        const uint4* near = model.near + 2 * place;
        const uint2* signs = model.negative + sample * model.negative_stride + place;
        asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(head.x), "=r"(head.y), "=r"(head.z), "=r"(head.w) : "l"(near));
        asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(rest.x), "=r"(rest.y), "=r"(rest.z), "=r"(rest.w) : "l"(near + 1));
        asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(negative.x), "=r"(negative.y) : "l"(signs));
    }
    __device__ __forceinline__ u32 site() const { return head.x; }
    __device__ __forceinline__ u32 offset(int k) const { return k < 3 ? word_of(head, 1 + k) : word_of(rest, k - 3); }
    // The sign's byte, 0 or 0xff, in all bytes of a word.
    __device__ __forceinline__ u32 sign(int k) const {
        return __byte_perm(k < 4 ? negative.x : negative.y, 0, 0x1111 * (k & 3));
    }
};

__device__ __forceinline__ uint4& at_offset(uint4* lattice, u32 offset) { return *(uint4*)((char*)lattice + offset); }

// Unsatisfied bonds of any number of slots, bond by bond.
template <int COUNT_BITS>
__device__ __forceinline__ void count_slots(u32 (&count)[COUNT_BITS][4], const uint4& spin, const uint4* lattice,
                                            const u32* neighbour, const u8* signs, const Batch& batch) {
#pragma unroll
    for (int b = 0; b < COUNT_BITS; ++b)
#pragma unroll
        for (int w = 0; w < 4; ++w) count[b][w] = 0u - (batch.base >> b & 1);
    for (u32 k = 0; k < batch.slots; ++k) {
        const uint4 near = lattice[neighbour[(size_t)k * batch.size]];
        const u32 sign = 0u - signs[(size_t)k * batch.size];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 carry = word_of(spin, w) ^ word_of(near, w) ^ sign;
#pragma unroll
            for (int b = 0; b < COUNT_BITS; ++b) {
                const u32 low = count[b][w];
                count[b][w] = low ^ carry;
                carry &= low;
            }
        }
    }
}

// A thread's sites, one after another: `ahead` names the next one's place, `weigh` takes it. FAR: the lattice lies in global
// memory.
template <typename R, bool FAR>
struct Sites {
    const Batch& batch;
    const Model& model;
    u32 sample;
    uint4* shelf;  // where the words wait while the planes are compared, if FAR; else in their place
    Record record = {};
    u32 place = 0;

    __device__ __forceinline__ uint4* kept(uint4* own) const { return FAR ? shelf : own; }

    __device__ __forceinline__ void ahead(u32 next) {
        place = next;
        if constexpr (R::SLOTS > 0) record.fetch(model, sample, next);
    }

    __device__ __forceinline__ u32 site() const {
        if constexpr (R::SLOTS > 0) {
            return record.site();
        } else {
            return model.order[place];
        }
    }

    template <typename Always>
    __device__ __forceinline__ Chances<R> weigh(uint4* lattice, const Always& always, const uint4& used, bool there) {
        uint4* const own = lattice + place;
        if constexpr (R::SLOTS > 0) {
            uint4 wanted[R::SLOTS];
#pragma unroll
            for (int k = 0; k < R::SLOTS; ++k) wanted[k] = differing(at_offset(lattice, record.offset(k)), record.sign(k));
            const uint4 spin = *own;
            if constexpr (!FAR) __syncwarp();  // threads past the end read the last site, which its own thread writes next
            return weigh_bonds<R>(wanted, spin, kept(own), always, used, there);
        } else {
            const uint4 spin = *own;
            const u32 q = place - batch.first;
            Chances<R> c;
            u32 count[R::COUNT_BITS][4], certain[4];
            count_slots<R::COUNT_BITS>(count, spin, lattice, model.neighbour + batch.offset + q,
                                       model.signs + sample * model.sign_stride + batch.offset + q, batch);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                u32 of_word[R::COUNT_BITS];
#pragma unroll
                for (int b = 0; b < R::COUNT_BITS; ++b) of_word[b] = count[b][w];
                c.set(of_word, word_of(spin, w), w, certain);
            }
            c.add_certain(always, certain);
            if constexpr (!FAR) __syncwarp();  // as above
            flip_certain(c, kept(own), spin, certain, used, there);
            return c;
        }
    }
};

// Which 32 places a warp takes after those from `first` on. Drawn early and taken late, as a ticket comes from far.
struct Stride {
    u32 places;
    __device__ __forceinline__ u32 draw(u32 first) const { return first + places; }
    __device__ __forceinline__ u32 number_of(u32 drawn) const { return drawn; }
};

// The calling warp's places: i = first, then what `order` says, below end; i + k for its k-th thread. `lattice` and the rows
// of `always` and `planes`, those of the batch's parity, may lie in shared memory, where `lanes` lies. `ready` is called before
// the lattice is read; `tally` is told what flips by chance.
template <typename R, bool FAR, typename Order, typename Always, typename Rows, typename Thresholds, typename Ready,
          typename Tally = NoTally>
__device__ __forceinline__ void update_sites(Sites<R, FAR> sites, uint4* lattice, u32 first, u32 end, const Order& order,
                                             const Always& always, const Rows& planes, const Thresholds& thresholds,
                                             const SharedRows& lanes, u32 block, HalfSweep time, const Key& key,
                                             Tail<R::BITS>& tail, Ready ready, Tally&& tally = {}) {
    const u32 mine = threadIdx.x & 31;
    sites.ahead(min(first + mine, end - 1));
    ready();
    while (__any_sync(~0u, first < end)) {  // by a vote, as votes within are slow where threads may part
        const u32 drawn = order.draw(first), place = first + mine;
        const bool there = place < end;
        const Chances<R> c = sites.weigh(lattice, always, lanes.load(0), there);
        uint4* const own = lattice + place;
        const u32 site = sites.site();
        const Calls<R::ROUNDS> calls(site, block, time, key);
        leave_to_chance(c, sites.kept(own), own, there, site, place, planes, calls, tail, [&] {
            first = order.number_of(drawn);
            sites.ahead(min(first + mine, end - 1));
        }, tally);
        if (tail.full()) tail.template pop<R::ROUNDS, false>((u32*)lattice, thresholds, block, time, key, tally);
    }
    while (!tail.empty()) tail.template pop<R::ROUNDS, true>((u32*)lattice, thresholds, block, time, key, tally);
}
