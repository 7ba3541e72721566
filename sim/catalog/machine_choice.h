#pragma once
#include <vector>

#include "sim/catalog/catalog.h"

namespace reckon {

/// What a node has to hold beside its accelerators; 0: anything does.
struct HostRoom {
  double vcpus = 0;  // a count
  Bytes memory{};
};

/// Of the provider's machines those that carry exactly `count` of the accelerator: all that have
/// them built in; and, of those that they are attached to, the smallest with at least 8 vCPUs an
/// accelerator, else the largest. Fewer starve it of input: a2-highgpu has 12 each, n1 with 4 V100
/// and p3 have 8. Services' own types are left out, and those without `room`; where none has it,
/// the choice is made as if none were asked for.
std::vector<const Machine*> machines_with(const Catalog& catalog, const Provider& provider,
                                          const Accelerator& accelerator, int count,
                                          const HostRoom& room = {});

}  // namespace reckon
