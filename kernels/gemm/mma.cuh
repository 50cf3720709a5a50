// Float64 products on the tensor cores. Lane 4 g + t of a warp holds, of the 16 x 8 tile of C, row g (c[0], c[1]) and row
// g + 8 (c[2], c[3]), columns 2 t and 2 t + 1; of each four columns of A column t (rows g, g + 8); of each four rows of B
// row t, column g.
#pragma once

namespace products {

__device__ __forceinline__ void mma_8x8x4(double& c0, double& c1, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c0), "+d"(c1)
        : "d"(a), "d"(b));
}

// C += A B with A of 16 x 4 STEPS, B of 4 STEPS x 8: a[2 s], a[2 s + 1] are rows g and g + 8 of step s. HOPPER: by one
// instruction m16n8k(4 STEPS), of chips from sm_90 on; others take m8n8k4.
template <int STEPS, bool HOPPER>
__device__ __forceinline__ void mma(double (&c)[4], const double (&a)[2 * STEPS], const double (&b)[STEPS]) {
    static_assert(STEPS == 1 || STEPS == 2 || STEPS == 4, "m16n8k4, k8 or k16");
#if __CUDA_ARCH__ >= 900
    if constexpr (HOPPER && STEPS == 1) {
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(b[0]));
        return;
    } else if constexpr (HOPPER && STEPS == 2) {
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
        return;
    } else if constexpr (HOPPER && STEPS == 4) {
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
            "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
              "d"(b[1]), "d"(b[2]), "d"(b[3]));
        return;
    }
#endif
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        mma_8x8x4(c[0], c[1], a[2 * s], b[s]);
        mma_8x8x4(c[2], c[3], a[2 * s + 1], b[s]);
    }
}

}  // namespace products
