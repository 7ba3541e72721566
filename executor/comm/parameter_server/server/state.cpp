#include "executor/comm/parameter_server/server/state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/rank_parts.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::size_t kStepsRemembered = 64;
}  // namespace

ServerState::ServerState(const ServerJob& job, int server)
    : job_(job),
      server_(server),
      finished_(std::size_t(job.workers), -1),
      progress_(std::size_t(job.workers)),
      delays_(std::size_t(job.workers)) {
  RECKON_CHECK(job.workers >= 1);
  RECKON_CHECK(job.backup_workers >= 0 && job.backup_workers < job.workers);
  for (std::size_t g = 0; g < job.keys.groups.size(); ++g) {
    const std::size_t count = job.keys.count_on(g, server);
    Group& group = groups_.emplace_back();
    group.values.resize(count);
    group.gradients.resize(std::size_t(job.workers));
    group.read.resize(std::size_t(job.workers));
    if (job.keys.is_table(g)) {
      const ParameterRange whole = job.keys.groups[g];
      const auto trained = part_of(job.trained, whole.first, whole.count);
      const bool decays = !trained.empty() && trained.front().decays;
      group.optimizer.emplace(job.optimizer, count, std::vector<TrainedRange>{{0, count, decays}});
      group.places.resize(std::size_t(job.workers));
      group.width = job.keys.tables[g].width;
      continue;
    }
    group.sum.resize(count);
    group.optimizer.emplace(job.optimizer, count,
                            part_of(job.trained, job.keys.part(g, server).first, count));
    for (auto& buffer : group.gradients) buffer.resize(count);
  }
}

void ServerState::initialize(std::size_t group, std::span<const float> values) {
  Group& g = groups_[group];
  RECKON_CHECK(values.size() == g.values.size());
  const std::lock_guard lock(mutex_);
  if (g.initialized) return;
  std::ranges::copy(values, g.values.begin());
  g.initialized = true;
  changed_.notify_all();
}

std::span<float> ServerState::push_buffer(int worker, std::size_t group) {
  return groups_[group].gradients[std::size_t(worker)];
}

bool ServerState::pushed(int worker, std::int64_t step, std::size_t group) {
  std::unique_lock lock(mutex_);
  Group& g = groups_[group];
  if (!std::exchange(g.begun, true)) {
    g.version = job_.synchronous ? step : steps_begun_with();
    if (job_.synchronous)
      for (std::int64_t& last : finished_) last = std::max(last, step - 1);
  }
  if (!job_.synchronous) return step > finished_[std::size_t(worker)];
  if (step > g.version || std::ranges::count(g.arrived, worker) > 0) return false;
  if (step < g.version || g.arrived.size() == needed()) {
    ++report_.dropped;
    return true;
  }
  g.arrived.push_back(worker);
  apply_complete(lock);
  return true;
}

/// Updates that a resumed job's optimizer state has seen (its bias correction counts them): every
/// step of every worker was one. Called before the first of this start.
std::int64_t ServerState::steps_begun_with() const {
  std::int64_t steps = 0;
  for (const RankProgress& p : progress_) steps += p.steps_done;
  return steps;
}

bool ServerState::finished(int worker, std::int64_t step, double learning_rate) {
  std::unique_lock lock(mutex_);
  if (job_.synchronous) {
    const auto [rate, added] = learning_rates_.try_emplace(step, learning_rate);
    if (rate->second != learning_rate) return false;
    apply_complete(lock);
  } else {
    // Groups one after another, each under its own lock: other workers' updates come in between.
    const int mine[] = {worker};
    lock.unlock();
    const auto begin = Clock::now();
    double delays = 0;
    for (Group& g : groups_) {
      std::int64_t update = 0;
      {
        const std::lock_guard state(mutex_);
        update = g.version++;
        delays += double(update - g.read[std::size_t(worker)]);
      }
      // A gradient is a worker's part of the global mean; alone, it stands for all.
      apply(g, mine, job_.workers, update, learning_rate);
    }
    lock.lock();
    report_.updates += std::int64_t(groups_.size());
    delay_sum_ += delays;
    delays_[std::size_t(worker)] = delays / double(std::max<std::size_t>(1, groups_.size()));
    report_.apply += Clock::now() - begin;
    apply_times_[step] = Clock::now() - begin;
  }
  finished_[std::size_t(worker)] = std::max(finished_[std::size_t(worker)], step);
  progress_[std::size_t(worker)].steps_done = step + 1;
  while (apply_times_.size() > kStepsRemembered) apply_times_.erase(apply_times_.begin());
  changed_.notify_all();
  return true;
}

/// Updates every group whose gradients and learning rate are there. Called with the lock, which is
/// free while it computes.
void ServerState::apply_complete(std::unique_lock<std::mutex>& lock) {
  for (Group& g : groups_) {
    if (g.applying || g.arrived.size() < needed()) continue;
    const auto rate = learning_rates_.find(g.version);
    if (rate == learning_rates_.end()) continue;
    g.applying = true;
    std::ranges::sort(g.arrived);  // the order of the ranks, not of the arrivals
    const std::int64_t step = g.version;
    const double learning_rate = rate->second;
    lock.unlock();
    const auto begin = Clock::now();
    apply(g, g.arrived, double(job_.workers) / double(needed()), step, learning_rate);
    const Seconds took = Clock::now() - begin;
    lock.lock();
    g.arrived.clear();
    g.applying = false;
    ++g.version;
    ++report_.updates;
    report_.apply += took;
    apply_times_[step] += took;
    changed_.notify_all();
  }
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
  for (const Group& g : groups_) oldest = std::min(oldest, g.version);
  learning_rates_.erase(learning_rates_.begin(), learning_rates_.lower_bound(oldest));
}

void ServerState::apply(Group& group, std::span<const int> workers, double scale, std::int64_t step,
                        double learning_rate) {
  const std::lock_guard lock(group.mutex);
  if (group.width > 0) return apply_rows(group, workers, scale, step, learning_rate);
  std::span<const float> gradients = group.gradients[std::size_t(workers.front())];
  if (workers.size() > 1) {
    std::ranges::copy(gradients, group.sum.begin());
    for (const int worker : workers.subspan(1))
      add_to<float>(group.sum, group.gradients[std::size_t(worker)]);
    gradients = group.sum;
  }
  group.optimizer->update(step, learning_rate, scale, group.values, gradients);
}

void ServerState::begin(int worker, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  finished_[std::size_t(worker)] = step - 1;
  progress_[std::size_t(worker)].steps_done = step;
  changed_.notify_all();
}

void ServerState::ended(int worker) {
  const std::lock_guard lock(mutex_);
  progress_[std::size_t(worker)].finished = true;
  finished_[std::size_t(worker)] = std::numeric_limits<std::int64_t>::max();
  changed_.notify_all();
}

void ServerState::left(int worker) {
  const std::lock_guard lock(mutex_);
  progress_[std::size_t(worker)].left = true;
  finished_[std::size_t(worker)] = std::numeric_limits<std::int64_t>::max();
  changed_.notify_all();
}

std::int64_t ServerState::slowest_finished() const { return std::ranges::min(finished_); }

bool ServerState::may_begin(std::int64_t step) const {
  return job_.staleness == 0 || slowest_finished() >= step - job_.staleness - 1;
}

bool ServerState::step_ready(std::int64_t step) const {
  return std::ranges::all_of(groups_,
                             [&](const Group& g) { return g.initialized && g.version >= step; });
}

bool ServerState::ready(const Group& group, std::int64_t step) const {
  if (!group.initialized) return false;
  if (!job_.synchronous) return may_begin(step);
  if (job_.phases_apart && !(step_ready(step) && slowest_finished() >= step - 1)) return false;
  return group.version >= step;
}

/// Workers that have left although `step` cannot begin without more gradients than the rest will
/// push; else empty.
std::vector<int> ServerState::missed(std::int64_t step) const {
  std::vector<int> gone;
  if (!job_.synchronous) return gone;
  for (std::size_t w = 0; w < progress_.size(); ++w)
    if (progress_[w].left) gone.push_back(int(w));
  for (const Group& g : groups_) {
    if (g.version >= step || g.applying) continue;
    const auto will_come = [&](int w) {
      return !progress_[std::size_t(w)].left || std::ranges::count(g.arrived, w) > 0;
    };
    std::size_t possible = 0;
    for (int w = 0; w < job_.workers; ++w) possible += will_come(w) ? 1 : 0;
    if (possible < needed()) return gone;
  }
  return {};
}

std::optional<ServerState::Values> ServerState::wait_values(int worker, std::int64_t step,
                                                            std::vector<bool>& sent,
                                                            std::vector<float>& to,
                                                            Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!failure_) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      Group& g = groups_[i];
      if (sent[i] || g.applying || !ready(g, step)) continue;
      sent[i] = true;
      const Values values{.group = i, .version = g.version};
      const std::int64_t slowest = slowest_finished();
      if (!job_.synchronous && slowest < step && worker >= 0)
        report_.lead_max = std::max(report_.lead_max, step - slowest - 1);
      if (worker >= 0) g.read[std::size_t(worker)] = g.version;
      lock.unlock();
      const std::lock_guard group_lock(g.mutex);
      to = g.values;
      return values;
    }
    if (!wait_for_change(lock, step, deadline)) return std::nullopt;
  }
  return std::nullopt;
}

/// Who waits for `step` has looked and found nothing. False: there is nothing to wait for.
bool ServerState::wait_for_change(std::unique_lock<std::mutex>& lock, std::int64_t step,
                                  Deadline deadline) {
  if (std::vector<int> gone = missed(step); !gone.empty()) {
    for (int& worker : gone) worker = job_.rank_of_worker(worker);
    failure_ = ServerFailure{
        fmt::format("rank {} left before step {}", fmt::join(gone, ", "), step - 1), gone};
    changed_.notify_all();
    return false;
  }
  if (deadline.passed()) return false;
  changed_.wait_for(lock, deadline.left());
  return true;
}

std::vector<int> ServerState::behind(std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  std::vector<int> workers;
  for (std::size_t w = 0; w < finished_.size(); ++w)
    if (finished_[w] < step) workers.push_back(int(w));
  return workers;
}

std::int64_t ServerState::next_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  std::int64_t done = std::numeric_limits<std::int64_t>::max();
  for (const Group& g : groups_) done = std::min(done, g.version);
  const std::int64_t next = job_.synchronous ? std::max(step + 1, done) : step + 1;
  furthest_ = std::max(furthest_, next);
  return next;
}

void ServerState::request_stop() {
  const std::lock_guard lock(mutex_);
  if (stop_step_ == kNoStop) stop_step_ = furthest_ + 1;
}
std::int64_t ServerState::stop_step() const {
  const std::lock_guard lock(mutex_);
  return stop_step_;
}

double ServerState::delay_of(int worker) const {
  const std::lock_guard lock(mutex_);
  return delays_[std::size_t(worker)];
}

Seconds ServerState::apply_time(std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  const auto found = apply_times_.find(step);
  return found == apply_times_.end() ? Seconds{} : found->second;
}

void ServerState::fail(const std::string& what, std::vector<int> peers) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = ServerFailure{what, std::move(peers)};  // the first is the cause
  changed_.notify_all();
}
std::optional<ServerFailure> ServerState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}
std::vector<RankProgress> ServerState::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}
bool ServerState::all_left() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(progress_, &RankProgress::left);
}
void ServerState::count(Bytes received, Bytes sent) {
  const std::lock_guard lock(mutex_);
  report_.received += received;
  report_.sent += sent;
}
ServerReport ServerState::report() const {
  const std::lock_guard lock(mutex_);
  ServerReport report = report_;
  if (!job_.synchronous && report.updates > 0) report.delay = delay_sum_ / double(report.updates);
  return report;
}

std::vector<float> ServerState::optimizer_state(std::size_t group) {
  Group& g = groups_[group];
  const std::lock_guard lock(g.mutex);
  std::vector<float> all;
  for (const std::span<float> buffer : g.optimizer->state())
    all.insert(all.end(), buffer.begin(), buffer.end());
  return all;
}

bool ServerState::set_optimizer_state(std::size_t group, std::span<const float> state) {
  Group& g = groups_[group];
  const std::lock_guard lock(g.mutex);
  const auto buffers = g.optimizer->state();
  if (state.size() != buffers.size() * g.values.size()) return false;
  for (const std::span<float> buffer : buffers) {
    std::ranges::copy(state.first(buffer.size()), buffer.begin());
    state = state.subspan(buffer.size());
  }
  return true;
}

}  // namespace reckon
