#include "executor/comm/rank_groups.h"

#include "executor/comm/thread_communicator.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

bool together(RankAxis axis, const Layout& l, const RankPlace& a, const RankPlace& b) {
  const bool tensor = a.tensor == b.tensor, context = a.context == b.context;
  const bool data = a.data == b.data, pipeline = a.pipeline == b.pipeline;
  switch (axis) {
    case RankAxis::tensor:
      return context && data && pipeline;
    case RankAxis::context:
      return tensor && data && pipeline;
    case RankAxis::expert:
      return tensor && context && pipeline && a.data / l.expert == b.data / l.expert;
    case RankAxis::state:
      return tensor && pipeline;
    case RankAxis::expert_state:
      return tensor && pipeline && a.expert(l) == b.expert(l);
    case RankAxis::pipeline:
      return tensor && context && data;
    case RankAxis::model:
      return data;
  }
  return false;
}

}  // namespace

std::vector<int> ranks_along(RankAxis axis, const Layout& layout, int rank) {
  const RankPlace own = place_of_rank(layout, rank);
  std::vector<int> ranks;
  for (int r = 0; r < layout.accelerators(); ++r)
    if (together(axis, layout, own, place_of_rank(layout, r))) ranks.push_back(r);
  return ranks;
}

LayoutGroups make_layout_groups(Communicator& job, const Layout& layout) {
  RECKON_CHECK(job.size() == layout.accelerators());
  const auto group = [&](RankAxis axis) {
    const std::vector<int> ranks = ranks_along(axis, layout, job.rank());
    // All ranks have groups of the same sizes, so all leave out the same calls.
    return ranks.size() == 1 ? std::move(make_thread_communicators(1)[0]) : job.subgroup(ranks);
  };
  LayoutGroups groups{.place = place_of_rank(layout, job.rank())};
  groups.tensor = group(RankAxis::tensor);
  groups.context = group(RankAxis::context);
  groups.expert = group(RankAxis::expert);
  groups.state = group(RankAxis::state);
  groups.expert_state = group(RankAxis::expert_state);
  groups.pipeline = group(RankAxis::pipeline);
  groups.model = group(RankAxis::model);
  groups.pipeline_back = group(RankAxis::pipeline);
  return groups;
}

}  // namespace reckon
