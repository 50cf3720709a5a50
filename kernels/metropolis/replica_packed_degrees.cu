// Replica-packed Metropolis on graphs whose degrees differ much: sites of like degree stand together, and only flips that cost
// little are looked up in the bit planes (spinsim/engine/moves/metropolis/replica_packed/cpu_sweep.py). Fields count as bonds
// to a spin that is always +1 (update.py there).
// state[(sample * blocks + block) * sites + place] is a uint4 of 128 lanes; a lattice stays in shared memory for many sweeps, or
// lies in global memory for one half-sweep a launch.
#include "metropolis/replica_site.cuh"
#include "synchronisation/staged.cuh"

constexpr int MOST_THREADS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.MOST_THREADS);
constexpr int MOST_BITS = HOST(engine.moves.metropolis.classes.MAX_COUNT_BITS) - 1;  // of a class
constexpr int TOGETHER = 7;    // bonds that are added together
constexpr int SHORT_BITS = 5;  // of counts of sites that always have one thread

// Up to 32 sites of one colour, at places from `first` on; the last has most bonds. In fields `most` also holds, in its upper half,
// the bonds and units of field of the site that has most.
struct Tile { u32 first, size, most, offset; };
CHECK_STRUCT(Tile, engine.moves.metropolis.replica_packed.cuda_lattices.TILE);

struct Bonds {
    const uint2* sites;  // [place]: the site and its degree; in fields also, from bits 8 and 16 on, the units of the field and
                         // whether it is above 0
    const u32* wanted;   // [tile.offset + k * tile.size + q]: twice a neighbour's place, plus 1 where it is wanted turned
    size_t stride;       // of `wanted` from sample to sample, 0 where all share it
    size_t site_stride;  // of `sites`, likewise
};
CHECK_STRUCT(Bonds, engine.moves.metropolis.replica_packed.cuda_lattices.DEGREE_BONDS);

// Flip classes of 128 lanes as bit planes: all bits above those of a site's count are set, so that the cheapest class is the
// last whatever the degree.
struct OfLanes {
    u32 bit[MOST_BITS][4], gain[4];
};

// Adds up to seven rows of unsatisfied bonds into the planes of a count.
template <int COUNT_BITS>
__device__ __forceinline__ void add_bonds(u32 (&count)[COUNT_BITS][4], const u32 (&x)[TOGETHER], int w) {
    const u32 sum_a = parity(x[0], x[1], x[2]), carry_a = majority(x[0], x[1], x[2]);
    const u32 sum_b = parity(x[3], x[4], x[5]), carry_b = majority(x[3], x[4], x[5]);
    const u32 low = parity(sum_a, sum_b, x[6]), carry_c = majority(sum_a, sum_b, x[6]);
    const u32 middle = parity(carry_a, carry_b, carry_c), high = majority(carry_a, carry_b, carry_c);
    u32 carry = count[0][w] & low;
    count[0][w] ^= low;
    const u32 next = majority(count[1][w], middle, carry);
    count[1][w] = parity(count[1][w], middle, carry);
    carry = majority(count[2][w], high, next);
    count[2][w] = parity(count[2][w], high, next);
#pragma unroll
    for (int b = 3; b < COUNT_BITS; ++b) {
        const u32 before = count[b][w];
        count[b][w] = before ^ carry;
        carry &= before;
    }
}

// A site's bonds, the units of its field, and all ones where that is above 0.
template <bool IN_FIELDS>
struct Units {
    u32 degree, field, up;
    __device__ __forceinline__ explicit Units(u32 own)
        : degree(IN_FIELDS ? own & 255 : own), field(IN_FIELDS ? own >> 8 & 255 : 0), up(IN_FIELDS ? 0u - (own >> 16) : 0) {}
    __device__ __forceinline__ u32 all() const { return degree + field; }
};

// Classes of a site of at most 2^COUNT_BITS - 1 bonds and units of field, among `most` slots whose words stand `size` apart. Where
// more bits are counted than SHORT_BITS, threads that stand 2^apart apart share out the bonds of a site.
template <int COUNT_BITS, bool IN_FIELDS>
__device__ __forceinline__ void classify_site(OfLanes& lanes, const uint4* lattice, const uint4& spin, const u32* wanted,
                                              u32 size, u32 most, const Units<IN_FIELDS>& units, u32 apart) {
    u32 count[COUNT_BITS][4];
    const u32 part = (threadIdx.x & 31) >> apart, step = TOGETHER * 32 >> apart;
    const u32 degree = units.degree, base = part ? 0 : ((1u << COUNT_BITS) - 2 + (units.all() & 1) - units.all()) / 2;
    const u32 other = part ? 0 : base ^ (base + units.field);  // bits that differ where the spin is against the field
#pragma unroll
    for (int b = 0; b < COUNT_BITS; ++b)
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            count[b][w] = 0u - (base >> b & 1);
            if (IN_FIELDS) count[b][w] ^= (word_of(spin, w) ^ units.up) & (0u - (other >> b & 1));
        }
    for (u32 k = part * TOGETHER; k < most; k += step) {
        u32 bond[TOGETHER];
        uint4 near[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j) bond[j] = k + j < most ? wanted[(size_t)(k + j) * size] : 0;
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j) {
            near[j] = k + j < degree ? lattice[bond[j] >> 1] : spin;
            bond[j] = k + j < degree ? 0u - (bond[j] & 1) : 0;
        }
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 x[TOGETHER];
#pragma unroll
            for (int j = 0; j < TOGETHER; ++j) x[j] = parity(word_of(near[j], w), word_of(spin, w), bond[j]);
            add_bonds<COUNT_BITS>(count, x, w);
        }
    }
    if constexpr (COUNT_BITS > SHORT_BITS) {
        for (u32 far = 1u << apart; __any_sync(~0u, far < 32); far *= 2) {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                u32 carry = 0;
#pragma unroll
                for (int b = 0; b < COUNT_BITS; ++b) {
                    const u32 own = count[b][w], other = __shfl_xor_sync(~0u, own, far);
                    count[b][w] = parity(own, other, carry);
                    carry = majority(own, other, carry);
                }
            }
        }
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
        for (int b = 0; b < MOST_BITS; ++b) lanes.bit[b][w] = b < COUNT_BITS - 1 ? count[b < COUNT_BITS ? b : 0][w] : ~0u;
        lanes.gain[w] = count[COUNT_BITS - 1][w];
    }
}

// Rows of words for cheap classes in shared memory: of 2^bits classes, BITS of them by a tree, which for BITS = 4 are as many
// trees as the further bits make.
template <int BITS>
struct Cheap {
    const OfLanes& lanes;
    u32 cheap[4];
    u32 bits;

    __device__ __forceinline__ Cheap(const OfLanes& lanes, u32 bits) : lanes(lanes), bits(bits) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            cheap[w] = ~0u;
#pragma unroll
            for (int b = BITS; b < MOST_BITS; ++b) cheap[w] &= b < bits ? ~0u : lanes.bit[b][w];
        }
    }

    template <int B>
    __device__ __forceinline__ void tree(const SharedRows& rows, u32 (&out)[4]) const {
        if constexpr (B == 0) {
            const uint4 row = rows.load(0);
#pragma unroll
            for (int w = 0; w < 4; ++w) out[w] = word_of(row, w);
        } else {
            u32 upper[4];
            tree<B - 1>(rows, out);
            tree<B - 1>(rows.from(1 << (B - 1)), upper);
#pragma unroll
            for (int w = 0; w < 4; ++w) out[w] = mux(lanes.bit[B - 1][w], out[w], upper[w]);
        }
    }

    // The words of every lane's class, 0 of classes that are not cheap.
    __device__ __forceinline__ void pick(const SharedRows& rows, u32 (&out)[4]) const {
        if constexpr (BITS < 4) {
            tree<BITS>(rows, out);
        } else {
#pragma unroll
            for (int w = 0; w < 4; ++w) out[w] = 0;
            for (u32 group = 0; group < 1u << (bits - BITS); ++group) {
                u32 of_group[4];
                tree<BITS>(rows.from(group << BITS), of_group);
#pragma unroll
                for (int w = 0; w < 4; ++w) {
#pragma unroll
                    for (int b = BITS; b < MOST_BITS; ++b) {
                        const u32 other = (group >> (b - BITS) & 1) - 1;  // all ones where the bit is to be 0
                        of_group[w] &= b < bits ? lanes.bit[b][w] ^ other : ~0u;
                    }
                    out[w] |= of_group[w];
                }
            }
        }
#pragma unroll
        for (int w = 0; w < 4; ++w) out[w] &= cheap[w];
    }
};

// A warp's undecided lanes in shared memory, each by itself.
struct LaneQueue {
    static constexpr u32 ROOM = 64;
    u32 site[ROOM], place[ROOM], code[ROOM];  // the lane, whether it is deep, its class, the parity of the degree
    static constexpr u32 DEEP = 7, CLASS = 8, ODD = 8 + MOST_BITS;
};
static_assert(sizeof(LaneQueue) == HOST(engine.moves.metropolis.replica_packed.cuda_lattices.QUEUE_BYTES), "the host makes room for it");

template <int ROUNDS>
struct Lanes {
    LaneQueue& queue;
    const u64* thresholds;  // [parity][class][lane]
    u32 classes, block;
    const Key& key;
    u32 count = 0;

    // Queues the lanes in `undecided`; the whole warp must call it.
    __device__ __forceinline__ void add(u32 site, u32 place, u32 odd, const OfLanes& lanes, u32 (&undecided)[4],
                                        const u32 (&deep)[4], u32* words, const HalfSweep& time) {
        const u32 before = (1u << (threadIdx.x & 31)) - 1;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 left = undecided[w];
            for (u32 all = __ballot_sync(~0u, left != 0); all; all = __ballot_sync(~0u, left != 0)) {
                if (left) {
                    const u32 rest = left & (left - 1), mask = left ^ rest, bit = 31 & (31 - __clz(mask));
                    u32 code = odd << LaneQueue::ODD | (deep[w] & mask ? 1u << LaneQueue::DEEP : 0u) | (32 * w + bit);
#pragma unroll
                    for (int b = 0; b < MOST_BITS; ++b) code |= (lanes.bit[b][w] >> bit & 1) << (LaneQueue::CLASS + b);
                    const u32 at = count + __popc(all & before);
                    queue.site[at] = site, queue.place[at] = place, queue.code[at] = code;
                    left = rest;
                }
                count += __popc(all);
                __syncwarp();
                if (count >= 32) finish(words, time);
            }
        }
    }

    // Decides the last lanes of the queue, up to 32.
    __device__ __forceinline__ void finish(u32* words, const HalfSweep& time) {
        const u32 base = count > 32 ? count - 32 : 0, i = base + (threadIdx.x & 31);
        if (i < count) {
            const u32 code = queue.code[i], lane = code & 127, place = queue.place[i];
            const u32 cls = (code >> LaneQueue::CLASS & ((1u << MOST_BITS) - 1)) + classes - (1u << MOST_BITS);
            const u64 threshold = __ldg(thresholds + (((code >> LaneQueue::ODD) * classes + cls) << 7 | lane));
            const uint4 own = philox<ROUNDS>(queue.site[i], block, time.word2, time.word3 + TAIL_PLANE + lane, key);
            const u64 open = threshold << (code >> LaneQueue::DEEP & 1 ? PLANES : OWN_PLANES);
            if (((u64)own.x << 32 | own.y) < open) atomicXor(words + ((size_t)place * 4 + lane / 32), 1u << (lane & 31));
        }
        count = base;
        __syncwarp();
    }
};

// Decides the lanes in `open`, as decide_lanes does.
template <int BITS, typename Calls>
__device__ __forceinline__ void decide_cheap(const Cheap<BITS>& classes, const SharedRows& planes, const u32 (&open)[4],
                                             u32 (&undecided)[4], u32 (&accepted)[4], u32 (&deep)[4], const Calls& calls) {
#pragma unroll
    for (int w = 0; w < 4; ++w) accepted[w] = 0, undecided[w] = open[w];
#pragma unroll
    for (int plane = OWN_PLANES - 1; plane >= 0; --plane) {
        const uint4 random = calls(plane);
        u32 threshold[4];
        classes.pick(planes.from(plane << classes.bits), threshold);
#pragma unroll
        for (int w = 0; w < 4; ++w) compare(threshold[w], word_of(random, w), accepted[w], undecided[w]);
    }
    const u32 two = undecided[0] | undecided[1], three = two | undecided[2];
    const u32 occupant[4] = {undecided[0], undecided[1] & ~undecided[0], undecided[2] & ~two, undecided[3] & ~three};
    const uint4 random = calls(OWN_PLANES);
    u32 left = three | undecided[3], taken = 0;
#pragma unroll
    for (int j = COLUMN_PLANES - 1; j >= 0; --j) {
        u32 threshold[4];
        classes.pick(planes.from((OWN_PLANES + j) << classes.bits), threshold);
        compare(fold(threshold, occupant), word_of(random, j), taken, left);
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        accepted[w] |= occupant[w] & taken;
        deep[w] = occupant[w] & left;
        undecided[w] = (undecided[w] & ~occupant[w]) | deep[w];
    }
}

// `shared` holds the lattice, if it is there, lanes in use, rows of `always` and of `planes` of the cheap classes for both
// parities, and the queues. Where `are_shared`, the tables of one block serve all.
template <int BITS, bool SHARED, bool IN_FIELDS, int ROUNDS>
__global__ __launch_bounds__(MOST_THREADS, 1) void sweep_degrees(uint4* state, u32 sites, const Tile* tiles, const int* colour_start,
                                                         u32 colours, Bonds bonds, Tables tables, u32 are_shared,
                                                         u32 classes, u32 cheap_bits, u32 first_sample, u32 first_block, u64 half_sweep,
                                                         u32 half_sweeps, Key key) {
    extern __shared__ uint4 shared[];
    const u32 block = blockIdx.y, sample = blockIdx.z, bits = BITS < 4 ? BITS : cheap_bits;
    uint4* const home = state + ((size_t)sample * gridDim.y + block) * sites;
    uint4* const lattice = SHARED ? shared : home;
    uint4* const rows = SHARED ? shared + sites : shared;
    const u32 wide = 1u << bits, of_planes = 1 + 2 * wide, behind = of_planes + 2 * PLANES * wide, skipped = classes - wide;
    const size_t rules = are_shared ? 0 : tables.part(sample, block);
    if (SHARED)
        for (u32 i = threadIdx.x; i < sites; i += blockDim.x) lattice[i] = home[i];
    if (threadIdx.x == 0) rows[0] = tables.lanes[block];
    for (u32 i = threadIdx.x; i < 2 * wide; i += blockDim.x)
        rows[1 + i] = tables.always[(rules * 2 + (i >> bits)) * classes + skipped + (i & (wide - 1))];
    for (u32 i = threadIdx.x; i < 2 * PLANES * wide; i += blockDim.x)
        rows[of_planes + i] = tables.planes[(rules * 2 * PLANES + (i >> bits)) * classes + skipped + (i & (wide - 1))];
    const SharedRows table = {(u32)__cvta_generic_to_shared(rows)};
    Lanes<ROUNDS> tail = {((LaneQueue*)(rows + behind))[threadIdx.x / 32], tables.thresholds + (rules * 2 * classes << 7),
                          classes, counter_block(first_sample + sample, first_block + block), key};
    const u32* const wanted = bonds.wanted + sample * bonds.stride;
    const uint2* const sites_of = IN_FIELDS ? bonds.sites + sample * bonds.site_stride : bonds.sites;
    const u32 warps = gridDim.x * (blockDim.x / 32), warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    u32 colour = half_sweep % colours;
    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep) {
        __syncthreads();  // sites of one colour share no bond: their tiles need no barrier between them
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const u32 begin = colour_start[colour], end = colour_start[colour + 1];
        for (u32 t = begin + warp; __any_sync(~0u, t < end); t += warps) {  // by a vote, as votes within are slow where threads may part
            const Tile tile = tiles[end - 1 - (t - begin)];  // those of many bonds first
            const u32 slots = IN_FIELDS ? tile.most & 0xffff : tile.most, most = IN_FIELDS ? tile.most >> 16 : tile.most;
            const u32 apart = most >> SHORT_BITS ? 32 - __clz(tile.size - 1) : 5;
            const u32 q = min(threadIdx.x & ((1u << apart) - 1), tile.size - 1), place = tile.first + q;
            const bool there = (threadIdx.x & 31) < tile.size;
            const uint2 own = sites_of[place];
            const Units<IN_FIELDS> units(own.y);
            const uint4 spin = lattice[place];
            const u32 odd = units.all() & 1;
            OfLanes lanes;
            const u32* const mine = wanted + tile.offset + q;
            if (__all_sync(~0u, most < 16))
                classify_site<4>(lanes, lattice, spin, mine, tile.size, slots, units, 5);
            else if (__all_sync(~0u, most < 32))
                classify_site<SHORT_BITS>(lanes, lattice, spin, mine, tile.size, slots, units, 5);
            else
                classify_site<MOST_BITS + 1>(lanes, lattice, spin, mine, tile.size, slots, units, apart);
            const Cheap<BITS> cheap(lanes, bits);
            u32 flip[4], open[4], undecided[4], accepted[4], deep[4];
            cheap.pick(table.from(1 + (odd << bits)), flip);
            const uint4 used = table.load(0);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const u32 certain = flip[w] | lanes.gain[w], in_use = there ? word_of(used, w) : 0;
                flip[w] = certain & in_use;
                open[w] = ~certain & in_use;
            }
            const Calls<ROUNDS> calls(own.x, tail.block, time, key);
            decide_cheap<BITS>(cheap, table.from(of_planes + (odd * PLANES << bits)), open, undecided, accepted, deep, calls);
#pragma unroll
            for (int w = 0; w < 4; ++w) flip[w] |= accepted[w];
            __syncwarp();  // threads past the end read the last site, which its own thread writes next
            if (there) lattice[place] = differing(spin, make_uint4(flip[0], flip[1], flip[2], flip[3]));
            __syncwarp();  // a lane's flip comes after its site's
            tail.add(own.x, place, odd, lanes, undecided, deep, (u32*)lattice, time);
        }
        while (tail.count) tail.finish((u32*)lattice, time);
        colour = colour + 1 < colours ? colour + 1 : 0;
    }
    if (SHARED) {
        __syncthreads();
        for (u32 i = threadIdx.x; i < sites; i += blockDim.x) home[i] = lattice[i];
    }
}
