#pragma once
#include "executor/comm/communicator.h"
#include "sim/scenario/rank_places.h"

// This rank among those that hold one copy of a model together, and those that share its experts
// out.
namespace reckon {

/// Which of how many.
struct GroupPlace {
  int rank = 0, ranks = 1;
};

struct ModelPlace {
  GroupPlace tensor, context, expert;
  bool sequence_parallel = false;
  bool alone() const { return tensor.ranks * context.ranks * expert.ranks == 1; }
};
inline ModelPlace place_in_model(const Layout& layout, const RankPlace& rank) {
  return {.tensor = {rank.tensor, layout.tensor},
          .context = {rank.context, layout.context},
          .expert = {rank.expert(layout), layout.expert},
          .sequence_parallel = layout.sequence_parallel && layout.tensor > 1};
}

/// The communicators of those groups; null: of one rank. They must outlive what uses them, and are
/// used by the thread that computes.
struct ModelGroups {
  Communicator *tensor = nullptr, *context = nullptr, *expert = nullptr;
};

}  // namespace reckon
