#pragma once
#include <span>
#include <string_view>

#include "sim/model/graph.h"

// The zoo's models whose samples have one size: of images, volumes, records.
namespace reckon {

/// Models of one size of sample.
struct FixedModel {
  std::string_view name;
  Expected<ModelGraph> (*build)();
};
std::span<const FixedModel> fixed_models();

}  // namespace reckon
