#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/step/network/fluid/heap.h"
#include "sim/step/network/network.h"

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
/// A start or an end leaves most rates as they are. Below some level L, filling goes exactly as it
/// did before: L is the least of the rates of the flows that ended and, for each link with new
/// flows, the level at which it would fill with all its old flows at no more than their old rates.
/// For suppose that filling first departs from the old course at a level below L. Either a link
/// fills that did not: it has new flows, and fills below its term of L. Or a link does not fill
/// that did: it lost a flow, which was no faster than that level, so L is not above it. Either
/// contradicts L. So flows slower than L keep their rates, and only the faster ones that are
/// connected to the change through links and flows faster than L are solved again, with what the
/// slow ones leave.
///
/// Flows are folded: `multiplicity` identical ones are one flow here that weighs as many.
/// Times are seconds, sizes bytes, rates bytes a second; nothing allocates once the buffers have
/// grown.
class FlowSystem {
 public:
  /// A date, or a rate without a cap.
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
  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();  // no owner

  struct Flow {       // what scans over the flows of a link read
    double rate = 0;  // 0: none yet
    double multiplicity = 1;
    std::uint32_t owner = 0;
    std::uint32_t mark =
        0;  // 2 * solve: met by its search; 2 * solve + 1: has its rate, old or new
  };
  struct Transfer {        // the rest of a flow
    double remaining = 0;  // bytes left at `settled`
    double settled = 0;
    double cap = kNever;
    const LinkId* path = nullptr;
    std::uint32_t path_size = 0;
  };
  struct Link {
    double capacity = 0;
    double weight = 0;  // flows on it, multiplicity counted
    double unused = 0;  // while solving: capacity not given away
    double rising = 0;  // while solving: flows without a rate yet, multiplicity counted
    std::uint32_t next_cap =
        0;  // while solving: first of its capped members that may still get its cap
    std::uint32_t reached = 0;  // the solve whose search met it
    bool in_use = false;        // in used_links_
    bool dirty = false;         // in dirty_links_
    bool has_new_flows = false;
  };
  struct Member {  // of a link; stale once the slot has another owner
    std::uint32_t slot, owner;
  };
  struct CappedMember {
    double cap;
    Member member;
  };

  bool alive(Member m) const { return flows_[m.slot].owner == m.owner; }
  bool has_rate(std::uint32_t slot) const { return flows_[slot].mark == 2 * solve_ + 1; }
  bool keeps_rate(const Flow& flow) const { return flow.rate < kept_below_ && flow.rate > 0; }
  std::span<const LinkId> path(std::uint32_t slot) const {
    return {transfers_[slot].path, transfers_[slot].path_size};
  }
  std::uint32_t new_slot();
  void add_member(std::uint32_t link, Member member, double cap);
  void touch(std::uint32_t link);
  void end(std::uint32_t slot);
  double level_with_new_flows(const Link& link, std::span<const Member> members) const;
  double first_changed_level() const;
  bool everything_is_affected();
  void take_everything();
  void find_affected();
  void gather(std::uint32_t link);
  void reach(std::uint32_t link);
  void fill(double now);
  std::size_t fix_capped(std::uint32_t link, double level, double now);
  std::size_t fix_all(std::uint32_t link, double level, double now);
  void fix(std::uint32_t slot, double rate, double now);
  void forecast(double now);
  void rebuild_dates();

  std::vector<Flow> flows_;  // by slot; slots are reused
  std::vector<Transfer> transfers_;
  std::vector<double> ends_;  // by slot: date at the present rate, kNever if free
  std::vector<std::uint32_t> free_slots_;
  std::size_t flow_count_ = 0, new_flow_count_ = 0;
  double slowest_ended_ = kNever;  // rate, since the last solve

  std::vector<Link> links_;
  std::vector<std::vector<Member>> members_;  // by link
  std::vector<std::vector<CappedMember>>
      capped_;  // by link: those with a cap once more, by rising cap
  std::vector<std::uint32_t> used_links_, dirty_links_;

  std::uint32_t solve_ = 0;
  int whole_solves_left_ = 0;
  bool some_keep_rates_ = true;  // worth looking for in whole solves
  double kept_below_ = 0;        // flows slower than this keep their rates
  bool whole_ = false;  // this solve takes all links and all flows that do not keep their rates
  std::vector<std::uint32_t> affected_links_, affected_flows_;  // if not whole_
  std::size_t rising_count_ = 0;
  KeyedHeap levels_;
  KeyedHeap dates_;  // of ends; may hold stale entries
  bool dates_valid_ = false;
  double next_end_ = kNever;
};

}  // namespace reckon
