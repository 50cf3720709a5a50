// Site-packed Metropolis: 128 sites of one colour along x a group; one launch a colour, replicas and samples in y and z.
// state[((sample * replicas + replica) * 2 + colour) * rows * width + row * width + q] is a uint4 of 128 lanes.
#include "group.cuh"

// A slab of the lattice, cut along its slowest axis: rows of `width` groups, `height` of them a plane, `depth` planes (one
// in two dimensions). Even heights; `first_row` is the slab's first among all rows, `parity` that of its coordinates.
struct Slab { u32 width, height, depth, first_row, parity; };

// The other colour's rows (planes, in three dimensions) next to the slab, from (sample, replica) to the next `stride` apart.
struct Halo {
    const uint4 *before, *after;
    size_t stride;
};

// Tables of every replica: planes[replica][plane][class] and always[replica][class] are 0 or all ones.
struct UniformTables {
    const u32 *always, *planes;
    const u64* thresholds;  // [replica][class]
};

// Negative couplings of the sites of one colour: [slot][row][q], from sample to sample `stride` apart (0: all share them).
struct Signs {
    const uint4* negative;
    size_t stride;
};

// The words one lane further: lane i + 1 (the next group's first bit comes in) or i - 1.
template <bool UP>
__device__ __forceinline__ uint4 shifted(const uint4& v, u32 edge) {
    if constexpr (UP)
        return make_uint4(__funnelshift_r(v.x, v.y, 1), __funnelshift_r(v.y, v.z, 1), __funnelshift_r(v.z, v.w, 1),
                          __funnelshift_r(v.w, edge, 1));
    else
        return make_uint4(__funnelshift_l(edge, v.x, 1), __funnelshift_l(v.x, v.y, 1), __funnelshift_l(v.y, v.z, 1),
                          __funnelshift_l(v.z, v.w, 1));
}

template <int DIMENSION, bool SIGNED, bool FIELD, bool PLAIN, int ROUNDS>
struct Site {
    using R = Rule<2 * DIMENSION, 3, FIELD, PLAIN, ROUNDS>;
    uint4* mine;
    const uint4* other;
    const uint4 *before, *after;
    const uint4* negative;
    Slab slab;

    // Row y of plane z, whose sites have odd x where ODD; q is the thread's group of it.
    template <bool ODD>
    __device__ __forceinline__ Chances<R> weigh(u32 y, u32 z, u32 q, const UniformRows& always, bool there) const {
        const u32 width = slab.width, plane = slab.height * width, in_plane = y * width + q, g = z * plane + in_plane;
        const uint4 centre = other[g];
        const u32 edge = ODD ? ((const u32*)other)[4 * (q + 1 < width ? g + 1 : g + 1 - width)]
                             : ((const u32*)other)[4 * (q > 0 ? g : g + width) - 1];
        uint4 near[R::SLOTS];
        const bool bottom = y == 0, top = y + 1 == slab.height;
        if constexpr (DIMENSION == 2) {
            near[0] = bottom ? before[q] : other[g - width];
            near[1] = top ? after[q] : other[g + width];
        } else {
            near[0] = other[bottom ? g + plane - width : g - width];
            near[1] = other[top ? g + width - plane : g + width];
            near[4] = z == 0 ? before[in_plane] : other[g - plane];
            near[5] = z + 1 == slab.depth ? after[in_plane] : other[g + plane];
        }
        near[2] = centre;
        near[3] = shifted<ODD>(centre, edge);
        const uint4 spin = mine[g];
        if constexpr (SIGNED) {
            const size_t slot = (size_t)plane * slab.depth;
#pragma unroll
            for (int k = 0; k < R::SLOTS; ++k) {
                const uint4 sign = __ldg(negative + k * slot + g);
                near[k] = make_uint4(near[k].x ^ sign.x, near[k].y ^ sign.y, near[k].z ^ sign.z, near[k].w ^ sign.w);
            }
        }
        return weigh_bonds<R>(near, spin, mine + g, always, make_uint4(~0u, ~0u, ~0u, ~0u), there);
    }
};

// Blocks of even and odd number take rows of one parity each, so that a warp's rows shift the same way. A thread takes
// `rows_a_thread` rows, every other one, of one column of groups.
template <int DIMENSION, bool SIGNED, bool FIELD, bool PLAIN, int ROUNDS>
__global__ __launch_bounds__(128, 4) void sweep_site(uint4* state, Slab slab, Halo halo, Signs signs, UniformTables tables,
                                                     u32 rows_a_thread, u32 colour, u32 first_sample, u32 first_replica,
                                                     u64 half_sweep, Key key) {
    using S = Site<DIMENSION, SIGNED, FIELD, PLAIN, ROUNDS>;
    using R = typename S::R;
    __shared__ TailEntries<R::BITS> entries[4];
    __shared__ u32 rows[(1 + PLANES) << R::BITS];  // of `always`, then of `planes`
    const u32 replica = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + replica, groups = (size_t)slab.width * slab.height * slab.depth;
    uint4* const lattice = state + 2 * part * groups;
    const S site = {lattice + colour * groups, lattice + (1 - colour) * groups, halo.before + part * halo.stride,
                    halo.after + part * halo.stride, signs.negative + sample * signs.stride, slab};
    const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
    const u32 block = counter_block(first_sample + sample, first_replica + replica);
    const u64* const thresholds = tables.thresholds + (replica << R::BITS);
    for (u32 i = threadIdx.x; i < PLANES << R::BITS; i += blockDim.x)
        rows[(1 << R::BITS) + i] = tables.planes[(replica * PLANES << R::BITS) + i];
    for (u32 i = threadIdx.x; i < 1 << R::BITS; i += blockDim.x) rows[i] = tables.always[(replica << R::BITS) + i];
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    __syncthreads();
    const UniformRows always = {(u32)__cvta_generic_to_shared(rows)}, planes = always.from(1 << R::BITS);
    const auto pop = [&] {
        tail.template pop<true, ROUNDS>((u32*)site.mine, slab.first_row * slab.width, thresholds, block, time, key);
    };

    const u32 item = (blockIdx.x >> 1) * blockDim.x + threadIdx.x, q = item % slab.width, chunk = item / slab.width;
    const u32 chunks = (slab.height / 2 + rows_a_thread - 1) / rows_a_thread, z = chunk / chunks;
    const bool inside = z < slab.depth;
    const u32 plane = inside ? z : 0, odd = blockIdx.x & 1;
    const u32 first = 2 * (chunk % chunks) * rows_a_thread + ((plane + colour + slab.parity + odd) & 1);
    const auto update = [&](auto is_odd) {
        for (u32 i = 0; i < rows_a_thread; ++i) {
            const bool there = inside && first + 2 * i < slab.height;
            const u32 y = there ? first + 2 * i : 0, g = (plane * slab.height + y) * slab.width + q;
            const Chances<R> c = site.template weigh<decltype(is_odd)::value>(y, plane, q, always, there);
            leave_to_chance(c, site.mine + g, there, slab.first_row * slab.width + g, g, planes, block, time, key, tail, [] {});
            if (tail.full()) pop();
        }
    };
    if (odd)
        update(Constant<true>{});
    else
        update(Constant<false>{});
    while (!tail.empty()) pop();
}
