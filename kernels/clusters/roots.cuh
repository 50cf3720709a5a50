// Trees of labels in memory that all threads of a block join at once: the parent of a label is a larger label, or itself of a root.
#pragma once
#include "bits/types.cuh"

// Returns the root of a label; labels on the way come nearer to it. Other threads join trees meanwhile.
__device__ __forceinline__ u32 root_of(u32* parent, u32 label) {
    for (u32 above = __ldcg(parent + label); above != label;) {
        const u32 next = __ldcg(parent + above);
        if (next == above) return above;
        parent[label] = next;
        label = next;
        above = __ldcg(parent + label);
    }
    return label;
}

// Joins the trees of two labels: the smaller root hangs on the larger one, unless it has been hung elsewhere meanwhile.
__device__ __forceinline__ void join_trees(u32* parent, u32 one, u32 other) {
    one = root_of(parent, one), other = root_of(parent, other);
    while (one != other) {
        const u32 low = min(one, other), high = max(one, other), before = atomicCAS(parent + low, low, high);
        if (before == low) break;
        one = root_of(parent, before), other = root_of(parent, high);
    }
}
