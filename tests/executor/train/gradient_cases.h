#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/model/graph.h"

namespace reckon::test {

/// A small network around what is to be tried: its layers have gradients to take and to give.
struct GradientCase {
  std::string name;
  std::function<ModelGraph()> make;
};
/// Every kind of layer that is trained, alone and together with others as models have them.
std::vector<GradientCase> all_gradient_cases();

}  // namespace reckon::test
