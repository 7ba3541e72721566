#include "sim/serving/service.h"

#include <algorithm>

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
        fleet_(setting),
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
  void start_batch(SimTime now, std::uint32_t replica, std::size_t size);
  void on_batch_done(SimTime now, std::uint32_t replica);
  void on_timer(SimTime now, std::uint32_t replica, std::uint32_t stamp);
  // The replicas.
  void on_look(SimTime now);
  SimDuration busy_until(SimTime now, const Replica& r) const {
    return r.busy ? r.busy_total + (now - r.busy_from) : r.busy_total;
  }
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
  queue_of(to).push_back(now);
  shared() ? offer_shared(now) : offer(now, to);
}

void ServiceLife::offer_shared(SimTime now) {
  for (const std::uint32_t k : fleet_.serving) {
    if (shared_queue_.empty()) return;
    if (!fleet_.replicas[k].busy) offer(now, k);
  }
}

/// A free replica starts what is due, or waits until it is.
void ServiceLife::offer(SimTime now, std::uint32_t replica) {
  Replica& r = fleet_.replicas[replica];
  std::deque<SimTime>& queue = queue_of(replica);
  if (r.busy || queue.empty()) return;
  const std::size_t largest = setting_.batch_times.size();
  const SimTime due = queue.front() + to_clock(setting_.batch_wait);
  if (queue.size() >= largest || due <= now)
    return start_batch(now, replica, std::min(queue.size(), largest));
  if (r.timer) return;
  r.timer = true;
  fleet_.push(due, ServiceEventKind::batch_timer, replica, ++r.stamp);
}

void ServiceLife::start_batch(SimTime now, std::uint32_t replica, std::size_t size) {
  Replica& r = fleet_.replicas[replica];
  std::deque<SimTime>& queue = queue_of(replica);
  const auto last = queue.begin() + std::ptrdiff_t(size);
  r.running.assign(queue.begin(), last);
  queue.erase(queue.begin(), last);
  r.busy = true;
  r.busy_from = now;
  r.timer = false;
  ++r.stamp;
  Seconds time = setting_.batch_times[size - 1];
  if (setting_.law == BatchTimeLaw::exponential) time *= batch_time_.exponential();
  fleet_.push(now + to_clock(time), ServiceEventKind::batch_done, replica, 0);
}

void ServiceLife::on_timer(SimTime now, std::uint32_t replica, std::uint32_t stamp) {
  Replica& r = fleet_.replicas[replica];
  if (r.stamp != stamp) return;
  r.timer = false;
  offer(now, replica);
}

void ServiceLife::on_batch_done(SimTime now, std::uint32_t replica) {
  Replica& r = fleet_.replicas[replica];
  bool any = false;
  for (const SimTime arrived : r.running) {
    if (arrived < SimTime{}) continue;
    any = true;
    ++result_.served;
    const Seconds latency = to_seconds(now - arrived);
    latencies_[slice_at(arrived)].add(latency);
  }
  if (any) ++result_.batches;
  r.running.clear();
  r.busy = false;
  r.busy_total += now - r.busy_from;
  count_busy(r.busy_from, now);
  const bool stays = r.state != ReplicaState::draining;
  if (shared() && (!stays || r.state == ReplicaState::standby)) {
    if (!stays) fleet_.release(now, replica);
    return;
  }
  offer(now, replica);
  if (!stays && !r.busy && r.queue.empty()) fleet_.release(now, replica);
}

void ServiceLife::on_look(SimTime now) {
  ReplicaLoad load{fleet_.desired(), 0, 0};
  for (const std::uint32_t k : fleet_.serving) {
    Replica& r = fleet_.replicas[k];
    const Seconds seen = to_seconds(now - r.looked_at);
    const SimDuration busy = busy_until(now, r);
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
    if (shared()) offer_shared(now);
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
    s.p50 = latencies_[k].quantile(0.50);
    s.p99 = latencies_[k].quantile(0.99);
    result_.latency.add(latencies_[k]);
    result_.ready_seconds += ready_[k];
    result_.busy_seconds += busy_[k];
  }
  result_.leases = fleet_.leases(end_);
  result_.slices = std::move(slices_);
}

/// Requests and events in the order of time; an event before a request of the same nanosecond.
ServiceResult ServiceLife::run() {
  fleet_.begin(begin_);
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
        on_timer(event.at, event.entity, event.stamp);
        break;
      case ServiceEventKind::replica_ready:
        count_ready(event.at);
        fleet_.on_ready(event.at, event.entity);
        if (shared()) offer_shared(event.at);
        break;
      case ServiceEventKind::node_unneeded:
        fleet_.on_unneeded(event.at, event.entity, event.stamp);
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
