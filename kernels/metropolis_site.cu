// Site-packed Metropolis: 128 sites of one colour along x a group; replicas and samples in y and z. One launch a colour, or
// where all blocks are resident many half-sweeps a launch.
// state[((sample * replicas + replica) * 2 + colour) * rows * width + row * width + q] is a uint4 of 128 lanes.
#include "grid_barrier.cuh"
#include "group.cuh"
#include "slab.cuh"
#include "staged.cuh"

constexpr u32 THREADS = 128;

template <bool VALUE>
struct Constant { static constexpr bool value = VALUE; };

template <bool FIRST, typename A, typename B>
struct Either { using type = A; };
template <typename A, typename B>
struct Either<false, A, B> { using type = B; };

// Tables of every replica: planes[replica][plane][class] and always[replica][class] are 0 or all ones.
struct UniformTables {
    const u32 *always, *planes;
    const u64* thresholds;  // [replica][class]
};

// Division by a number known to the host: `inverse` is floor(2^32 / number) + 1, which may give one too many.
struct Divisor {
    u32 number, inverse;
    __device__ __forceinline__ u32 quotient(u32 n) const {
        if (number == 1) return n;
        const u32 q = __umulhi(n, inverse);
        return q * number > n ? q - 1 : q;
    }
};

// How warps share a lattice: a tile has `columns` neighbouring groups (a power of two that divides a row, at most 32) in
// 32 / columns pairs of rows. Warps take tiles in turn, so that what is read at one time lies together and all end at one
// time, though some multiprocessors are slower. Where all warps are resident and `split` is 1, tiles of even and odd number
// take one row of each pair.
struct Share {
    u32 columns, tiles, split;
    Divisor across, half;  // tiles side by side in a row, pairs of rows in a plane
};

// A thread's pair of rows, 2 p and 2 p + 1 of a plane, in one column of groups.
struct Pair {
    u32 q, z, even, odd;  // rows whose sites have even x and odd x
    bool there;

    __device__ __forceinline__ Pair(const Slab& slab, const Share& share, u32 tile, u32 first_parity) {
        const u32 lane = threadIdx.x & 31, chunk = share.across.quotient(tile), pairs = share.half.number * slab.depth;
        const u32 pair = chunk * (32 / share.columns) + lane / share.columns;
        q = (tile - chunk * share.across.number) * share.columns + lane % share.columns;
        there = pair < pairs;
        const u32 here = there ? pair : 0;
        z = share.half.quotient(here);
        const u32 first = 2 * (here - z * share.half.number), swapped = (z + first_parity) & 1;
        even = first + swapped, odd = first + 1 - swapped;
    }
    template <bool ODD>
    __device__ __forceinline__ u32 row() const { return ODD ? odd : even; }
};

template <int DIMENSION, bool SIGNED, bool FIELD, bool PLAIN, bool RESIDENT, int ROUNDS>
struct Site {
    using R = Rule<2 * DIMENSION, 3, FIELD, PLAIN, ROUNDS>;
    static constexpr int SPIN = R::SLOTS, SIGN = SPIN + 1, WORDS = SIGN + (SIGNED ? R::SLOTS : 0);
    using Words = Staged<WORDS, THREADS, RESIDENT>;  // slot 3 gets the group whose edge is shifted in
    uint4* mine;
    const uint4* other;
    const uint4 *before, *after;
    const uint4* negative;
    Slab slab;

    template <bool ODD>
    __device__ __forceinline__ u32 group(const Pair& at) const {
        return (at.z * slab.height + at.row<ODD>()) * slab.width + at.q;
    }

    // Starts copying what a group needs.
    template <bool ODD>
    __device__ __forceinline__ void stage(const Words& words, const Pair& at) const {
        const u32 y = at.row<ODD>(), z = at.z, q = at.q, width = slab.width, plane = slab.height * width;
        const u32 in_plane = y * width + q, g = group<ODD>(at);
        const bool bottom = y == 0, top = y + 1 == slab.height;
        const u32 beside = ODD ? (q + 1 < width ? 1 : 1 - width) : (q > 0 ? 0 : width) - 1;
        if constexpr (DIMENSION == 2) {
            words.copy(0, bottom ? before + q : other + (g - width));
            words.copy(1, top ? after + q : other + (g + width));
        } else {
            words.copy(0, other + (bottom ? g + plane - width : g - width));
            words.copy(1, other + (top ? g + width - plane : g + width));
            words.copy(4, z == 0 ? before + in_plane : other + (g - plane));
            words.copy(5, z + 1 == slab.depth ? after + in_plane : other + (g + plane));
        }
        words.copy(2, other + g);
        words.copy(3, other + (g + beside));
        words.copy(SPIN, mine + g);
        if constexpr (SIGNED) {
            const size_t slot = (size_t)plane * slab.depth;
#pragma unroll
            for (int k = 0; k < R::SLOTS; ++k) words.copy(SIGN + k, negative + k * slot + g);
        }
    }

    template <bool ODD>
    __device__ __forceinline__ Chances<R> weigh(const Words& words, uint4* kept, const UniformRows& always, bool there) const {
        words.wait();
        uint4 near[R::SLOTS];
#pragma unroll
        for (int k = 0; k < R::SLOTS; ++k)
            if (k != 3) near[k] = words.load(k);
        near[3] = shifted<ODD>(near[2], words.load_word(3, ODD ? 0 : 3));
        if constexpr (SIGNED) {
#pragma unroll
            for (int k = 0; k < R::SLOTS; ++k) near[k] = differing(near[k], words.load(SIGN + k));
        }
        return weigh_bonds<R>(near, words.load(SPIN), kept, always, make_uint4(~0u, ~0u, ~0u, ~0u), there);
    }
};

// The next tile of each (sample, replica); `before` is what the counters hold at the start of the launch.
struct Tickets {
    u32* next;
    u32 before;
};

template <int DIMENSION, bool SIGNED, bool FIELD, bool PLAIN, bool RESIDENT, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void sweep_site(uint4* state, Slab slab, Halo halo, Signs signs, UniformTables tables,
                                                         Share share, u32 first_sample, u32 first_replica, u64 half_sweep,
                                                         u32 half_sweeps, Tickets tickets, GridBarrier barrier, Key key) {
    using S = Site<DIMENSION, SIGNED, FIELD, PLAIN, RESIDENT, ROUNDS>;
    using R = typename S::R;
    extern __shared__ uint4 staged[];  // S::WORDS * THREADS
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 kept[THREADS];
    __shared__ uint4 plane_rows[R::BITS == 2 ? PLANES : PLANES << R::BITS >> 2];
    __shared__ u32 always_rows[1 << R::BITS];
    const u32 replica = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + replica, groups = (size_t)slab.width * slab.height * slab.depth;
    const u32 block = counter_block(first_sample + sample, first_replica + replica), first_group = slab.first_row * slab.width;
    const u64* const thresholds = tables.thresholds + (replica << R::BITS);
    const u32* const plane_table = tables.planes + (replica * PLANES << R::BITS);
    if constexpr (R::BITS == 2) {
        if (threadIdx.x < PLANES) plane_rows[threadIdx.x] = UniformSums::factors(plane_table + 4 * threadIdx.x, !(R::PLAIN && R::SLOTS == 4));
    } else {
        for (u32 i = threadIdx.x; i < PLANES << R::BITS; i += THREADS) ((u32*)plane_rows)[i] = plane_table[i];
    }
    for (u32 i = threadIdx.x; i < 1 << R::BITS; i += THREADS) always_rows[i] = tables.always[(replica << R::BITS) + i];
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    __syncthreads();
    using Planes = typename Either<R::BITS == 2, UniformSums, UniformRows>::type;
    const UniformRows always = {(u32)__cvta_generic_to_shared(always_rows)};
    const Planes planes = {(u32)__cvta_generic_to_shared(plane_rows)};
    const typename S::Words words(staged);
    const u32 blocks = gridDim.x * gridDim.y * gridDim.z, end = RESIDENT ? half_sweeps : 1;
    const u32 warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    const auto ticket = [&] { return (threadIdx.x & 31) ? 0 : atomicAdd(tickets.next + part, 1u) - tickets.before; };

    for (u32 done = 0; done < end; ++done, ++half_sweep) {
        const u32 colour = half_sweep & 1;
        uint4* const lattice = state + 2 * part * groups;
        const S site = {lattice + colour * groups, lattice + (1 - colour) * groups,
                        (colour ? halo.before[0] : halo.before[1]) + part * halo.stride,
                        (colour ? halo.after[0] : halo.after[1]) + part * halo.stride,
                        signs.negative + sample * signs.stride + colour * R::SLOTS * groups, slab};
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const auto pop = [&] { tail.template pop<true, ROUNDS>((u32*)site.mine, first_group, thresholds, block, time, key); };
        const auto update = [&](auto is_odd, const Pair& at, auto meanwhile) {
            constexpr bool ODD = decltype(is_odd)::value;
            const u32 g = site.template group<ODD>(at);
            const bool there = at.there;
            const Chances<R> c = site.template weigh<ODD>(words, kept + threadIdx.x, always, there);
            leave_to_chance(c, kept + threadIdx.x, site.mine + g, there, first_group + g, g, planes, block, time, key, tail,
                            meanwhile);
            if (tail.full()) pop();
        };
        if (RESIDENT && done > 0) barrier.wait(blocks, done);
        const auto pair = [&](u32 tile) {
            const u32 inside = min(tile, share.tiles - 1);
            return Pair(slab, share, RESIDENT && share.split ? inside >> 1 : inside, colour + slab.parity);
        };
        u32 tile = RESIDENT ? warp : __shfl_sync(~0u, ticket(), 0);
        Pair at = pair(tile);
        if (RESIDENT && share.split) {
            if (warp < share.tiles && (warp & 1)) {
                site.template stage<true>(words, at);
                update(Constant<true>{}, at, [] {});
            } else if (warp < share.tiles) {
                site.template stage<false>(words, at);
                update(Constant<false>{}, at, [] {});
            }
        } else {
            site.template stage<false>(words, at);
            while (tile < share.tiles) {
                const u32 drawn = RESIDENT ? share.tiles : ticket();
                update(Constant<false>{}, at, [&] { site.template stage<true>(words, at); });
                tile = __shfl_sync(~0u, drawn, 0);
                const Pair next = pair(tile);
                update(Constant<true>{}, at, [&] { site.template stage<false>(words, next); });
                at = next;
            }
        }
        words.wait();
        while (!tail.empty()) pop();
        if (RESIDENT) barrier.arrive();
    }
}
