#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/step/fluid_heap.h"
#include "sim/step/network.h"

namespace reckon {

/// The flows in flight, their max-min fair rates and the dates at which they will end.
///
/// Rates come from exact progressive filling [Bertsekas & Gallager, Data Networks, 2nd ed., 6.5.2]:
/// all rates rise together; where a link fills, its flows keep the level reached and the others
/// rise on. The next link to fill is the one with the least (unused capacity) / (flows still
/// rising). These levels only grow while filling goes on, so a heap of links with out-of-date keys
/// suffices: a key that has grown goes back down. A cap is looked at when a link of its flow is
/// about to fill: a cap at or below that link's level binds whatever happens later, as the level of
/// every link of that flow is at least as high and never falls. So caps need no order of their own.
///
/// A start or an end changes rates only among flows connected to it through shared links (its
/// component), so only these are solved again; where the component is nearly everything, all are,
/// which needs no search and no heap of dates.
///
/// Flows are folded: `multiplicity` identical ones are one flow here that weighs as many.
/// Times are seconds, sizes bytes, rates bytes a second; nothing allocates once the buffers have
/// grown.
class FlowSystem {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void reset(const Network& network);

  /// `owner`: any number that no other flow since reset() had. `cap` kNever: none. Returns the
  /// flow's slot.
  std::uint32_t start(double now, std::span<const LinkId> path, double size, double cap,
                      double multiplicity, std::uint32_t owner);
  /// Whether the flow in `slot` started at this very moment with these properties, so that another
  /// can join it.
  bool is_twin(std::uint32_t slot, double now, std::span<const LinkId> path, double size,
               double cap) const;
  void join(std::uint32_t slot, double multiplicity);
  /// New rates after starts and ends at `now`.
  void solve(double now);

  double rate(std::uint32_t slot) const { return flows_[slot].rate; }
  std::uint32_t owner(std::uint32_t slot) const { return flows_[slot].owner; }
  /// When the next flow ends at the present rates.
  double next_end() const { return next_end_; }
  /// Ends every flow that is due by `horizon` and appends its owner to `owners`.
  void end_due(double horizon, std::vector<std::uint32_t>& owners);

 private:
  struct Flow {
    double rate = 0;
    double remaining = 0;  // bytes left at `settled`
    double settled = 0;
    double cap = kNever;
    double multiplicity = 1;
    const LinkId* path = nullptr;
    std::uint32_t path_size = 0;
    std::uint32_t owner = 0;
    std::uint32_t fixed = 0;  // the solve that gave it its rate
    std::uint32_t seen = 0;   // the solve whose search reached it
  };
  struct Link {
    double capacity = 0;
    double weight = 0;         // flows on it, multiplicity counted
    double unused = 0;         // while filling: capacity not given away
    double rising = 0;         // while filling: flows without a rate yet, multiplicity counted
    std::uint32_t capped = 0;  // kinds of flows on it that have a cap
    std::uint32_t seen = 0;    // the solve whose search reached it
    bool listed = false;       // in active_links_
    bool dirty = false;        // in dirty_links_
  };
  struct Member {  // of a link; stale once the slot has another owner
    std::uint32_t slot, owner;
  };

  bool alive(Member m) const { return flows_[m.slot].owner == m.owner; }
  void touch(std::uint32_t link);
  void drop_stale(std::vector<Member>& members);
  void end(std::uint32_t slot);
  bool find_component();
  void take_everything();
  void fill(double now, std::size_t rising);
  std::size_t fix_members(std::uint32_t link, double level, bool only_capped, double now);
  void fix(std::uint32_t slot, double rate, double now);
  void forecast_after_partial(double now);
  void forecast_after_whole();

  std::vector<Flow> flows_;   // by slot; slots are reused
  std::vector<double> ends_;  // by slot: date at the present rate, kNever if free
  std::vector<std::uint32_t> free_slots_;
  std::size_t flow_count_ = 0;
  std::vector<Link> links_;
  std::vector<std::vector<Member>> members_;  // by link
  std::vector<std::uint32_t> active_links_, dirty_links_;

  std::uint32_t solve_ = 0;
  int whole_solves_left_ = 0;
  std::vector<std::uint32_t> component_links_, component_flows_;  // what fill() works on
  bool partial_ = false;
  KeyedHeap levels_;
  bool dates_valid_ = false;
  KeyedHeap dates_;  // may hold stale entries
  double next_end_ = kNever;
};

}  // namespace reckon
