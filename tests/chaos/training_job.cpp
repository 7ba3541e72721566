#include "chaos/training_job.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <set>
#include <span>

#include "executor/train/checkpoint/node_directory.h"
#include "executor/train/records/measurement_log.h"
#include "support/small_job.h"
#include "support/trained_weights.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;

std::string options_of(const TrainingKind& kind) {
  return fmt::format(
      "--retries 100000 --retry-delay 0s --replications 20 --checkpoint-steps {} --hang {}s ",
      kind.checkpoint_steps, kind.hang.count());
}

/// Of the small perceptron, on two workers.
TrainingKind perceptron(std::string name, const std::string& strategy, int servers = 0,
                        const std::string& more = "") {
  TrainingKind kind{.name = std::move(name), .scenario = ""};
  kind.scenario = small_job("chaos", strategy, kind.steps, more) + small_pool(kind.workers);
  if (servers > 0)
    kind.scenario += fmt::format(
        "    - {{name: servers, role: parameter_server, machine: {{vcpu: 1, memory: 2GiB, network: "
        "10Gbps}}, nodes: {}}}\n",
        servers);
  return kind;
}

/// The end of what it said.
std::string last_words(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  return text.substr(text.size() - std::min(text.size(), kMost));
}

Measurements read(const fs::path& file) {
  auto m = read_measurement_log(file);
  if (!m) throw Lost(format(m.error()));
  return std::move(*m);
}

std::map<std::int64_t, double> losses_of(const Measurements& m) {
  std::map<std::int64_t, double> losses;
  for (const StepRecord& s : m.useful_steps())
    if (s.loss) losses[s.step] = *s.loss;
  return losses;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

}  // namespace

TrainingKind ring_of_workers() {
  return perceptron("ring all-reduce", "{kind: multi_worker_mirrored, workers: 2}");
}
TrainingKind synchronous_servers() {
  return perceptron("synchronous parameter servers",
                    "{kind: parameter_server, workers: 2, parameter_servers: 2, mode: synchronous}",
                    2);
}
TrainingKind asynchronous_servers() {
  TrainingKind kind = perceptron(
      "asynchronous parameter servers",
      "{kind: parameter_server, workers: 2, parameter_servers: 2, mode: asynchronous}", 2,
      // Small, so that gradients of any age leave the loss finite.
      "  optimizer: {kind: sgd, learning_rate: 0.0001}\n");
  kind.repeatable = false;
  return kind;
}

void RecordWatch::look() {
  std::ifstream in(file_, std::ios::binary | std::ios::ate);
  if (!in) {
    if (!seen_.empty()) throw Lost(file_.string() + " is gone");
    return;
  }
  const auto size = std::size_t(in.tellg());
  if (size < seen_.size())
    throw Lost(fmt::format("{} had {} bytes of whole lines, and has {} bytes", file_.string(),
                           seen_.size(), size));
  std::string more(size - seen_.size(), '\0');
  in.seekg(std::streamoff(seen_.size()));
  in.read(more.data(), std::streamsize(more.size()));
  more.resize(std::size_t(std::max<std::streamsize>(0, in.gcount())));
  seen_.append(more, 0, more.rfind('\n') + 1);
}

void RecordWatch::look_at_all() const {
  if (!read_all(file_).starts_with(seen_))
    throw Lost(file_.string() + ": a record that was accepted is no longer there");
}

TrainedResult TrainingJob::undisturbed(const Workspace& w, const TrainingKind& kind) {
  w.write("job.yaml", kind.scenario);
  BackgroundJob job(w, "job.yaml", "undisturbed", options_of(kind));
  const int code = job.code();
  if (code != 0) throw Lost(fmt::format("undisturbed, it ended with {}: {}", code, job.errors()));
  const TrainedResult result{trained_weights(w.path("undisturbed/model.safetensors")),
                             losses_of(read(w.path("undisturbed/measurements.jsonl")))};
  fs::remove_all(w.path("undisturbed"));
  return result;
}

TrainingJob::TrainingJob(const Workspace& w, const TrainingKind& kind,
                         const TrainedResult& expected, const FaultCount& faults)
    : w_(w),
      kind_(kind),
      expected_(expected),
      faults_(faults),
      records_(w.path("disk/run/measurements.jsonl")),
      announced_(w.path("disk/run"), kind.workers, kind.nodes) {
  w.write("job.yaml", kind.scenario);
  // What it prints stays off the disk, which is full at times.
  for (const char* old : {"run", "run.out", "run.err", "disk/run"}) fs::remove_all(w.path(old));
  leave_nodes();
  fs::create_directories(w.path("disk/run"));
  fs::create_directory_symlink("disk/run", w.path("run"));
  start();
}

void TrainingJob::start() {
  std::error_code none;
  const auto size = fs::file_size(w_.path("disk/run/measurements.jsonl"), none);
  const bool begun = !none && size > 0;
  constexpr std::chrono::milliseconds kBetweenStarts{300};
  start_again_ = BackgroundJob::Clock::now() + kBetweenStarts;
  began_ = faults_.now();
  ++starts_;
  run_ = std::make_unique<BackgroundJob>(w_, "job.yaml", "run",
                                         options_of(kind_) + (begun ? "--resume" : ""));
}

std::vector<pid_t> TrainingJob::processes() const {
  std::vector<pid_t> all;
  if (!run_ || !run_->running()) return all;
  all.push_back(run_->id());
  const auto workers = run_->workers();
  all.insert(all.end(), workers.begin(), workers.end());
  return all;
}

void TrainingJob::tick() {
  records_.look();
  if (!run_->running()) return ended(run_->code());
  constexpr std::chrono::milliseconds kBetweenLooks{250};
  if (BackgroundJob::Clock::now() - looked_ < kBetweenLooks) return;
  looked_ = BackgroundJob::Clock::now();
  announced_.look();
}

void TrainingJob::ended(int code) {
  constexpr int kEnvironment = 3, kKilled = 128 + SIGKILL;
  const bool excused = code == kKilled
                           ? faults_.since(began_, Harm::process)
                           : code == kEnvironment && (faults_.since(began_, Harm::disk) ||
                                                      faults_.since(began_, Harm::network));
  if (code == 0)
    over_ = true;
  else if (excused && BackgroundJob::Clock::now() < start_again_)
    return;  // its disk may still be full
  else if (excused)
    start();
  else
    throw Lost(fmt::format("`reckon run` ended with {}: {}", code, last_words(run_->errors())));
}

Measurements TrainingJob::records() const {
  const fs::path file = w_.path("disk/run/measurements.jsonl");
  return fs::exists(file) ? read(file) : Measurements{};
}

/// What a job that was killed for good leaves in the machine's memory.
void TrainingJob::leave_nodes() const {
  std::error_code ignored;
  if (kind_.nodes)
    fs::remove_all(node_directory(w_.path("disk/run"), kind_.nodes->to, 0).parent_path(), ignored);
}

void TrainingJob::check() {
  announced_.look();
  records_.look_at_all();
  const fs::path run = w_.path("disk/run");
  const Measurements m = read(run / "measurements.jsonl");
  attempts_ = std::max(m.runs.size(), m.interruptions.size() + 1);
  said_ = last_words(run_->errors());
  restores_ =
      int(std::ranges::count(m.checkpoints, CheckpointAction::restore, &CheckpointRecord::action));
  check_records(m);
  announced_.check(m);
  for (int node = 0; kind_.nodes && node < kind_.workers; ++node)
    if (const fs::path there = node_directory(run, kind_.nodes->to, node); fs::exists(there))
      throw Lost(there.string() + " is still there");
  const std::vector<float> parameters = trained_weights(run / "model.safetensors");
  if (parameters.size() != expected_.parameters.size() || !all_finite(parameters))
    throw Lost(fmt::format("{} parameters, not {} of finite numbers", parameters.size(),
                           expected_.parameters.size()));
  if (kind_.repeatable && parameters != expected_.parameters)
    throw Lost("the trained parameters are not those of the undisturbed run");
}

void TrainingJob::check_records(const Measurements& m) const {
  if (m.torn_lines != 0) throw Lost("the last line of the measurements is torn");
  if (m.ends.empty() || !m.ends.back().finished) throw Lost("no record says that it has finished");
  // In lockstep. Of others a step may be in a checkpoint before its worker has recorded it.
  const int ranks = kind_.repeatable ? kind_.workers : 1;
  // A step that a loss ended behind its update has no record where ranks go on with it in memory.
  const std::size_t may_lack = kind_.keeps_state ? attempts_ - 1 : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::set<std::int64_t> recorded;
    for (const StepRecord& s : m.useful_steps(rank)) recorded.insert(s.step);
    for (std::int64_t k = 0, lacks = 0; k < kind_.steps; ++k)
      if (!recorded.contains(k) && std::size_t(++lacks) > may_lack)
        throw Lost(fmt::format("no record of step {} of rank {}", k, rank));
  }
  if (!kind_.repeatable) return;
  // Of every attempt: a step on any other state has another loss.
  for (const StepRecord& s : m.steps)
    if (s.rank == 0 && (!s.loss || expected_.losses.at(s.step) != *s.loss))
      throw Lost(fmt::format("the loss of step {}, attempt {}, is not the undisturbed run's",
                             s.step, s.attempt));
}

std::string TrainingJob::summary() const {
  return fmt::format("{} steps, {} starts of `reckon run`, {} of its processes", kind_.steps,
                     starts_, attempts_);
}

}  // namespace reckon::test
