// Site-packed Metropolis: 128 sites of one colour along x a group; replicas and samples in y and z. Many half-sweeps a
// launch: blocks that share a lattice are resident and wait for each other after each.
// state[((sample * replicas + replica) * 2 + colour) * rows * width + row * width + q] is a uint4 of 128 lanes.
#include "metropolis/uniform.cuh"
#include "packing/slab.cuh"
#include "synchronisation/lattice_barrier.cuh"
#include "synchronisation/neighbour_barrier.cuh"
#include "synchronisation/slab_barrier.cuh"
#include "synchronisation/staged.cuh"
#include "synchronisation/tickets.cuh"

template <int NUMBER>
struct Layer { static constexpr int value = NUMBER; };
template <bool FLAG>
struct Flag { static constexpr bool value = FLAG; };

// Divides by a number known to the host: `inverse` is floor(2^32 / number) + 1, which may give one too many.
struct Divisor {
    u32 number, inverse;
    __device__ __forceinline__ u32 quotient(u32 n) const {
        if (number == 1) return n;
        const u32 q = __umulhi(n, inverse);
        return q * number > n ? q - 1 : q;
    }
};
CHECK_STRUCT(Divisor, engine.moves.metropolis.site_packed.cuda.DIVISOR);

// Says how warps share a lattice, cut into layers: rows, or planes in three dimensions. A tile has `columns` neighbouring
// groups (a power of two that divides a layer, at most 32) of 32 / columns pairs of layers, or of as many single layers where
// that gives each warp one tile. Else warps take tiles in turn, so that what is read at one time lies together and all end at
// one time, though some multiprocessors are slower.
struct Share {
    u32 columns, tiles;
    Divisor across, width;  // tiles side by side in a layer, groups in a row
};
CHECK_STRUCT(Share, engine.moves.metropolis.site_packed.cuda.SHARE);

// Is one thread's place in a tile: a group of the layer `first`, and the same one of the next layer where layers come in pairs.
template <int DIMENSION, int LAYERS>
struct Place {
    u32 first, in_layer, q, y;
    bool there;

    __device__ __forceinline__ Place(const Slab& slab, const Share& share, u32 tile) {
        const u32 lane = threadIdx.x & 31, chunk = share.across.quotient(tile);
        const u32 layer = (chunk * (32 / share.columns) + lane / share.columns) * LAYERS;
        there = layer < slab.layers(DIMENSION);
        first = there ? layer : 0;
        in_layer = (tile - chunk * share.across.number) * share.columns + lane % share.columns;
        y = DIMENSION == 3 ? share.width.quotient(in_layer) : 0;
        q = in_layer - y * slab.width;
    }
};

// Starts copying 16 bytes that are not needed again in this half-sweep: they leave the second-level cache before spins do.
__device__ __forceinline__ void copy_signs(u32 address, const void* from) {
    u64 first_out;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first_out));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "l"(first_out)
                 : "memory");
}

template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int LAYERS, int ROUNDS>
struct Site {
    using R = Rule<2 * DIMENSION, 3, FIELD, KIND, ROUNDS>;
    using At = Place<DIMENSION, LAYERS>;
    // Staged words: three layers in turn, the group whose edge is shifted in, two rows of the same plane, spins, signs.
    static constexpr int NEXT_IN_ROW = 3, ROWS = 4, SPIN = R::SLOTS, SIGN = SPIN + 1, WORDS = SIGN + (SIGNED ? R::SLOTS : 0);
    using Words = Staged<THREADS>;
    uint4* mine;
    const uint4* other;
    const uint4 *before, *after;
    const uint4* negative;
    Slab slab;
    u32 first_parity;

    template <int K>
    __device__ __forceinline__ u32 group(const At& at) const {
        return (at.first + K) * slab.layer(DIMENSION) + at.in_layer;
    }
    // Returns whether the sites of a group have odd x.
    template <int K>
    __device__ __forceinline__ bool odd(const At& at) const { return (at.first + K + at.y + first_parity) & 1; }

    // Starts copying a group's spins and signs.
    template <int K>
    __device__ __forceinline__ void stage_own(const Words& words, const At& at) const {
        const u32 g = group<K>(at);
        words.copy(SPIN, mine + g);
        if constexpr (SIGNED) {
            const size_t slot = (size_t)slab.layer(DIMENSION) * slab.layers(DIMENSION);
#pragma unroll
            for (int k = 0; k < R::SLOTS; ++k) copy_signs(words.address + 16 * THREADS * (SIGN + k), negative + k * slot + g);
        }
    }

    // Starts copying its neighbours; for the second layer of a pair, what the first has not brought.
    template <int K>
    __device__ __forceinline__ void stage_near(const Words& words, const At& at) const {
        const u32 layer = slab.layer(DIMENSION), width = slab.width, g = group<K>(at);
        if constexpr (K == 0) {
            words.copy(0, at.first == 0 ? before + at.in_layer : other + (g - layer));
            words.copy(1, other + g);
        }
        const bool last = K + 1 == LAYERS && at.first + LAYERS == slab.layers(DIMENSION);
        words.copy((K + 2) % 3, last ? after + at.in_layer : other + (g + layer));
        const u32 up = at.q + 1 < width ? g + 1 : g + 1 - width, down = at.q > 0 ? g - 1 : g - 1 + width;
        words.copy(NEXT_IN_ROW, other + (odd<K>(at) ? up : down));
        if constexpr (DIMENSION == 3) {
            words.copy(ROWS, other + (at.y == 0 ? g + layer - width : g - width));
            words.copy(ROWS + 1, other + (at.y + 1 == slab.height ? g + width - layer : g + width));
        }
    }

    template <int K>
    __device__ __forceinline__ void stage(const Words& words, const At& at) const {
        stage_near<K>(words, at);
        stage_own<K>(words, at);
    }

    template <int K>
    __device__ __forceinline__ Chances<R> weigh(const Words& words, uint4* kept, const UniformRows& always,
                                                const At& at) const {
        words.wait();
        uint4 near[R::SLOTS];
        near[R::SLOTS == 4 ? 0 : 4] = words.load(K);
        near[R::SLOTS == 4 ? 1 : 5] = words.load((K + 2) % 3);
        near[2] = words.load(K + 1);
        near[3] = next_in_row(near[2], words.load(NEXT_IN_ROW), odd<K>(at));
        if constexpr (DIMENSION == 3) near[0] = words.load(ROWS), near[1] = words.load(ROWS + 1);
        if constexpr (SIGNED) {
#pragma unroll
            for (int k = 0; k < R::SLOTS; ++k) near[k] = differing(near[k], words.load(SIGN + k));
        }
        return weigh_bonds<R>(near, words.load(SPIN), kept, always, make_uint4(~0u, ~0u, ~0u, ~0u), at.there);
    }
};

// Where each warp has one tile, always the same, a block waits for those beside it alone.
template <int LAYERS, bool SLABS>
struct Barrier { using type = LatticeBarrier; };
template <>
struct Barrier<1, false> { using type = NeighbourBarrier; };
template <>
struct Barrier<2, true> { using type = SlabBarrier; };

// With SLABS the halo is memory of other devices, which update it at the same time.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int LAYERS, int ROUNDS, bool SLABS>
__global__ __launch_bounds__(THREADS, 4) void sweep_site(
    uint4* state, Slab slab, Halo halo, Signs signs, UniformTables tables, Share share, u32 first_sample, u32 first_replica,
    u64 half_sweep, u32 half_sweeps, Tickets all_tickets, typename Barrier<LAYERS, SLABS>::type barriers, Key key) {
    using S = Site<DIMENSION, SIGNED, FIELD, KIND, LAYERS, ROUNDS>;
    using R = typename S::R;
    extern __shared__ uint4 staged[];  // S::WORDS * THREADS
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 kept[THREADS];
    __shared__ UniformRules<R> rules;
    const u32 replica = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + replica, groups = (size_t)slab.width * slab.height * slab.depth;
    const u32 block = counter_block(first_sample + sample, first_replica + replica), first_group = slab.first_row * slab.width;
    const size_t rules_of = tables.part(sample, replica);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << R::BITS)};
    const u32 warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    rules.load(tables, rules_of, threadIdx.x, THREADS);
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    __syncthreads();
    const typename S::Words words(staged);
    const auto barrier = barriers.of(part);
    Tickets tickets = all_tickets.of(part);
    const auto site_of = [&](u32 colour) {
        uint4* const lattice = state + 2 * part * groups;
        return S{lattice + colour * groups, lattice + (1 - colour) * groups,
                 (colour ? halo.before[0] : halo.before[1]) + part * halo.stride,
                 (colour ? halo.after[0] : halo.after[1]) + part * halo.stride,
                 signs.negative + sample * signs.stride + colour * R::SLOTS * groups, slab, colour + slab.parity};
    };
    const auto place = [&](u32 tile) {  // with SLABS the tiles between the edges
        return typename S::At(slab, share, min(tile, share.tiles - 1) + (SLABS ? share.across.number : 0));
    };
    // Edges are the first tiles of the first warps, those of the last layers before those of the first ones; what these warps
    // do then they draw.
    u32 edges = 0, with_edges = 0;
    if constexpr (SLABS) edges = barriers.edge_tiles, with_edges = min(edges, gridDim.x * (THREADS / 32));
    const bool has_edge = __any_sync(~0u, warp < with_edges);
    const typename S::At home = place(warp - with_edges);
    S site = site_of(half_sweep & 1);
    const auto place_edge = [&](u32 e) {
        const u32 across = share.across.number;
        return typename S::At(slab, share, e < across ? share.tiles + edges - across + e : e - across);
    };
    const auto stage_first = [&] {
        if constexpr (SLABS) {
            if (has_edge) return site.template stage_own<0>(words, place_edge(warp));
        }
        site.template stage_own<0>(words, home);
    };
    stage_first();

    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep) {
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const auto pop = [&](auto two) {
            tail.template pop<ROUNDS, decltype(two)::value>((u32*)site.mine, thresholds, block, time, key);
        };
        const auto update = [&](auto layer, const typename S::At& at, auto calls_of, auto stage_next) {
            constexpr int K = decltype(layer)::value;
            const u32 g = site.template group<K>(at);
            const auto weigh = [&] { return site.template weigh<K>(words, kept + threadIdx.x, rules.always(), at); };
            const auto settle = [&](const Chances<R>& c, const auto& calls) {
                leave_to_chance(c, kept + threadIdx.x, site.mine + g, at.there, first_group + g, g, rules.planes(), calls, tail,
                                [&] { if constexpr (!SIGNED) stage_next(); });
            };
            if constexpr (SIGNED) {  // signs come from far: what can be done before they are there, and the next at once
                const auto calls = calls_of(first_group + g);
                const Chances<R> c = weigh();
                stage_next();
                settle(c, calls);
            } else {
                const Chances<R> c = weigh();
                settle(c, calls_of(first_group + g));
            }
            if (tail.full()) pop(Flag<false>{});
        };
        const auto calls = [&](u32 group) { return Calls<ROUNDS>(group, block, time, key); };
        const auto update_edges = [&](const auto& barriers) {  // returns the tile that comes then, which is staged
            for (u32 e = warp; __any_sync(~0u, e < edges); e += with_edges) {
                const typename S::At at = place_edge(e);
                barriers.wait_for_edges(part, done, at.first == 0, at.first + LAYERS == slab.layers(DIMENSION));
                if (e == warp)
                    site.template stage_near<0>(words, at);
                else
                    site.template stage<0>(words, at);
                update(Layer<0>{}, at, calls, [&] { site.template stage<1>(words, at); });
                update(Layer<1>{}, at, calls, [] {});
                while (!tail.empty()) pop(Flag<false>{});
                barriers.pass_edge(part, done);
            }
            const u32 tile = tickets.number_of(tickets.draw()) - with_edges;  // not earlier: others may be faster
            site.template stage<0>(words, place(tile));
            return tile;
        };
        if constexpr (LAYERS == 1) {
            // before it waits for others
            const CallsAhead<ROUNDS> ahead(first_group + site.template group<0>(home), block, time, key);
            if (done > 0) barrier.wait(done);
            site.template stage_near<0>(words, home);
            if (__any_sync(~0u, warp < share.tiles)) update(Layer<0>{}, home, [&](u32) { return ahead; }, [] {});
        } else {
            if (done > 0) barrier.wait(done);
            u32 tile = warp - with_edges;
            typename S::At at = home;
            if constexpr (SLABS) {
                if (has_edge) tile = update_edges(barriers), at = place(tile);
            }
            if (!has_edge) site.template stage_near<0>(words, home);
            while (__any_sync(~0u, tile < share.tiles)) {  // by a vote, as votes within are slow where threads may part
                const u32 drawn = tickets.draw();
                update(Layer<0>{}, at, calls, [&] { site.template stage<1>(words, at); });
                tile = tickets.number_of(drawn) - with_edges;
                const typename S::At next = place(tile);
                update(Layer<1>{}, at, calls, [&] { site.template stage<0>(words, next); });
                at = next;
            }
            tickets.pass(share.tiles + with_edges);
        }
        words.wait();
        while (!tail.empty()) pop(Flag<true>{});
        if (done + 1 == half_sweeps) break;
        barrier.arrive();
        site = site_of((half_sweep + 1) & 1);
        stage_first();  // what the last half-sweep did not change
    }
}
