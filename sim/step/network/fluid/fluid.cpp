#include "sim/step/network/fluid/fluid.h"

#include <cmath>
#include <mutex>

#include "sim/base/check.h"
#include "sim/step/network/fluid/flows.h"

namespace reckon {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Events this close (relative to the date) are one event: symmetric flows that took different sums
// to the same date must not cost a solve each. Some fifty roundings of a double.
constexpr double kSameDate = 1 + 1e-14;

double cap_of(BytesPerSecond cap) { return cap.v > 0 ? cap.v : FlowSystem::kNever; }

/// Walks one activity graph through time. Keeps its buffers from one graph to the next.
class FluidRun {
 public:
  std::vector<Seconds> run(const Network& network, const ActivityGraph& graph);

 private:
  void reset(const Network& network, const ActivityGraph& graph);
  void begin(std::uint32_t a);
  void transfer(std::uint32_t a, double size);
  void at(double date, std::uint32_t a);
  void finish(std::uint32_t a);
  void advance();

  const Network* network_ = nullptr;
  std::span<const Activity> activities_;
  double now_ = 0;
  FlowSystem flows_;
  std::vector<std::uint32_t> waiting_for_;  // by activity: predecessors that have not finished
  std::vector<std::uint32_t> successor_begin_,
      successors_;  // compressed rows: successors of each activity
  // Activities in chains, by activity: those of one folded flow, or those whose delay ends at one
  // date.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> flow_on_path_;  // by path: slot of the flow that started on it last
  KeyedHeap timers_;                         // ends of delays; id is the first of a chain
  double last_timer_date_ = -1;
  std::uint32_t last_timer_ = kNone;  // end of the chain that was added to last
  std::vector<std::uint32_t> ready_, ended_;
  std::vector<Seconds> finish_;
};

void FluidRun::reset(const Network& network, const ActivityGraph& graph) {
  network_ = &network;
  activities_ = graph.activities();
  now_ = 0;
  flows_.reset(network);
  const std::size_t n = activities_.size();
  waiting_for_.resize(n);
  next_.assign(n, kNone);
  flow_on_path_.assign(network.path_count(), kNone);
  timers_.clear();
  last_timer_date_ = -1;
  finish_.assign(n, Seconds{0});
  ready_.clear();
  successor_begin_.assign(n + 1, 0);
  for (std::size_t a = 0; a < n; ++a) {
    const auto before = graph.waits_for(ActivityId(a));
    waiting_for_[a] = std::uint32_t(before.size());
    for (const ActivityId b : before) ++successor_begin_[index(b)];
    if (before.empty()) ready_.push_back(std::uint32_t(a));
  }
  std::uint32_t sum = 0;
  for (std::uint32_t& begin : successor_begin_) begin = sum += begin;  // ends for now
  successors_.resize(sum);
  for (std::size_t a = n; a-- > 0;) {
    for (const ActivityId b : graph.waits_for(ActivityId(a)))
      successors_[--successor_begin_[index(b)]] = std::uint32_t(a);
  }
}

/// An activity's delay starts now.
void FluidRun::begin(std::uint32_t a) {
  const double delay = activities_[a].delay.count();
  if (delay > 0) {
    at(now_ + delay, a);
  } else {
    transfer(a, std::floor(activities_[a].size.v));
  }
}

/// Calls transfer() for `a` at `date`. Equal dates in a row share a timer, as in every symmetric
/// start.
void FluidRun::at(double date, std::uint32_t a) {
  if (date == last_timer_date_) {
    next_[last_timer_] = a;
  } else {
    timers_.push({date, a, 0});
  }
  last_timer_date_ = date;
  last_timer_ = a;
}

void FluidRun::transfer(std::uint32_t a, double size) {
  if (size < 1) return finish(a);
  const Activity& activity = activities_[a];
  const double cap = cap_of(activity.cap);
  const auto path = network_->path(activity.path);
  std::uint32_t& slot = flow_on_path_[index(activity.path)];
  if (slot != kNone && flows_.is_twin(slot, now_, path, size, cap)) {
    const std::uint32_t first = flows_.owner(slot);
    next_[a] = next_[first];
    next_[first] = a;
    flows_.join(slot, activity.multiplicity);
  } else {
    slot = flows_.start(now_, path, size, cap, activity.multiplicity, a);
  }
}

void FluidRun::finish(std::uint32_t a) {
  finish_[a] = Seconds{now_};
  for (std::uint32_t s = successor_begin_[a]; s < successor_begin_[a + 1]; ++s) {
    if (--waiting_for_[successors_[s]] == 0) ready_.push_back(successors_[s]);
  }
}

void FluidRun::advance() {
  const double horizon = now_ * kSameDate;
  while (!timers_.empty() && timers_.top().key <= horizon) {
    std::uint32_t a = timers_.top().id;
    if (timers_.top().key == last_timer_date_) last_timer_date_ = -1;
    timers_.pop();
    while (a != kNone) {
      const std::uint32_t following = next_[a];
      next_[a] = kNone;
      transfer(a, std::floor(activities_[a].size.v));
      a = following;
    }
  }
  ended_.clear();
  flows_.end_due(horizon, ended_);
  for (const std::uint32_t first : ended_) {
    for (std::uint32_t a = first; a != kNone; a = next_[a]) finish(a);
  }
}

std::vector<Seconds> FluidRun::run(const Network& network, const ActivityGraph& graph) {
  reset(network, graph);
  for (;;) {
    for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);  // may append
    ready_.clear();
    flows_.solve(now_);
    const double timer = timers_.empty() ? FlowSystem::kNever : timers_.top().key;
    const double next = std::min(timer, flows_.next_end());
    if (next == FlowSystem::kNever) break;
    now_ = next;
    advance();
  }
  return std::move(finish_);
}

class FluidNetwork final : public NetworkModel {
 public:
  explicit FluidNetwork(ByFormula by_formula) : by_formula_(by_formula) {}
  std::string_view name() const override { return "fluid"; }
  ByFormula by_formula() const override { return by_formula_; }

  std::vector<Seconds> run(const Network& network, const ActivityGraph& graph) const override {
    std::unique_ptr<FluidRun> run = take();
    std::vector<Seconds> finish = run->run(network, graph);
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(run));
    return finish;
  }

 private:
  std::unique_ptr<FluidRun> take() const {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return std::make_unique<FluidRun>();
    std::unique_ptr<FluidRun> run = std::move(idle_.back());
    idle_.pop_back();
    return run;
  }

  ByFormula by_formula_;
  // Warm buffers, one set for each thread that is running a graph. They hold nothing that a result
  // depends on.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<FluidRun>> idle_;
};

}  // namespace

std::unique_ptr<NetworkModel> make_fluid_network() {
  return std::make_unique<FluidNetwork>(ByFormula::none);
}

std::unique_ptr<NetworkModel> make_default_network() {
  return std::make_unique<FluidNetwork>(ByFormula::of_layouts);
}

std::vector<BytesPerSecond> max_min_rates(const Network& network,
                                          std::span<const FlowDemand> flows) {
  FlowSystem system;
  system.reset(network);
  std::vector<std::uint32_t> slots;
  for (const FlowDemand& flow : flows) {
    RECKON_CHECK(flow.multiplicity > 0);
    slots.push_back(system.start(0, network.path(flow.path), 1, cap_of(flow.cap), flow.multiplicity,
                                 std::uint32_t(slots.size())));
  }
  system.solve(0);
  std::vector<BytesPerSecond> rates;
  for (const std::uint32_t slot : slots) rates.push_back(BytesPerSecond{system.rate(slot)});
  return rates;
}

}  // namespace reckon
