"""Matrix products by the project's own kernels: ``C = alpha A B + beta C`` and the shapes that transfer matrices need.

NumPy arrays go through NumPy, CuPy arrays through the kernels, without copies.
"""

from __future__ import annotations

from spinsim.gemm.factors import both_factors, left_factor, right_factor
from spinsim.gemm.product import matmul
from spinsim.gemm.rungs import NAMES as KERNELS
from spinsim.gemm.skinny import tall_dot, tall_matmul
from spinsim.gemm.transposing import transpose

__all__ = ["KERNELS", "both_factors", "left_factor", "matmul", "right_factor", "tall_dot", "tall_matmul", "transpose"]
