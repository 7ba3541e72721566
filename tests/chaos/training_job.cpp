#include "chaos/training_job.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <span>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "support/small_job.h"
#include "support/trained_weights.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOptions =
    "--retries 100000 --retry-delay 0s --replications 20 --checkpoint-steps 100 ";

std::string options_of(const TrainingKind& kind) {
  return fmt::format("{}--hang {}s ", kOptions, kind.hang.count());
}

std::string job_text(const TrainingKind& kind) {
  std::string text =
      small_job("chaos", kind.strategy, kind.steps, kind.more) + small_pool(kind.workers);
  if (kind.servers > 0)
    text += fmt::format(
        "    - {{name: servers, role: parameter_server, machine: {{vcpu: 1, memory: 2GiB, network: "
        "10Gbps}}, nodes: {}}}\n",
        kind.servers);
  return text;
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
  return {.name = "ring all-reduce", .strategy = "{kind: multi_worker_mirrored, workers: 2}"};
}
TrainingKind synchronous_servers() {
  return {
      .name = "synchronous parameter servers",
      .strategy = "{kind: parameter_server, workers: 2, parameter_servers: 2, mode: synchronous}",
      .servers = 2};
}
TrainingKind asynchronous_servers() {
  return {
      .name = "asynchronous parameter servers",
      .strategy = "{kind: parameter_server, workers: 2, parameter_servers: 2, mode: asynchronous}",
      // Small, so that gradients of any age leave the loss finite.
      .more = "  optimizer: {kind: sgd, learning_rate: 0.0001}\n",
      .servers = 2,
      .repeatable = false};
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
  w.write("job.yaml", job_text(kind));
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
      records_(w.path("disk/run/measurements.jsonl")) {
  w.write("job.yaml", job_text(kind));
  // What it prints stays off the disk, which is full at times.
  for (const char* old : {"run", "run.out", "run.err", "disk/run"}) fs::remove_all(w.path(old));
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
  if (!run_) return all;
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
  look_at_checkpoints();
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

/// A set that is announced (it has a manifest) can be restored. It may be pruned meanwhile.
void TrainingJob::look_at_checkpoints() const {
  for (const CheckpointSet& set : list_sets(w_.path("disk/run/checkpoints"))) {
    if (!set.complete) continue;
    try {
      verify_set(set.directory, nullptr);
    } catch (const std::exception& e) {
      if (is_complete(set.directory)) throw Lost(fmt::format("a checkpoint: {}", e.what()));
    }
  }
}

void TrainingJob::check() {
  look_at_checkpoints();
  records_.look_at_all();
  const fs::path run = w_.path("disk/run");
  const Measurements m = read(run / "measurements.jsonl");
  attempts_ = std::max(m.runs.size(), m.interruptions.size() + 1);
  said_ = last_words(run_->errors());
  check_records(m);
  check_restores(m);
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
  for (int rank = 0; rank < ranks; ++rank) {
    const auto useful = m.useful_steps(rank);
    if (useful.size() != std::size_t(kind_.steps))
      throw Lost(
          fmt::format("{} steps of rank {} are recorded, of {}", useful.size(), rank, kind_.steps));
    for (std::size_t k = 0; k < useful.size(); ++k)
      if (useful[k].step != std::int64_t(k)) throw Lost(fmt::format("no record of step {}", k));
  }
  if (!kind_.repeatable) return;
  // Of every attempt: a step on any other state has another loss.
  for (const StepRecord& s : m.steps)
    if (s.rank == 0 && (!s.loss || expected_.losses.at(s.step) != *s.loss))
      throw Lost(fmt::format("the loss of step {}, attempt {}, is not the undisturbed run's",
                             s.step, s.attempt));
}

/// A start never goes back behind a checkpoint that was recorded before it.
void TrainingJob::check_restores(const Measurements& m) const {
  for (const RunRecord& run : m.runs)
    for (const CheckpointRecord& c : m.checkpoints)
      if (c.action == CheckpointAction::save && c.attempt < run.attempt && c.step > run.first_step)
        throw Lost(fmt::format("attempt {} began at step {}, although attempt {} had saved step {}",
                               run.attempt, run.first_step, c.attempt, c.step));
}

std::string TrainingJob::summary() const {
  return fmt::format("{} steps, {} starts of `reckon run`, {} of its processes", kind_.steps,
                     starts_, attempts_);
}

}  // namespace reckon::test
