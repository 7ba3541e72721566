#include "sim/queue/snapshot/snapshot_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "sim/queue/backfill/backfill.h"

namespace reckon {
namespace {

constexpr std::size_t kJobsOfALook = 500;  // bf_max_job_test, slurm.conf(5)

/// Slurm and kube-scheduler: jobs have priorities of their own and nodes that they may use.
class SnapshotRules : public QueueRules {
 public:
  SnapshotRules(std::span<const double> priorities, std::vector<CellSet> cells, bool reserves,
                std::size_t depth)
      : priorities_(priorities), cells_(std::move(cells)), reserves_(reserves), depth_(depth) {}
  double tie(std::size_t job) const override {
    // Who comes later is new, as the submitted job is.
    return -(job < priorities_.size() ? priorities_[job] : priorities_.back());
  }
  CellSet cells(std::size_t job) const override { return cells_[job]; }
  bool reserves() const override { return reserves_; }
  std::size_t depth() const override { return depth_; }

 private:
  std::span<const double> priorities_;
  std::vector<CellSet> cells_;
  bool reserves_;
  std::size_t depth_;
};

/// Only Kueue reads it of a job; Slurm's go beyond it.
std::int32_t kueue_priority(double priority) {
  constexpr double kMost = 2e9;  // within 32 bits
  return static_cast<std::int32_t>(std::clamp(priority, -kMost, kMost));
}

/// "batch,debug" names either.
bool names_queue(const std::string& queues, const std::string& queue) {
  for (std::size_t from = 0; from <= queues.size();) {
    const std::size_t comma = std::min(queues.find(',', from), queues.size());
    if (queues.compare(from, comma - from, queue) == 0) return true;
    from = comma + 1;
  }
  return false;
}

bool may_use(const SnapshotNode& node, const std::string& queue, const std::string& accelerator) {
  const bool in_queue = node.queues.empty() || queue.empty() ||
                        std::ranges::any_of(node.queues, [&](const std::string& of) {
                          return names_queue(queue, of);
                        });
  return in_queue && (accelerator.empty() || node.accelerator == accelerator);
}

using NodeKind = std::tuple<std::vector<std::string>, std::string, std::string>;
NodeKind kind_of(const SnapshotNode& node, SnapshotSystem system) {
  const bool by_pool = system == SnapshotSystem::kueue || system == SnapshotSystem::scenario;
  if (by_pool) return {{}, "", node.pool};
  return {node.queues, node.accelerator, ""};
}

}  // namespace

std::string likely_queue(const ClusterSnapshot& snapshot, const std::string& accelerator) {
  std::map<std::string, int> gpus;
  for (const SnapshotNode& node : snapshot.nodes)
    for (const std::string& queue : node.queues)
      if (node.usable && may_use(node, queue, accelerator)) gpus[queue] += node.gpus;
  if (snapshot.scheduler.kueue)
    for (const ClusterQueueSpec& queue : snapshot.scheduler.kueue->cluster_queues)
      for (const KueueFlavorSpec& flavor : queue.flavors) gpus[queue.name] += flavor.nominal_quota;
  const auto most = std::ranges::max_element(gpus, {}, [](const auto& of) { return of.second; });
  return most == gpus.end() ? "" : most->first;
}

std::vector<std::string> queues_of(const ClusterSnapshot& snapshot) {
  std::set<std::string> names;
  for (const SnapshotNode& node : snapshot.nodes)
    names.insert(node.queues.begin(), node.queues.end());
  if (snapshot.scheduler.kueue)
    for (const ClusterQueueSpec& q : snapshot.scheduler.kueue->cluster_queues) names.insert(q.name);
  if (snapshot.scheduler.slurm)
    for (const SlurmPartitionSpec& p : snapshot.scheduler.slurm->partitions) names.insert(p.name);
  return {names.begin(), names.end()};
}

std::vector<std::string> accelerators_of(const ClusterSnapshot& snapshot) {
  std::set<std::string> names;
  for (const SnapshotNode& node : snapshot.nodes)
    if (node.usable && node.gpus > 0 && !node.accelerator.empty()) names.insert(node.accelerator);
  return {names.begin(), names.end()};
}

std::optional<std::string> submission_problem(const ClusterSnapshot& snapshot,
                                              const Submission& mine) {
  const std::vector<std::string> queues = queues_of(snapshot);
  if (mine.queue.empty() || queues.empty() || std::ranges::find(queues, mine.queue) != queues.end())
    return std::nullopt;
  return fmt::format("the cluster has no queue '{}'{}; it has {}", mine.queue,
                     did_you_mean(mine.queue, queues), fmt::join(queues, ", "));
}

std::optional<std::string> snapshot_problem(const ClusterSnapshot& snapshot) {
  std::map<NodeKind, int> kinds;
  for (const SnapshotNode& node : snapshot.nodes)
    if (node.usable && node.gpus > 0) ++kinds[kind_of(node, snapshot.system)];
  if (kinds.empty()) return "no node that is up has GPUs";
  if (kinds.size() > std::size_t(kMostCells))
    return fmt::format(
        "its nodes are of {} kinds (partitions and accelerators), and {} are told apart",
        kinds.size(), kMostCells);
  const auto policy = snapshot.scheduler.policy;
  if (snapshot.system == SnapshotSystem::scenario && policy != SchedulingPolicy::fifo &&
      policy != SchedulingPolicy::easy_backfill && policy != SchedulingPolicy::sjf &&
      policy != SchedulingPolicy::slurm && policy != SchedulingPolicy::kueue)
    return fmt::format(
        "its policy is {}; a start is forecast under fifo, easy_backfill, sjf, slurm "
        "and kueue",
        to_text(policy));
  return std::nullopt;
}

SnapshotCase::SnapshotCase(const ClusterSnapshot& snapshot, const Submission& mine)
    : snapshot_(snapshot), mine_(mine) {
  make_nodes();
  make_question();
  // In order of submit, so that equals keep it.
  std::vector<std::size_t> order(snapshot.jobs.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return snapshot.jobs[k].submit; });
  for (const std::size_t k : order) add(k);
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < of_snapshot_.size(); ++j)
    if (!runs(j)) lowest = std::min(lowest, priorities_[j]);
  const bool is_new = snapshot.system == SnapshotSystem::slurm && std::isfinite(lowest);
  priorities_.push_back(mine.priority.value_or(is_new ? lowest : 0));
  place_running();
  std::optional<SimDuration> limit;
  if (mine.limit) limit = to_clock(*mine.limit);
  JobRequest own = recorded_job(SimTime{} + to_clock(mine.after), SimDuration{1}, mine.gpus, limit);
  own.owner = {jobs_.names.users.number(mine.user), jobs_.names.teams.number(mine.team),
               jobs_.names.queues.number(mine.queue), JobOwner::kNotSaid,
               kueue_priority(priorities_.back())};
  jobs_.jobs.push_back(std::move(own));
}

void SnapshotCase::make_nodes() {
  std::map<NodeKind, int> cells;
  for (std::size_t n = 0; n < snapshot_.nodes.size(); ++n) {
    const SnapshotNode& node = snapshot_.nodes[n];
    node_.push_back(-1);
    if (!node.usable || node.gpus <= 0) continue;
    const auto [cell, added] =
        cells.try_emplace(kind_of(node, snapshot_.system), static_cast<int>(cells.size()));
    if (added) cell_like_.push_back(n);
    node_.back() = static_cast<int>(question_.groups.size());
    question_.groups.push_back({1, node.gpus, cell->second});
    left_.push_back(node.gpus);
  }
  for (const std::size_t n : cell_like_) question_.pools.push_back(snapshot_.nodes[n].pool);
}

void SnapshotCase::make_question() {
  question_.scheduler = snapshot_.scheduler;
  question_.partitions.of_partition = {kAllCells};
  const auto& slurm = snapshot_.scheduler.slurm;
  if (snapshot_.system != SnapshotSystem::scenario || !slurm || slurm->partitions.empty()) return;
  question_.partitions.of_partition.clear();
  for (const SlurmPartitionSpec& p : slurm->partitions) {
    CellSet cells = p.nodes.empty() ? kAllCells : 0;
    for (std::size_t c = 0; c < question_.pools.size(); ++c)
      if (std::ranges::find(p.nodes, question_.pools[c]) != p.nodes.end()) cells |= CellSet{1} << c;
    question_.partitions.of_partition.push_back(cells);
  }
}

bool SnapshotCase::has_priorities() const {
  return snapshot_.system == SnapshotSystem::slurm ||
         snapshot_.system == SnapshotSystem::kubernetes;
}

/// What it holds of nodes that are usable and have it.
std::vector<NodePart> SnapshotCase::parts_of(const SnapshotJob& job) {
  std::vector<NodePart> parts;
  for (const auto& [name, gpus] : job.on) {
    const auto node = std::ranges::find(snapshot_.nodes, name, &SnapshotNode::name);
    if (node == snapshot_.nodes.end()) continue;
    const int at = node_[std::size_t(node - snapshot_.nodes.begin())];
    if (at < 0) continue;
    const int held = std::min(gpus, left_[std::size_t(at)]);
    if (held <= 0) continue;
    left_[std::size_t(at)] -= held;
    parts.push_back({at, held});
  }
  return parts;
}

void SnapshotCase::add(std::size_t k) {
  const SnapshotJob& job = snapshot_.jobs[k];
  if (job.gpus <= 0) return;
  std::vector<NodePart> parts;
  if (job.start && !job.on.empty() && (parts = parts_of(job)).empty()) return;
  JobRequest request = recorded_job(SimTime{}, SimDuration{1}, job.gpus);
  request.owner = {jobs_.names.users.number(job.user), jobs_.names.teams.number(job.team),
                   jobs_.names.queues.number(job.queue), JobOwner::kNotSaid,
                   kueue_priority(job.priority)};
  if (job.start) running_.push_back({jobs_.jobs.size(), std::move(parts)});
  jobs_.jobs.push_back(std::move(request));
  of_snapshot_.push_back(k);
  priorities_.push_back(job.priority);
}

/// Jobs of which nobody says on which nodes they run: where the scheduler would start them beside
/// the others, of their flavor or accelerator. One for which there is no room is left to wait.
void SnapshotCase::place_running() {
  FreeNodes nodes(question_.groups);
  for (const RunningJob& running : running_) nodes.take_again(running.on);
  for (RunningJob& running : running_) {
    const SnapshotJob& job = recorded(running.job);
    const CellSet cells = snapshot_.system == SnapshotSystem::kueue
                              ? cells_of_pool(job.accelerator)
                              : cells_of(job.queue, job.accelerator);
    if (running.on.empty() && nodes.fits(job.gpus, cells)) running.on = nodes.take(job.gpus, cells);
  }
  std::erase_if(running_, [](const RunningJob& running) { return running.on.empty(); });
}

/// All cells where no node is of the pool.
CellSet SnapshotCase::cells_of_pool(const std::string& pool) const {
  CellSet cells = 0;
  for (std::size_t c = 0; c < question_.pools.size(); ++c)
    if (question_.pools[c] == pool) cells |= CellSet{1} << c;
  return cells == 0 ? kAllCells : cells;
}

CellSet SnapshotCase::cells_of(const std::string& queue, const std::string& accelerator) const {
  CellSet cells = 0;
  for (std::size_t c = 0; c < cell_like_.size(); ++c)
    if (may_use(snapshot_.nodes[cell_like_[c]], queue, accelerator)) cells |= CellSet{1} << c;
  return cells;
}

std::size_t SnapshotCase::ahead() const {
  std::size_t jobs = 0;
  const bool fifo = !has_priorities() && snapshot_.system != SnapshotSystem::kueue;
  for (std::size_t j = 0; j < of_snapshot_.size(); ++j) {
    const bool same_queue =
        snapshot_.system != SnapshotSystem::kueue || recorded(j).queue == mine_.queue;
    if (!runs(j) && same_queue && (fifo || priorities_[j] >= priorities_.back())) ++jobs;
  }
  return jobs;
}

bool SnapshotCase::add_later(JobList& list, SimTime submit, const JobRequest& job) const {
  const JobNames& names = snapshot_.history.names;
  const std::string& queue = names.queues.name(job.owner.queue);
  const auto& scheduler = question_.scheduler;
  if (scheduler.policy == SchedulingPolicy::kueue &&
      std::ranges::find(scheduler.kueue->cluster_queues, queue, &ClusterQueueSpec::name) ==
          scheduler.kueue->cluster_queues.end())
    return false;
  JobRequest later = job;
  later.submit = submit;
  later.owner = {list.names.users.number(names.users.name(job.owner.user)),
                 list.names.teams.number(names.teams.name(job.owner.team)),
                 list.names.queues.number(queue),
                 list.names.qos.number(names.qos.name(job.owner.qos)), job.owner.priority};
  list.jobs.push_back(std::move(later));
  return true;
}

QueueRun SnapshotCase::run(const JobList& list, std::vector<Holding>& holdings) const {
  const RunOptions options{running_, &holdings, mine()};
  if (!has_priorities()) return run_queue(question_, list, 0, list.jobs.size(), options);
  std::vector<CellSet> cells;
  std::map<std::string, CellSet> of_queue;
  for (std::size_t j = 0; j < list.jobs.size(); ++j) {
    if (j < mine()) {
      cells.push_back(cells_of(recorded(j).queue, recorded(j).accelerator));
    } else if (j == mine()) {
      cells.push_back(cells_of(mine_.queue, mine_.accelerator));
    } else {
      const std::string& queue = list.names.queues.name(list.jobs[j].owner.queue);
      const auto [known, added] = of_queue.try_emplace(queue, 0);
      if (added) known->second = cells_of(queue, "");
      cells.push_back(known->second);
    }
  }
  const bool slurm = snapshot_.system == SnapshotSystem::slurm;
  SnapshotRules rules(priorities_, std::move(cells), slurm,
                      slurm ? kJobsOfALook : std::numeric_limits<std::size_t>::max());
  return run_backfill(list.jobs, question_.groups, rules, 0, list.jobs.size(), options);
}

std::string SnapshotCase::why_never() const {
  if (!has_priorities()) return reckon::why_never(question_, jobs_, std::array{mine()}).front();
  const CellSet cells = cells_of(mine_.queue, mine_.accelerator);
  if (cells == 0)
    return fmt::format("no node that is up has {}{}",
                       mine_.accelerator.empty() ? "GPUs" : mine_.accelerator,
                       mine_.queue.empty() ? "" : " in partition " + mine_.queue);
  return limit_that_binds(mine_.gpus, question_.groups, cells).value_or("");
}

}  // namespace reckon
