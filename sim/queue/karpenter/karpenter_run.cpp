#include "sim/queue/karpenter/karpenter_run.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/base/check.h"
#include "sim/cluster/never.h"
#include "sim/queue/karpenter/karpenter_life.h"

namespace reckon {
namespace {

NodeRoom asked_by(const PodRequest& pod) { return {pod.cpu_milli, pod.memory_mib, pod.gpus}; }

}  // namespace

namespace karpenter {
namespace {

/// While nothing runs or comes, a look of the disruption loop may still free what limits hold; who
/// waited so long in vain waits for ever.
constexpr SimDuration kInVain = std::chrono::hours(7 * 24);

}  // namespace

Life::Life(std::span<const JobRequest> jobs, const KarpenterMarket& market,
           const KubernetesSpec& kubernetes, const RunOptions& options, KarpenterRun& out)
    : jobs_(jobs),
      market_(market),
      kubernetes_(kubernetes),
      options_(options),
      out_(out),
      reclaims_(market.reclaim),
      states_(jobs.size()) {
  RECKON_CHECK(market.delays.size() == market.offerings.size());
  RECKON_CHECK(!reclaims_.from_trace());
  for (const Fact<Seconds>& delay : market.delays) delays_.emplace_back(delay);
  make_markets();
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t j) { return jobs[j].submit; });
  for (const std::size_t j : order) {
    JobState& state = states_[j];
    state.first_pod = pods_.size();
    state.pods = static_cast<std::size_t>(jobs[j].workers);
    state.left = std::get<FixedTime>(jobs[j].work).time;
    const NodeRoom asks = asked_by(jobs[j].worker);
    bool can_end = false;
    for (std::size_t o = 0; o < market.offerings.size() && !can_end; ++o)
      can_end = fits_node(jobs[j], market, o) &&
                gets_on(jobs[j], longest_stay(jobs[j], market, o), kubernetes.checkpoint);
    if (!can_end) {
      out.run.never.push_back(j);
      continue;
    }
    for (std::size_t k = 0; k < state.pods; ++k) pods_.push_back({j, asks, kNoNode, {}});
    ++unfinished_;
    ++to_come_;
    schedule(jobs[j].submit, Kind::submit, j);
  }
  for (const Seconds& at : market.drift) schedule(SimTime{} + clock_or_never(at), Kind::drift);
  std::ranges::sort(out.run.never);
}

void Life::schedule(SimTime at, Kind kind, std::size_t entity, std::size_t stamp) {
  queue_.push({at, ++events_, kind, entity, stamp});
}

/// All that happens at one time happens before the schedulers look.
void Life::simulate() {
  while (!queue_.empty() && goes_on()) {
    now_ = queue_.top().at;
    while (!queue_.empty() && queue_.top().at == now_) {
      const Event event = queue_.top();
      queue_.pop();
      handle(event);
    }
    bind_pods();
    watch_pending();
    plan_poll();
  }
  for (const std::size_t n : alive_) out_.nodes[n].gone = now_;
  out_.starved = static_cast<std::int64_t>(unfinished_);
  out_.hopeless = static_cast<std::int64_t>(hopeless_);
}

bool Life::goes_on() const {
  if (unfinished_ == hopeless_) return false;
  if (running_ > 0 || to_come_ > 0 || coming_ > 0) return true;
  return queue_.top().at < last_pod_ + kInVain;
}

void Life::handle(const Event& event) {
  switch (event.kind) {
    case Kind::submit:
      return submit(event.entity);
    case Kind::ended:
      if (event.stamp == states_[event.entity].stamp) end(event.entity);
      return;
    case Kind::batch:
      if (event.at == batch_at_) provision();
      return;
    case Kind::ready:
      return come_up(event.entity);
    case Kind::notice:
      return hear_of_reclaim(event.entity);
    case Kind::reclaimed:
      return reclaim(event.entity);
    case Kind::expired:
      return expire(event.entity);
    case Kind::grace_over:
      if (!nodes_[event.entity].gone) remove(event.entity);
      return;
    case Kind::poll:
      if (event.at == poll_at_) poll();
      return;
    case Kind::validate:
      return validate();
    case Kind::drift:
      return drift();
  }
}

void Life::submit(std::size_t job) {
  --to_come_;
  const JobState& state = states_[job];
  for (std::size_t p = state.first_pod; p < state.first_pod + state.pods; ++p)
    pending_.emplace(-priority_of(p), p);
  fresh_ += state.pods;
}

void Life::end(std::size_t job) {
  JobState& state = states_[job];
  out_.run.jobs[job].end = now_;
  out_.spans.push_back({job, state.since, now_});
  state.running = false;
  state.done = true;
  --running_;
  --unfinished_;
  for (std::size_t p = state.first_pod; p < state.first_pod + state.pods; ++p) unbind(p);
}

/// kube-scheduler: of pods that ask for the same, one that finds no room speaks for all.
void Life::bind_pods() {
  std::vector<NodeRoom> in_vain;
  for (auto next = pending_.begin(); next != pending_.end();) {
    const std::size_t pod = std::get<1>(*next);
    const NodeRoom& asks = pods_[pod].asks;
    if (std::ranges::find(in_vain, asks) != in_vain.end()) {
      ++next;
      continue;
    }
    const std::size_t node = node_for(asks);
    if (node == kNoNode) {
      in_vain.push_back(asks);
      ++next;
      continue;
    }
    next = pending_.erase(next);
    bind(pod, node);
  }
}

std::size_t Life::node_for(const NodeRoom& asks) const {
  std::size_t best = kNoNode;
  double most = 0;
  for (const std::size_t n : alive_) {
    const Node& node = nodes_[n];
    if (!node.ready || node.tainted || !node.free.holds(asks)) continue;
    const double score = fit_score(node, offering_of(node).allocatable, asks, kubernetes_.scoring);
    if (best != kNoNode && score <= most) continue;
    best = n;
    most = score;
  }
  return best;
}

void Life::bind(std::size_t p, std::size_t n) {
  Pod& pod = pods_[p];
  Node& node = nodes_[n];
  pod.node = n;
  pod.bound = now_;
  node.free -= pod.asks;
  node.pods.push_back(p);
  node.last_pod_event = now_;
  changed_ = true;
  JobState& state = states_[pod.job];
  if (++state.bound < state.pods) return;
  JobTimes& times = out_.run.jobs[pod.job];
  if (!times.start) times.start = now_;
  state.running = true;
  state.since = now_;
  ++running_;
  schedule(now_ + state.left, Kind::ended, pod.job, ++state.stamp);
}

void Life::unbind(std::size_t p) {
  Pod& pod = pods_[p];
  const std::size_t of = pod.node;
  Node& node = nodes_[of];
  if (pod.asks.gpus > 0) {
    const NodePart part{static_cast<int>(of), pod.asks.gpus};
    if (pod.bound < now_) out_.holdings.push_back({pod.job, part, pod.bound, now_});
    out_.run.gpu_seconds += pod.asks.gpus * to_seconds(now_ - pod.bound).count();
  }
  node.free += pod.asks;
  std::erase(node.pods, p);
  node.last_pod_event = now_;
  changed_ = true;
  pod.node = kNoNode;
  --states_[pod.job].bound;
  if (node.draining && !node.gone && node.pods.empty()) remove(of);
}

/// A pod of a running job was evicted.
void Life::stop(std::size_t job) {
  JobState& state = states_[job];
  if (!state.running) return;
  if (state.since < now_) out_.spans.push_back({job, state.since, now_});
  const SimDuration kept = kept_work(now_ - state.since, kubernetes_.checkpoint);
  state.left -= kept;
  state.in_vain = kept > SimDuration{0} ? 0 : state.in_vain + 1;
  state.running = false;
  ++state.stamp;
  --running_;
  ++out_.run.jobs[job].preemptions;
}

/// It waits for ever, and holds nothing.
void Life::give_up(std::size_t job) {
  JobState& state = states_[job];
  ++hopeless_;
  for (std::size_t p = state.first_pod; p < state.first_pod + state.pods; ++p)
    if (pods_[p].node != kNoNode)
      unbind(p);
    else
      pending_.erase({-priority_of(p), p});
}

}  // namespace karpenter

bool fits_node(const JobRequest& job, const KarpenterMarket& market, std::size_t offering) {
  const LaunchOffering& o = market.offerings[offering];
  return o.allocatable.holds(asked_by(job.worker)) &&
         limits_of(market.spec.node_pools[o.node_pool]).admits(o.size);
}

SimDuration longest_stay(const JobRequest& job, const KarpenterMarket& market,
                         std::size_t offering) {
  const NodePoolSpec& spec = market.spec.node_pools[market.offerings[offering].node_pool];
  const bool stays = keeps_its_nodes(job, market);
  if (!spec.expire_after || (stays && !spec.termination_grace_period)) return SimDuration::max();
  const SimDuration grace = stays ? clock_or_never(*spec.termination_grace_period) : SimDuration{0};
  const SimDuration life = clock_or_never(*spec.expire_after);
  if (grace > SimDuration::max() - life) return SimDuration::max();
  const SimDuration comes = DelayLaw(market.delays[offering]).least();
  return std::max(SimDuration{0}, life + grace - comes);
}

bool gets_on(const JobRequest& job, SimDuration stay, std::optional<Seconds> checkpoint) {
  return std::get<FixedTime>(job.work).time < stay || kept_work(stay, checkpoint) > SimDuration{0};
}

KarpenterRun run_karpenter(std::span<const JobRequest> jobs, const KarpenterMarket& market,
                           const KubernetesSpec& kubernetes, std::size_t first_measured,
                           std::size_t measured, const RunOptions& options) {
  KarpenterRun out;
  out.run = queue_of_jobs(jobs, first_measured, measured);
  karpenter::Life(jobs, market, kubernetes, options, out).simulate();
  summarize(out.run, 0);
  double gpu_seconds = 0;
  for (const LaunchedNode& node : out.nodes)
    gpu_seconds +=
        market.offerings[node.offering].size.gpus * to_seconds(node.gone - node.requested).count();
  if (gpu_seconds > 0) out.run.utilization = out.run.gpu_seconds / gpu_seconds;
  return out;
}

}  // namespace reckon
