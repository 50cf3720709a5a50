// Products of bits on the tensor cores: c += the number of places where both A and B have ones. Lane 4 g + t of a warp holds, of the
// 16 x 8 tile of C, row g (c[0], c[1]) and row g + 8 (c[2], c[3]), columns 2 t and 2 t + 1; of A's eight words of columns number t and
// t + 4 (rows g, g + 8, g, g + 8); of B those words of column g.
#pragma once
#include "bits/types.cuh"

__device__ __forceinline__ void mma_bits(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
