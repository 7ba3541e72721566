#include "sim/serving/service.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "sim/base/check.h"
#include "sim/serving/arrivals.h"
#include "sim/serving/service_state.h"

namespace reckon {
namespace {

constexpr Purpose kRouting{"serving_routing"}, kBatchTime{"serving_batch_time"};

class ServiceLife {
 public:
  ServiceLife(const ServiceSetting& setting, std::uint64_t seed)
      : setting_(setting),
        fleet_(setting, seed),
        autoscaler_(setting.replicas),
        begin_(SimTime{} - to_clock(setting.warm_up)),
        end_(to_clock(setting.period)),
        requests_(setting, seed, begin_),
        routing_(seed, 0, kRouting, 0),
        batch_time_(seed, 0, kBatchTime, 0),
        counted_until_(begin_) {
    const double length = setting.period.count() / setting.slices;
    slices_.resize(std::size_t(setting.slices));
    latencies_.resize(slices_.size());
    ready_.resize(slices_.size());
    busy_.resize(slices_.size());
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      slices_[k].from = Seconds{length * double(k)};
      slices_[k].length = Seconds{length};
    }
  }

  ServiceResult run();

 private:
  // The queues.
  void on_request(SimTime now);
  std::uint32_t route();
  std::deque<SimTime>& queue_of(std::uint32_t replica) {
    return shared() ? shared_queue_ : fleet_.replicas[replica].queue;
  }
  bool shared() const { return setting_.routing == Routing::shared_queue; }
  void offer(SimTime now, std::uint32_t replica);
  void offer_shared(SimTime now);
  void start_batch(SimTime now, std::uint32_t replica);
  void on_batch_done(SimTime now, std::uint32_t replica);
  bool is_due(SimTime now, const std::deque<SimTime>& queue) const;
  SimTime due_of(const std::deque<SimTime>& queue) const {
    return queue.front() + to_clock(setting_.batch_wait);
  }
  void on_timer(SimTime now, std::uint32_t replica);
  void on_fleet_change(SimTime now);
  void on_node_reclaimed(SimTime now, std::uint32_t node);
  // The replicas.
  void on_look(SimTime now);
  // The books.
  std::size_t slice_at(SimTime at) const;
  void count_ready(SimTime now);
  void count_busy(SimTime from, SimTime to);
  void spread(std::vector<double>& slices, SimTime from, SimTime to, double weight) const;
  void finish();

  const ServiceSetting& setting_;
  Fleet fleet_;
  ReplicaAutoscaler autoscaler_;
  SimTime begin_, end_;
  RequestStream requests_;
  RandomStream routing_, batch_time_;
  std::deque<SimTime> shared_queue_;
  bool shared_timer_ = false;  // one runs, for what waits first or for what came before it
  // Of shared_queue: the serving replicas that are free, the oldest on top.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::size_t next_in_turn_ = 0;
  ServiceResult result_;
  std::vector<ServiceSlice> slices_;
  std::vector<LatencyHistogram> latencies_;
  std::vector<double> ready_, busy_;  // replica-seconds by slice
  SimTime counted_until_;             // of ready_
};

std::size_t ServiceLife::slice_at(SimTime at) const {
  const double share = double(at.time_since_epoch().count()) /
                       double(std::max<std::int64_t>(1, end_.time_since_epoch().count()));
  return std::min(slices_.size() - 1, std::size_t(std::max(0.0, share) * double(slices_.size())));
}

/// `weight` x the part of [from, to] that lies in each slice.
void ServiceLife::spread(std::vector<double>& slices, SimTime from, SimTime to,
                         double weight) const {
  from = std::max(from, SimTime{});
  to = std::min(to, end_);
  if (from >= to) return;
  const double a = to_seconds(from.time_since_epoch()).count();
  const double b = to_seconds(to.time_since_epoch()).count();
  for (std::size_t k = slice_at(from); k < slices_.size(); ++k) {
    const double begin = slices_[k].from.count();
    const double end = begin + slices_[k].length.count();
    const double inside = std::min(b, end) - std::max(a, begin);
    if (inside > 0) slices[k] += weight * inside;
    if (end >= b) break;
  }
}

/// Replicas take requests since it was last called; before their number changes.
void ServiceLife::count_ready(SimTime now) {
  const auto replicas = static_cast<int>(fleet_.serving.size());
  if (now > SimTime{} && counted_until_ < end_ && now > counted_until_) {
    const bool first = result_.ready_most == 0;
    result_.ready_least = first ? replicas : std::min(result_.ready_least, replicas);
    result_.ready_most = std::max(result_.ready_most, replicas);
  }
  spread(ready_, counted_until_, now, replicas);
  counted_until_ = std::max(counted_until_, now);
}

void ServiceLife::count_busy(SimTime from, SimTime to) { spread(busy_, from, to, 1); }

std::uint32_t ServiceLife::route() {
  const std::vector<std::uint32_t>& serving = fleet_.serving;
  const auto any = [&] {
    return serving[std::min(serving.size() - 1,
                            std::size_t(routing_.uniform() * double(serving.size())))];
  };
  if (serving.size() == 1) return serving.front();
  if (setting_.routing == Routing::round_robin) return serving[next_in_turn_++ % serving.size()];
  const std::uint32_t one = any();
  if (setting_.routing == Routing::random) return one;
  const std::uint32_t other = any();
  const auto load = [&](std::uint32_t k) {
    const Replica& r = fleet_.replicas[k];
    return r.queue.size() + r.running.size();
  };
  return load(other) < load(one) ? other : one;
}

void ServiceLife::on_request(SimTime now) {
  const bool counted = now >= SimTime{};
  if (counted) {
    ++result_.arrived;
    ++slices_[slice_at(now)].arrived;
  }
  const std::size_t places = std::size_t(setting_.queue_limit) *
                             (shared() ? std::max<std::size_t>(1, fleet_.serving.size()) : 1);
  const bool nobody = fleet_.serving.empty();
  const std::uint32_t to = shared() || nobody ? 0 : route();
  if ((nobody && !shared()) || queue_of(to).size() >= places) {
    if (counted) ++result_.refused;
    return;
  }
  if (!counted) ++result_.waiting_begin;  // less what is answered before the period
  queue_of(to).push_back(now);
  shared() ? offer_shared(now) : offer(now, to);
}

bool ServiceLife::is_due(SimTime now, const std::deque<SimTime>& queue) const {
  return queue.size() >= setting_.batch_times.size() || due_of(queue) <= now;
}

/// Free replicas start what is due; the rest waits until it is.
void ServiceLife::offer_shared(SimTime now) {
  while (!shared_queue_.empty() && !free_.empty()) {
    if (is_due(now, shared_queue_)) {
      const std::uint32_t replica = free_.top();
      free_.pop();
      start_batch(now, replica);
      continue;
    }
    if (!shared_timer_) fleet_.push(due_of(shared_queue_), ServiceEventKind::shared_timer, 0, 0);
    shared_timer_ = true;
    return;
  }
}

/// A free replica starts what is due, or waits until it is.
void ServiceLife::offer(SimTime now, std::uint32_t replica) {
  Replica& r = fleet_.replicas[replica];
  if (r.busy || r.queue.empty()) return;
  if (is_due(now, r.queue)) return start_batch(now, replica);
  if (!r.timer) fleet_.push(due_of(r.queue), ServiceEventKind::batch_timer, replica, 0);
  r.timer = true;
}

void ServiceLife::start_batch(SimTime now, std::uint32_t replica) {
  Replica& r = fleet_.replicas[replica];
  std::deque<SimTime>& queue = queue_of(replica);
  const std::size_t size = std::min(queue.size(), setting_.batch_times.size());
  const auto last = queue.begin() + std::ptrdiff_t(size);
  r.running.assign(queue.begin(), last);
  queue.erase(queue.begin(), last);
  r.busy = true;
  r.busy_from = now;
  Seconds time = setting_.batch_times[size - 1];
  if (setting_.law == BatchTimeLaw::exponential) time *= batch_time_.exponential();
  fleet_.push(now + to_clock(time), ServiceEventKind::batch_done, replica, 0);
}

/// The request that it was set for may have gone with a full batch: what waits now is due later,
/// and offer() sets the timer anew. So there is never more than one of a queue.
void ServiceLife::on_timer(SimTime now, std::uint32_t replica) {
  Replica& r = fleet_.replicas[replica];
  r.timer = false;
  if (r.state != ReplicaState::gone) offer(now, replica);
}

void ServiceLife::on_batch_done(SimTime now, std::uint32_t replica) {
  Replica& r = fleet_.replicas[replica];
  if (r.state == ReplicaState::gone) return;  // its node was taken away before the end
  for (const SimTime arrived : r.running)
    if (arrived >= SimTime{})
      latencies_[slice_at(arrived)].add(to_seconds(now - arrived) + setting_.outside);
  if (now < SimTime{}) {
    result_.waiting_begin -= r.running.size();
  } else if (now < end_) {
    result_.served += r.running.size();
    ++result_.batches;
  }
  r.running.clear();
  r.busy = false;
  r.busy_total += now - r.busy_from;
  count_busy(r.busy_from, now);
  if (!shared()) offer(now, replica);
  if (r.state == ReplicaState::draining && !r.busy && r.queue.empty()) fleet_.release(now, replica);
  if (!shared()) return;
  if (r.state == ReplicaState::serving) free_.push(replica);
  offer_shared(now);
}

/// Replicas came, went or changed places: who is free is counted anew.
void ServiceLife::on_fleet_change(SimTime now) {
  if (!shared()) return;
  free_ = {};
  for (const std::uint32_t k : fleet_.serving)
    if (!fleet_.replicas[k].busy) free_.push(k);
  offer_shared(now);
}

/// What its replicas had not answered is lost.
void ServiceLife::on_node_reclaimed(SimTime now, std::uint32_t node) {
  const bool kept = fleet_.nodes[node].kept();
  for (const std::uint32_t k : fleet_.on_reclaimed(now, node)) {
    Replica& r = fleet_.replicas[k];
    const std::uint64_t had = r.running.size() + r.queue.size();
    if (now < SimTime{})
      result_.waiting_begin -= had;
    else if (now < end_)
      result_.lost += had;
    if (r.busy) count_busy(r.busy_from, now);
    r.running.clear();
    r.queue.clear();
    r.busy = false;
  }
  if (kept && now >= SimTime{} && now < end_) ++result_.reclaims;
}

void ServiceLife::on_look(SimTime now) {
  ReplicaLoad load{fleet_.desired(), 0, 0};
  for (const std::uint32_t k : fleet_.serving) {
    Replica& r = fleet_.replicas[k];
    const Seconds seen = to_seconds(now - r.looked_at);
    const SimDuration busy = r.busy_until(now);
    if (seen.count() > 0) {
      ++load.ready;
      load.utilization += to_seconds(busy - r.busy_at_look) / seen;
    }
    r.busy_at_look = busy;
    r.looked_at = now;
  }
  const int desired = autoscaler_.look(now, load);
  if (desired != fleet_.desired()) {
    count_ready(now);
    fleet_.scale(now, desired);
    on_fleet_change(now);
  }
  const SimTime next = now + to_clock(setting_.replicas.sync_period);
  if (next < end_) fleet_.push(next, ServiceEventKind::look, 0, 0);
}

void ServiceLife::finish() {
  count_ready(end_);
  for (std::size_t k = 0; k < slices_.size(); ++k) {
    ServiceSlice& s = slices_[k];
    s.ready = ready_[k] / s.length.count();
    s.utilization = ready_[k] > 0 ? std::min(1.0, busy_[k] / ready_[k]) : 0;
    s.timed = latencies_[k].count();
    s.p50 = latencies_[k].quantile(0.50);
    s.p99 = latencies_[k].quantile(0.99);
    result_.latency.add(latencies_[k]);
    result_.ready_seconds += ready_[k];
    result_.busy_seconds += busy_[k];
  }
  result_.waiting_end =
      result_.waiting_begin + result_.arrived - result_.refused - result_.served - result_.lost;
  result_.leases = fleet_.leases(end_);
  result_.slices = std::move(slices_);
}

/// Requests and events in the order of time; an event before a request of the same nanosecond.
ServiceResult ServiceLife::run() {
  fleet_.begin(begin_);
  on_fleet_change(begin_);
  if (setting_.replicas.max > setting_.replicas.min)
    fleet_.push(begin_ + to_clock(setting_.replicas.sync_period), ServiceEventKind::look, 0, 0);
  SimTime request = requests_.next();
  while (request != SimTime::max() || fleet_.has_events()) {
    if (request < fleet_.next_at()) {
      on_request(request);
      request = requests_.next();
      continue;
    }
    const ServiceEvent event = fleet_.pop();
    switch (event.kind) {
      case ServiceEventKind::batch_done:
        on_batch_done(event.at, event.entity);
        break;
      case ServiceEventKind::batch_timer:
        on_timer(event.at, event.entity);
        break;
      case ServiceEventKind::shared_timer:
        shared_timer_ = false;
        offer_shared(event.at);
        break;
      case ServiceEventKind::replica_ready:
        count_ready(event.at);
        fleet_.on_ready(event.at, event.entity);
        on_fleet_change(event.at);
        break;
      case ServiceEventKind::node_unneeded:
        fleet_.on_unneeded(event.at, event.entity, event.stamp);
        break;
      case ServiceEventKind::node_notice:
        count_ready(event.at);
        fleet_.on_notice(event.at, event.entity);
        on_fleet_change(event.at);
        break;
      case ServiceEventKind::node_reclaimed:
        on_node_reclaimed(event.at, event.entity);
        break;
      case ServiceEventKind::look:
        on_look(event.at);
        break;
    }
  }
  finish();
  return std::move(result_);
}

}  // namespace

ServiceResult simulate_service(const ServiceSetting& setting, std::uint64_t seed) {
  RECKON_CHECK(!setting.batch_times.empty());
  RECKON_CHECK(!setting.requests_per_second.empty());
  RECKON_CHECK(setting.period.count() > 0);
  RECKON_CHECK(setting.slices > 0);
  RECKON_CHECK(setting.replicas.initial >= 1);
  return ServiceLife(setting, seed).run();
}

}  // namespace reckon
