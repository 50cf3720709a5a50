// Site-packed Metropolis: 128 sites of one colour along x a group; replicas and samples in y and z. One launch a colour, or
// where all blocks are resident many half-sweeps a launch.
// state[((sample * replicas + replica) * 2 + colour) * rows * width + row * width + q] is a uint4 of 128 lanes.
#include "grid_barrier.cuh"
#include "group.cuh"
#include "slab.cuh"
#include "staged.cuh"

constexpr u32 THREADS = 128;

// Tables of every replica: planes[replica][plane][class] and always[replica][class] are 0 or all ones.
struct UniformTables {
    const u32 *always, *planes;
    const u64* thresholds;  // [replica][class]
};

// How threads share rows of one parity, counted plane by plane: a block has a tile of `columns` neighbouring groups (a power
// of two that divides a row) in THREADS / columns rows, and moves on by as many rows `steps` times.
// More than one step needs planes of at least that many rows of one parity.
struct Share { u32 columns, tiles, steps; };  // tiles side by side in a row

struct Walk {
    u32 q, y, z, g;  // of the thread's group; y steps by two
    u32 row, end;    // among rows of one parity
    u32 beside;      // from the group to the one whose edge is shifted in, modulo 2^32

    __device__ __forceinline__ Walk(const Slab& slab, const Share& share, u32 tile, u32 first_parity, bool odd) {
        const u32 rows = THREADS / share.columns, half = slab.height / 2, chunk = tile / share.tiles;
        q = tile % share.tiles * share.columns + threadIdx.x % share.columns;
        row = chunk * rows * share.steps + threadIdx.x / share.columns;
        end = min((chunk + 1) * rows * share.steps, half * slab.depth);
        z = min(row, half * slab.depth - 1) / half;
        y = 2 * (min(row, half * slab.depth - 1) % half) + ((z + first_parity) & 1);
        beside = odd ? (q + 1 < slab.width ? 1 : 1 - slab.width) : (q > 0 ? 0 : slab.width) - 1;
        g = (z * slab.height + y) * slab.width + q;
    }
    // Without branches; past the end it stays inside the slab.
    template <int DIMENSION>
    __device__ __forceinline__ void step(const Slab& slab, u32 rows) {
        row += rows;
        if constexpr (DIMENSION == 2) {
            y = min(y + 2 * rows, slab.height - 1);
            g = y * slab.width + q;
        } else {
            y += 2 * rows;
            const bool next_plane = y >= slab.height;
            y = min(next_plane ? (y - slab.height) ^ 1 : y, slab.height - 1);  // the next plane's rows have the other parity
            z = min(z + (next_plane ? 1 : 0), slab.depth - 1);
            g = (z * slab.height + y) * slab.width + q;
        }
    }
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

    // Starts copying what a group needs.
    __device__ __forceinline__ void stage(const Words& words, const Walk& at) const {
        const u32 y = at.y, z = at.z, q = at.q, g = at.g;
        const u32 width = slab.width, plane = slab.height * width, in_plane = y * width + q;
        const bool bottom = y == 0, top = y + 1 == slab.height;
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
        words.copy(3, other + (g + at.beside));
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
            for (int k = 0; k < R::SLOTS; ++k) {
                const uint4 sign = words.load(SIGN + k);
                near[k] = make_uint4(near[k].x ^ sign.x, near[k].y ^ sign.y, near[k].z ^ sign.z, near[k].w ^ sign.w);
            }
        }
        return weigh_bonds<R>(near, words.load(SPIN), kept, always, make_uint4(~0u, ~0u, ~0u, ~0u), there);
    }
};

// Blocks of even and odd number take rows of one parity each, so that a warp's rows shift the same way.
template <int DIMENSION, bool SIGNED, bool FIELD, bool PLAIN, bool RESIDENT, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void sweep_site(uint4* state, Slab slab, Halo halo, Signs signs, UniformTables tables,
                                                         Share share, u32 first_sample, u32 first_replica, u64 half_sweep,
                                                         u32 half_sweeps, GridBarrier barrier, Key key) {
    using S = Site<DIMENSION, SIGNED, FIELD, PLAIN, RESIDENT, ROUNDS>;
    using R = typename S::R;
    extern __shared__ uint4 staged[];  // S::WORDS * THREADS
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 kept[THREADS];
    __shared__ u32 rows[(1 + PLANES) << R::BITS];  // of `always`, then of `planes`
    const u32 replica = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + replica, groups = (size_t)slab.width * slab.height * slab.depth;
    const u32 block = counter_block(first_sample + sample, first_replica + replica), first_group = slab.first_row * slab.width;
    const u64* const thresholds = tables.thresholds + (replica << R::BITS);
    for (u32 i = threadIdx.x; i < PLANES << R::BITS; i += THREADS)
        rows[(1 << R::BITS) + i] = tables.planes[(replica * PLANES << R::BITS) + i];
    for (u32 i = threadIdx.x; i < 1 << R::BITS; i += THREADS) rows[i] = tables.always[(replica << R::BITS) + i];
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    __syncthreads();
    const UniformRows always = {(u32)__cvta_generic_to_shared(rows)}, planes = always.from(1 << R::BITS);
    const typename S::Words words(staged);
    const u32 odd = blockIdx.x & 1, end = RESIDENT ? half_sweeps : 1;
    const u32 blocks = gridDim.x * gridDim.y * gridDim.z;

    for (u32 done = 0; done < end; ++done, ++half_sweep) {
        const u32 colour = half_sweep & 1;
        uint4* const lattice = state + 2 * part * groups;
        const S site = {lattice + colour * groups, lattice + (1 - colour) * groups,
                        (colour ? halo.before[0] : halo.before[1]) + part * halo.stride,
                        (colour ? halo.after[0] : halo.after[1]) + part * halo.stride,
                        signs.negative + sample * signs.stride + colour * R::SLOTS * groups, slab};
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const auto pop = [&] { tail.template pop<true, ROUNDS>((u32*)site.mine, first_group, thresholds, block, time, key); };
        const auto update = [&](auto is_odd) {
            constexpr bool ODD = decltype(is_odd)::value;
            Walk at(slab, share, blockIdx.x >> 1, (colour + slab.parity + ODD) & 1, ODD);
            site.stage(words, at);
            for (u32 i = 0; i < share.steps; ++i) {
                const u32 g = at.g;
                const bool there = at.row < at.end;
                const Chances<R> c = site.template weigh<ODD>(words, kept + threadIdx.x, always, there);
                leave_to_chance(c, kept + threadIdx.x, site.mine + g, there, first_group + g, g, planes, block, time, key, tail,
                                [&] {
                                    at.template step<DIMENSION>(slab, THREADS / share.columns);
                                    site.stage(words, at);
                                });
                if (tail.full()) pop();
            }
        };
        if (RESIDENT && done > 0) barrier.wait(blocks, done);
        if (odd)
            update(Constant<true>{});
        else
            update(Constant<false>{});
        while (!tail.empty()) pop();
        words.wait();
        if (RESIDENT) barrier.arrive();
    }
}
