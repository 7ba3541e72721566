#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/ids.h"
#include "sim/base/quantity.h"

// What the network is asked: activities (delays and transfers) with dependencies over links that
// flows share max-min fairly. One collective, one synchronous step or a hundred asynchronous ones
// are all such graphs. Three answer: `fluid` (fluid.h, ours), `simgrid` (sim/referee, a program of
// its own), which tests hold to 1e-9 of each other, and `closed-forms`.
namespace reckon {

enum class PathId : std::uint32_t {};
enum class ActivityId : std::uint32_t {};

/// Links and the paths over them. A full-duplex NIC is two links. Latency is not a link's: it is a
/// delay of the transfer.
class Network {
 public:
  LinkId add_link(BytesPerSecond capacity);
  PathId add_path(std::span<const LinkId> links);  // each link at most once
  PathId add_path(std::initializer_list<LinkId> links) {
    return add_path(std::span(links.begin(), links.size()));
  }

  std::span<const BytesPerSecond> links() const { return links_; }
  std::size_t path_count() const { return path_begin_.size() - 1; }
  std::span<const LinkId> path(PathId p) const {
    RECKON_CHECK(index(p) < path_count());
    const std::uint32_t begin = path_begin_[index(p)];
    return {path_links_.data() + begin, path_begin_[index(p) + 1] - begin};
  }

 private:
  std::vector<BytesPerSecond> links_;
  std::vector<LinkId> path_links_;
  std::vector<std::uint32_t> path_begin_{0};
};

/// A delay, then (if size > 0) a transfer of `size` bytes over `path`, at most at `cap` (0:
/// uncapped). `multiplicity` identical flows run side by side and each takes its own share; size
/// and cap are of one of them.
struct Activity {
  Seconds delay{};
  Bytes size{};
  PathId path{};
  BytesPerSecond cap{};
  std::uint32_t multiplicity = 1;
};

/// Starts an activity when all that it waits for have finished. Acyclic by construction: an
/// activity only waits for earlier ones.
class ActivityGraph {
 public:
  ActivityId add(const Activity& activity, std::span<const ActivityId> after = {});
  ActivityId add(const Activity& a, std::initializer_list<ActivityId> after) {
    return add(a, std::span(after.begin(), after.size()));
  }
  /// Finishes when all of them have: one node instead of n x m edges.
  ActivityId barrier(std::span<const ActivityId> after);

  std::span<const Activity> activities() const { return activities_; }
  std::span<const ActivityId> waits_for(ActivityId a) const {
    RECKON_CHECK(index(a) < activities_.size());
    const std::uint32_t begin = edge_begin_[index(a)];
    return {edges_.data() + begin, edge_begin_[index(a) + 1] - begin};
  }

 private:
  std::vector<Activity> activities_;
  std::vector<ActivityId> edges_;
  std::vector<std::uint32_t> edge_begin_{0};
};

/// Collectives that are answered by a formula of their own (ClosedForms, collective_cost.h) in
/// place of a graph of flows: those of a layout's groups, or all.
enum class ByFormula { none, of_layouts, all };

class NetworkModel {
 public:
  virtual ~NetworkModel() = default;
  /// Finish time of every activity, the graph starting at 0. Sizes are rounded down to whole bytes
  /// by every engine.
  virtual std::vector<Seconds> run(const Network& network, const ActivityGraph& graph) const = 0;
  virtual ByFormula by_formula() const { return ByFormula::none; }
  virtual std::string_view name() const = 0;
};

inline constexpr std::string_view kClosedForms = "closed-forms";

/// Our own solver. Exact max-min fairness with rate caps by progressive filling; identical flows
/// folded.
std::unique_ptr<NetworkModel> make_fluid_network();

/// No flow waits for another activity's: each finishes its delay and its size over the least share
/// that a link of its path has for its multiplicity. All collectives by formula. Exact where
/// activities that move at the same time have no link in common, else a lower bound.
std::unique_ptr<NetworkModel> make_closed_form_network();

/// What a forecast asks unless it is told whom: the solver, and formulas for the collectives of a
/// layout, which are the same to a whole byte and cost a search over layouts nothing.
std::unique_ptr<NetworkModel> make_default_network();

}  // namespace reckon
