#include "sim/queue/backfill/overflow.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/queue/job_times.h"

namespace reckon {
namespace {

constexpr Purpose kNodeReclaims{"queue_overflow_reclaim"};

}  // namespace

OverflowNodes::OverflowNodes(const OverflowSpec& spec, std::uint64_t seed,
                             std::uint32_t replication)
    : spec_(spec), seed_(seed), replication_(replication) {
  RECKON_CHECK(spec.gpus > 0);
}

OverflowNodes::Node OverflowNodes::bought(SimTime ready) {
  Node node{ready, ready, SimTime::max()};
  if (spec_.mean_time_to_reclaim) {
    RandomStream stream(seed_, replication_, kNodeReclaims, bought_);
    node.reclaimed = ready + to_clock(stream.exponential() * *spec_.mean_time_to_reclaim);
  }
  ++bought_;
  return node;
}

void OverflowNodes::pay(const Node& node, SimTime until) {
  use_.node_seconds +=
      std::max(0.0, to_seconds(std::min(until, node.reclaimed) - node.ready).count());
}

/// Those that idled for long, or were taken while they idled.
void OverflowNodes::give_back(SimTime now) {
  std::erase_if(nodes_, [&](const Node& node) {
    const SimTime at =
        std::min(node.reclaimed, node.free + to_clock(spec_.scale_down_unneeded_time));
    if (node.free > now || at > now) return false;
    pay(node, at);
    return true;
  });
}

std::optional<OverflowNodes::Stay> OverflowNodes::run(std::size_t job, int gpus, SimDuration work,
                                                      SimTime now) {
  give_back(now);
  const auto wanted = static_cast<std::size_t>(nodes_of(gpus));
  const auto idle = static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [&](const Node& node) { return node.free <= now; }));
  const std::size_t more = wanted - std::min(wanted, idle);
  if (nodes_.size() + more > static_cast<std::size_t>(spec_.nodes)) return std::nullopt;
  const SimDuration provisioning = to_clock(spec_.provisioning_time);
  std::vector<Node> own;
  for (std::size_t k = nodes_.size(); k-- > 0 && own.size() < wanted - more;) {
    if (nodes_[k].free > now) continue;
    own.push_back(nodes_[k]);
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(k));
  }
  for (std::size_t k = 0; k < more; ++k) own.push_back(bought(now + provisioning));
  Stay stay{more > 0 ? now + provisioning : now, {}, 0};
  SimTime at = stay.start;
  SimDuration left = work;
  while (stay.reclaims < kMostReclaims) {
    const auto first = std::ranges::min_element(own, {}, &Node::reclaimed);
    if (first->reclaimed >= at + left) break;
    // Taken while it waits for others, it costs no work.
    const SimDuration done = work - left + std::max(SimDuration{0}, first->reclaimed - at);
    left = work - kept_work(done, spec_.checkpoint);
    pay(*first, first->reclaimed);
    const SimTime again = first->reclaimed + provisioning;
    *first = bought(again);
    at = std::max(at, again);
    ++stay.reclaims;
  }
  stay.end = at + left;
  for (Node& node : own) {
    if (node.reclaimed < stay.end) node.reclaimed = stay.end;  // the last of so many
    node.free = stay.end;
    nodes_.push_back(node);
  }
  ++use_.jobs;
  use_.reclaims += stay.reclaims;
  const double seconds = to_seconds(stay.end - stay.start).count();
  use_.gpu_seconds += seconds * gpus;
  use_.of_job.emplace_back(job, seconds * double(wanted));
  return stay;
}

OverflowUse OverflowNodes::use() {
  give_back(SimTime::max());
  return use_;
}

}  // namespace reckon
