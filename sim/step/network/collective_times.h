#pragma once
#include "sim/step/network/all_reduces.h"

// The times of the collectives' graphs (collectives.h) in closed form, for what asks often; those
// of all-reduces: all_reduces.h. Tests hold them to the graphs on both network models.
namespace reckon {

Seconds all_gather_time(const Fabric& fabric, Bytes size);
Seconds reduce_scatter_time(const Fabric& fabric, Bytes size);
Seconds all_to_all_time(const Fabric& fabric, Bytes size);
Seconds send_time(const Fabric& fabric, Bytes size);

/// One round of a ring: every rank sends `size` to the next one.
Seconds ring_hop_time(const Fabric& fabric, Bytes size);

/// Ranks 0, stride, 2 stride, ... (`size` of them) of a job whose ranks fill its nodes one after
/// the other, together with every other group like it: how many of them share a node, and their
/// part of its NIC while all groups do the same at once.
Fabric group_of(const Fabric& job, std::int64_t stride, std::int64_t size);

}  // namespace reckon
