// What a flip costs, from the neighbours' words, for 32 lanes at once.
#pragma once
#include "bits/logic.cuh"

// Counts unsatisfied bonds as three bit planes; of 4 slots one phantom bond more. `wanted` are the spins that the bonds ask
// for.
template <int SLOTS>
__device__ __forceinline__ void count_unsatisfied_bonds(const u32 (&wanted)[SLOTS], u32 spin, u32 (&count)[3]) {
    static_assert(SLOTS == 4 || SLOTS == 6 || SLOTS == 7, "the three sizes that degrees are padded to");
    u32 x[SLOTS];
#pragma unroll
    for (int k = 0; k < SLOTS; ++k) x[k] = spin ^ wanted[k];
    const u32 sum_a = parity(x[0], x[1], x[2]), carry_a = majority(x[0], x[1], x[2]);
    if constexpr (SLOTS == 4) {
        const u32 low = sum_a ^ x[3], d = sum_a & x[3];
        count[0] = ~low;
        count[1] = carry_a ^ d ^ low;
        count[2] = (carry_a & d) | (low & (carry_a ^ d));
    } else {
        const u32 sum_b = parity(x[3], x[4], x[5]), carry_b = majority(x[3], x[4], x[5]);
        const u32 seventh = SLOTS == 7 ? x[SLOTS - 1] : 0u, carry_c = majority(sum_a, sum_b, seventh);
        count[0] = parity(sum_a, sum_b, seventh);
        count[1] = parity(carry_a, carry_b, carry_c);
        count[2] = majority(carry_a, carry_b, carry_c);
    }
}

// Finds, without a field, the class (the low two bits of the padded count; 3 where a flip costs nothing, but for 7 slots) and
// the lanes that gain energy. A spin gains when it is not what most bonds want; how many want it up decides the rest, by
// symmetry for both spins.
template <int SLOTS>
__device__ __forceinline__ void classify(const u32 (&wanted)[SLOTS], u32 spin, u32& low, u32& high, u32& gain) {
    const u32 sum_a = parity(wanted[0], wanted[1], wanted[2]), carry_a = majority(wanted[0], wanted[1], wanted[2]);
    u32 most, zero;
    if constexpr (SLOTS == 4) {
        const u32 x = wanted[3];
        most = lop3<IN_A & (IN_B | IN_C)>(carry_a, sum_a, x);
        zero = lop3<(IN_A & ~IN_B & ~IN_C & 0xff) | (~IN_A & IN_B & IN_C & 0xff)>(carry_a, sum_a, x);
        low = ~(sum_a ^ x);
        high = zero | ~low;
    } else {
        const u32 sum_b = parity(wanted[3], wanted[4], wanted[5]), carry_b = majority(wanted[3], wanted[4], wanted[5]);
        const u32 seventh = SLOTS == 7 ? wanted[SLOTS - 1] : 0u;
        const u32 b0 = parity(sum_a, sum_b, seventh), carry_c = majority(sum_a, sum_b, seventh);
        const u32 b1 = parity(carry_a, carry_b, carry_c);
        most = majority(carry_a, carry_b, carry_c);
        if constexpr (SLOTS == 6) {
            low = b0;
            high = lop3<(IN_B & ~IN_C & 0xff) | (~IN_A & ~IN_B & IN_C & 0xff)>(b0, b1, most);  // 2, 3 or 4 want it up
            zero = b0 & b1;
        } else {
            low = b0 ^ most, high = b1 ^ most, zero = 0;
        }
    }
    gain = (most ^ spin) & ~zero;
}
