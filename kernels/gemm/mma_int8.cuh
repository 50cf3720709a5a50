// Products of signed bytes on the tensor cores. Lane 4 g + t of a warp holds, of the 16 x 8 tile of C, row g (c[0], c[1]) and
// row g + 8 (c[2], c[3]), columns 2 t and 2 t + 1; of A's 32 columns 4 t to 4 t + 3 and 16 more (rows g, g + 8, g, g + 8); of B
// the rows of these numbers in column g. Four bytes a word, the first one lowest.
#pragma once
#include "bits/types.cuh"

__device__ __forceinline__ void mma_int8(int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
