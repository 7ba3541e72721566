#pragma once
#include <string>
#include <vector>

#include "cli/init/init_scenario.h"

namespace reckon::cli {

/// One way to get the accelerators: so many of them on so many equal nodes in one region.
struct Offer {
  Provider provider;
  std::string region;
  const Machine* machine = nullptr;  // nullptr: a TPU slice
  const TpuSlice* slice = nullptr;
  int per_node = 1, nodes = 1;
  std::string size;  // of a machine that the catalog does not have: "{vcpu: 8, ...}"
};

/// All that hold what the answers ask for. Errors: none does, with what is offered instead.
Expected<std::vector<Offer>> offers_for(const InitAnswers& answers, const Catalog& catalog);

}  // namespace reckon::cli
