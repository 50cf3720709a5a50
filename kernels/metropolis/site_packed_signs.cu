// Signs of +-J couplings of a site-packed lattice: drawn as spinsim/model/couplings.py draws them, laid out as
// spinsim/engine/layouts/site_packed.py says. Every bond is drawn twice, once for each of its sites.
#include "random/philox.cuh"

// Says whether bond `number` of a sample is -J.
__device__ __forceinline__ bool is_negative(u64 number, u32 sample, u64 limit, const Key& key) {
    const uint4 r = philox<MOST_ROUNDS>((u32)number, counter_block(sample, 0), (u32)(number >> 32),
                                        counter_half_sweep(0, STREAM_COUPLINGS).word3, key);
    return ((u64)r.x << 32 | r.y) >= limit;
}

// Fills signs[sample][colour][slot][word], 64 bonds a word and a thread, `words` of a sample. `width` are sites of a colour in a row,
// `height` and `depth` sides of the whole lattice, `rows` those of the slab, from `first_row` on.
template <int DIMENSION>
__global__ void draw_signs(u64* signs, u64 words, u32 width, u32 height, u32 depth, u32 first_row, u32 rows,
                           u32 first_sample, u64 limit, Key key) {
    const u64 word = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= words) return;
    const u64 in_slot = words / (4 * DIMENSION), first = word % in_slot * 64, lanes = (u64)width * rows;
    const u32 slot = word / in_slot % (2 * DIMENSION), colour = word / in_slot / (2 * DIMENSION);
    const u32 axis = slot < 2 ? 1 : slot < 4 ? 0 : 2, side = 2 * width;
    u32 row = first / width, i = first - (u64)row * width, odd;
    u64 line;  // number of the first site of the row that has the bonds
    const auto find_line = [&] {
        u32 y = (first_row + row) % height, z = (first_row + row) / height;
        odd = (y + z + colour) % 2;
        if (slot == 0) y = (y > 0 ? y : height) - 1;
        if (slot == 4) z = (z > 0 ? z : depth) - 1;
        line = (u64)side * (y + (u64)height * z);
    };
    find_line();
    u64 bits = 0;
    for (u32 bit = 0; bit < 64 && first + bit < lanes; ++bit) {
        const bool before = slot == 2 ? odd : slot == 3 && !odd;
        const u32 x = 2 * i + odd, at = before ? (x > 0 ? x : side) - 1 : x;
        bits |= (u64)is_negative(DIMENSION * (line + at) + axis, first_sample + blockIdx.y, limit, key) << bit;
        if (++i == width) i = 0, ++row, find_line();
    }
    signs[words * blockIdx.y + word] = bits;
}
