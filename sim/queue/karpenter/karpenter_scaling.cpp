#include <algorithm>

#include "sim/base/random.h"
#include "sim/cluster/never.h"
#include "sim/queue/karpenter/karpenter_life.h"

// Nodes for pods that wait, and their end.
namespace reckon::karpenter {
namespace {

constexpr Purpose kDelays{"karpenter_node_delay"}, kAges{"karpenter_node_age"};
/// Pods that got no node are looked at again so much later [requeue of the pods' controller in
/// kubernetes-sigs/karpenter pkg/controllers/provisioning/controller.go].
constexpr SimDuration kRequeue = std::chrono::seconds(10);

}  // namespace

/// "Settings", BATCH_IDLE_DURATION and BATCH_MAX_DURATION.
void Life::watch_pending() {
  if (pending_.empty()) {
    window_.reset();
    batch_at_ = SimTime::max();
    fresh_ = 0;
    return;
  }
  if (fresh_ > 0) {
    fresh_ = 0;
    last_pod_ = now_;
    if (!window_) window_ = now_;
  }
  if (!window_) return;
  const SimTime at = std::max(now_, std::min(last_pod_ + clock_or_never(market_.spec.batch_idle),
                                             *window_ + clock_or_never(market_.spec.batch_max)));
  if (at == batch_at_) return;
  batch_at_ = at;
  schedule(at, Kind::batch);
}

void Life::provision() {
  window_.reset();
  batch_at_ = SimTime::max();
  starved_ = false;
  const std::vector<PackedPod> pods = pending_pods();
  const Packing packing = pack_pods(pods, rooms(), market_.offerings, market_.spec.node_pools,
                                    limits_left(), unavailable());
  bool refused = false;
  for (const NodeClaim& claim : packing.claims) refused = !launch(claim) || refused;
  const bool left_out =
      std::ranges::find(packing.places, Packing::Place::nowhere) != packing.places.end();
  starved_ = packing.limited && left_out;
  SimTime again = SimTime::max();
  // A claim took the largest offering from the limits, and a smaller one was launched; or it got
  // nothing.
  if (refused || (starved_ && !packing.claims.empty()))
    again = now_ + kRequeue;
  else if (left_out)
    again = available_after(now_);
  if (again == SimTime::max()) return;
  batch_at_ = again;
  schedule(batch_at_, Kind::batch);
}

std::optional<std::size_t> Life::launch(const NodeClaim& claim) {
  for (const std::size_t offering : launch_order(market_.offerings, claim.offerings))
    if (has_capacity(offering)) return start_node(offering);
  return std::nullopt;
}

std::size_t Life::start_node(std::size_t of) {
  const std::size_t n = nodes_.size();
  Node node;
  node.offering = of;
  const LaunchOffering& offering = market_.offerings[node.offering];
  node.free = offering.allocatable;
  node.requested = node.last_pod_event = now_;
  nodes_.push_back(std::move(node));
  alive_.push_back(n);
  out_.nodes.push_back({nodes_[n].offering, now_});
  ++coming_;
  int gpus = 0;
  for (const std::size_t a : alive_) gpus += offering_of(nodes_[a]).size.gpus;
  out_.most_gpus = std::max(out_.most_gpus, gpus);
  RandomStream stream(options_.seed, options_.replication, kDelays, static_cast<std::uint32_t>(n));
  schedule(now_ + delays_[nodes_[n].offering].draw(stream), Kind::ready, n);
  const NodePoolSpec& spec = node_pool_of(nodes_[n]);
  if (spec.expire_after) schedule(now_ + clock_or_never(*spec.expire_after), Kind::expired, n);
  return n;
}

void Life::come_up(std::size_t n) {
  --coming_;
  Node& node = nodes_[n];
  if (node.gone) return;
  node.ready = true;
  node.last_pod_event = now_;
  changed_ = true;
  plan_reclaim(n);
  if (!executing_ ||
      std::ranges::find(executing_->replacements, n) == executing_->replacements.end())
    return;
  if (std::ranges::all_of(executing_->replacements, [&](std::size_t r) { return nodes_[r].ready; }))
    finish_command();
}

void Life::plan_reclaim(std::size_t n) {
  if (offering_of(nodes_[n]).capacity != CapacityType::spot || reclaims_.never()) return;
  RandomStream stream(options_.seed, options_.replication, kAges, static_cast<std::uint32_t>(n));
  const SimDuration age = reclaims_.draw(stream);
  if (age >= SimTime::max() - now_) return;
  schedule(now_ + age, Kind::reclaimed, n);
  if (market_.spec.interruption_queue)
    schedule(now_ + std::max(SimDuration{0}, age - clock_or_never(market_.notice)), Kind::notice,
             n);
}

/// "Disruption", "Interruption": the node is tainted and drained ahead of the reclaim. Pods that
/// may not be evicted stay until it.
void Life::hear_of_reclaim(std::size_t n) {
  Node& node = nodes_[n];
  if (node.gone) return;
  node.tainted = node.draining = node.noticed = changed_ = true;
  drain(n);
}

void Life::reclaim(std::size_t n) {
  if (nodes_[n].gone) return;
  nodes_[n].noticed = true;
  remove(n);
}

void Life::remove(std::size_t n) {
  Node& node = nodes_[n];
  node.tainted = node.gone = true;
  std::erase(alive_, n);
  out_.nodes[n].gone = now_;
  out_.reclaims += node.noticed ? 1 : 0;
  const std::vector<std::size_t> evicted = node.pods;
  for (const std::size_t p : evicted) evict(p);
  changed_ = true;
  if (executing_ &&
      std::ranges::find(executing_->replacements, n) != executing_->replacements.end())
    give_up_command();
  if (pending_.empty() || (!starved_ && node.ready)) return;
  starved_ = false;
  if (!window_) window_ = now_;
  last_pod_ = now_;
}

void Life::evict(std::size_t p) {
  const std::size_t job = pods_[p].job;
  if (pods_[p].node == kNoNode) return;  // its job was given up with another pod
  stop(job);
  if (states_[job].in_vain == kMostInVain) return give_up(job);
  unbind(p);
  pending_.emplace(-priority_of(p), p);
  ++fresh_;
}

/// The node goes with the last of its pods; those that may be evicted are now.
void Life::drain(std::size_t n) {
  nodes_[n].tainted = nodes_[n].draining = true;
  if (!is_protected(nodes_[n])) return remove(n);
  const std::vector<std::size_t> pods = nodes_[n].pods;
  for (const std::size_t p : pods)
    if (!stays(p)) evict(p);
}

/// "Disruption", "Expiration" and "TerminationGracePeriod": pods that may not be evicted have as
/// long as the period.
void Life::expire(std::size_t n) {
  Node& node = nodes_[n];
  if (node.gone) return;
  drain(n);
  if (nodes_[n].gone) return;
  if (const auto& period = node_pool_of(node).termination_grace_period)
    schedule(now_ + clock_or_never(*period), Kind::grace_over, n);
}

std::vector<PackedPod> Life::pending_pods() const {
  std::vector<PackedPod> pods;
  for (const auto& [priority, p] : pending_) pods.push_back({p, pods_[p].asks});
  return pods;
}

std::vector<RoomOfNode> Life::rooms() const {
  std::vector<RoomOfNode> rooms;
  for (const std::size_t n : alive_)
    if (!nodes_[n].tainted) rooms.push_back({n, nodes_[n].free, nodes_[n].ready});
  return rooms;
}

/// "NodePools", "spec.limits".
std::vector<LimitsLeft> Life::limits_left() const {
  std::vector<LimitsLeft> left;
  for (const NodePoolSpec& spec : market_.spec.node_pools) left.push_back(limits_of(spec));
  for (const std::size_t n : alive_)
    left[offering_of(nodes_[n]).node_pool].take(offering_of(nodes_[n]).size);
  return left;
}

}  // namespace reckon::karpenter
