#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/unit_text.h"

// `--sweep path=values`: the points of a grid, each as `--set` texts.
namespace reckon {

struct SweepAxis {
  std::string path;                 // dotted from the root, as in --set
  std::vector<std::string> values;  // as they would be written in the file
};

/// "cluster.pools.p100.nodes=8..64". Values:
///   8,16,32    these; commas inside brackets, braces or quotes belong to the value
///   8..64      8, doubled while it is below 64, then 64: 8 16 32 64 (8..50: 8 16 32 50)
///   8..64..8   8, 16, 24 ... up to 64
/// A range's numbers may carry one unit: 2h..16h. The error is a sentence with an example.
Parsed<SweepAxis> parse_sweep(std::string_view text);

inline constexpr std::size_t kMostSweepPoints = 10'000;
/// All combinations, the last axis fastest: one value of each axis a point.
std::vector<std::vector<std::string>> sweep_points(std::span<const SweepAxis> axes);

}  // namespace reckon
