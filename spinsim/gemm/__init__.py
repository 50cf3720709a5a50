"""Matrix products by the project's own kernels: ``C = alpha A B + beta C`` and the shapes that transfer matrices need.

NumPy arrays go through NumPy, CuPy arrays through the kernels, without copies.
"""

from __future__ import annotations

from spinsim.gemm.product import NAMES as KERNELS
from spinsim.gemm.product import matmul
from spinsim.gemm.special import both_factors, left_factor, right_factor, tall_dot, tall_matmul, transpose

__all__ = ["KERNELS", "both_factors", "left_factor", "matmul", "right_factor", "tall_dot", "tall_matmul", "transpose"]
