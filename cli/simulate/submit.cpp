#include "cli/simulate/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "cli/exit_code.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "exchange/foreign/cluster/view.h"
#include "exchange/foreign/snapshot/snapshot_files.h"
#include "report/queue/start.h"
#include "sim/base/unit_text.h"
#include "sim/queue/lists/timestamp.h"
#include "sim/queue/snapshot/scenario_snapshot.h"

namespace reckon::cli {

namespace fs = std::filesystem;

Option SubmitChoice::cluster_option() {
  return {{"cluster", "PATH",
           "shared cluster to submit the job to: exports of squeue, sinfo, scontrol, sacct or "
           "kubectl, or a queue scenario with a job table; a file or a directory (repeatable)"},
          texts(cluster),
          true};
}

std::vector<Option> SubmitChoice::submit_options() {
  return {
      {{"at", "TIME",
        "with --cluster: time of the export, such as 2026-11-26T14:03:00 (the latest time in the "
        "files)"},
       text(at)},
      {{"queue", "NAME", "with --cluster: partition or ClusterQueue (the largest)"}, text(queue)},
      {{"user", "NAME", "with --cluster: user who submits the job"}, text(user)},
      {{"account", "NAME", "with --cluster: account or team of the job"}, text(account)},
      {{"priority", "N",
        "with --cluster: priority of the job (Slurm: the lowest of the waiting jobs; else 0)"},
       [this](const std::string& name, const std::string& given) {
         priority = double(detail::whole_number(name, given, -2'000'000'000, 4'294'967'295));
       }},
      {{"time-limit", "DURATION",
        "with --cluster: time limit of the job (the longest replication, in full hours)"},
       duration(time_limit)}};
}

void SubmitChoice::check_submit() const {
  const bool any =
      !at.empty() || !queue.empty() || !user.empty() || !account.empty() || priority || time_limit;
  if (cluster.empty() && any)
    throw UsageError(
        "--at, --queue, --user, --account, --priority and --time-limit need --cluster");
  if (!at.empty() && !parse_timestamp(at.substr(0, at.find('Z')), 'T'))
    throw UsageError(
        fmt::format("--at {}: no date with its time, such as 2026-11-26T14:03:00", at));
}

namespace {

constexpr double kSecondsOfHour = 3600, kSecondsOfDay = 86'400;
constexpr int kStartReplications = 1000;
constexpr std::int64_t kEvening = 20;  // of the clock that the snapshot has

ClusterSnapshot load_snapshot(const SubmitChoice& choice, const LoadedCatalog& catalog) {
  std::vector<fs::path> paths;
  for (const std::string& name : choice.cluster) {
    if (!fs::exists(name))
      throw WrongInput({{Severity::error, {name, 0, 0}, "there is no such file or folder", ""}});
    if (!fs::is_directory(name)) {
      paths.emplace_back(name);
      continue;
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(name))
      if (entry.is_regular_file()) inside.push_back(entry.path());
    std::sort(inside.begin(), inside.end());
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  std::vector<SnapshotFile> files;
  std::optional<ClusterSnapshot> scenario;
  for (const fs::path& path : paths) {
    if (path.extension() != ".yaml" && path.extension() != ".yml") {
      files.push_back({path.string(), read_text(path)});
      continue;
    }
    const auto loaded = checked(load_all(path.string(), {}, catalog));
    scenario = loaded.trace ? snapshot_of(loaded.file.scenario, *loaded.trace) : std::nullopt;
    if (!scenario)
      throw WrongInput({{Severity::error,
                         {path.string(), 0, 0},
                         "not a scenario of jobs that end and share a fixed set of nodes",
                         "example: scenarios/shared-slurm.yaml"}});
  }
  std::optional<std::int64_t> at;
  if (!choice.at.empty()) at = parse_timestamp(choice.at.substr(0, choice.at.find('Z')), 'T');
  return checked(read_snapshot(files, std::move(scenario), at, catalog));
}

std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// How well a name of the cluster stands for an accelerator of the catalog; 0: it is another.
std::size_t likeness(const std::string& seen, const std::string& accelerator,
                     const Catalog& catalog) {
  constexpr std::size_t kTheSame = 1000;
  const Accelerator* product = accelerator_of_product(seen, catalog);
  if (seen == accelerator || (product != nullptr && product->name == accelerator)) return kTheSame;
  // Slurm's types are as short as "a100".
  const std::string ours = letters_of(accelerator), theirs = letters_of(seen);
  const bool of_family = ours.starts_with(theirs) || theirs.starts_with(ours);
  return of_family ? std::min(ours.size(), theirs.size()) : 0;
}

/// What the job asks for, of a plan.
struct Gang {
  int nodes = 0, of_each = 0;
  std::string accelerator;  // of the catalog
  std::string pool;
  int gpus() const { return nodes * of_each; }
};

Gang gang_of(const Plan& plan) {
  Gang gang;
  for (const PlannedPool* pool : computing_pools(plan)) {
    if (pool->accelerators_per_node == 0) continue;
    const int nodes = pool->autoscaling ? pool->nodes_max : pool->nodes_initial;
    if (gang.accelerator.empty()) {
      gang.accelerator = pool->accelerator ? pool->accelerator->name : "";
      gang.of_each = pool->accelerators_per_node;
      gang.pool = pool->name;
    }
    gang.nodes += nodes * pool->accelerators_per_node / gang.of_each;
  }
  return gang;
}

class SubmissionAnswer {
 public:
  SubmissionAnswer(const std::string& file, const ScenarioChanges& changes,
                   const Sampling& sampling, const SubmitChoice& choice,
                   const LoadedCatalog& catalog, const NetworkModel& network)
      : file_(file),
        changes_(changes),
        sampling_(sampling),
        choice_(choice),
        catalog_(catalog),
        network_(network),
        snapshot_(load_snapshot(choice, catalog)) {}

  int answer(OutputFormat format) {
    const LoadedScenario loaded = checked(load_all(file_, changes_, catalog_));
    if (!loaded.plan || loaded.plan->jobs.size() != 1)
      throw UsageError("--cluster takes a scenario of one training, which is submitted");
    const Gang gang = gang_of(*loaded.plan);
    if (gang.gpus() == 0)
      throw UsageError("--cluster forecasts jobs that ask for GPUs, and this one trains on CPUs");
    const auto times = times_of(*loaded.plan);
    if (!times)
      throw UsageError("the job never finishes on nodes of its own: 'reckon simulate' says why");
    const Submission mine = submission(gang, *times);
    if (auto why = submission_problem(snapshot_, mine))
      throw WrongInput({{Severity::error, {choice_.cluster.front(), 0, 0}, *why, "--queue NAME"}});
    const std::uint64_t seed = sampling_.seed.value_or(loaded.plan->seed);
    const auto forecast = [&](const Submission& other) {
      return forecast_start(snapshot_, other, sampling_.replications.value_or(kStartReplications),
                            seed, sampling_.threads);
    };
    StartAnswer out{loaded.plan->name, asks(gang, mine), snapshot_, mine, forecast(mine), {}, {}};
    for (const auto& [what, other] : alternatives(gang, mine))
      out.alternatives.push_back({what, forecast(other)});
    out.notes = std::move(notes_);
    add_notes(out);
    print(format == OutputFormat::json ? start_json(out) : start_table(out));
    return kDone;
  }

 private:
  /// Of the replications of its forecast; nullopt: it does not fit, or hardly any ends.
  std::optional<std::vector<Seconds>> times_of(const Plan& plan) const {
    const Forecast forecast = make_forecast(plan, network_, forecast_options(sampling_));
    std::vector<Seconds> times;
    if (forecast.feasible)
      for (const double t : forecast.times_seconds)
        if (std::isfinite(t)) times.emplace_back(t);
    if (times.empty()) return std::nullopt;
    return times;
  }

  /// The cluster's name for it; nullopt: it has none.
  std::optional<std::string> seen_name(const std::string& accelerator) const {
    const auto names = accelerators_of(snapshot_);
    if (names.empty()) return "";
    const auto best = std::ranges::max_element(
        names, {}, [&](const std::string& name) { return likeness(name, accelerator, catalog_); });
    if (likeness(*best, accelerator, catalog_) == 0) return std::nullopt;
    return *best;
  }

  Submission submission(const Gang& gang, const std::vector<Seconds>& times) {
    Submission mine;
    mine.gpus = gang.gpus();
    const auto name = seen_name(gang.accelerator);
    if (!name)
      notes_.push_back(fmt::format("no node has {}; the nodes have {}", gang.accelerator,
                                   fmt::join(accelerators_of(snapshot_), ", ")));
    mine.accelerator = name.value_or(gang.accelerator);
    mine.user = choice_.user;
    mine.team = choice_.account;
    mine.queue = choice_.queue.empty() ? likely_queue(snapshot_, mine.accelerator) : choice_.queue;
    mine.priority = choice_.priority;
    mine.times = times;
    const double longest = std::ranges::max_element(times)->count();
    mine.limit =
        choice_.time_limit.value_or(Seconds{std::ceil(longest / kSecondsOfHour) * kSecondsOfHour});
    return mine;
  }

  std::string asks(const Gang& gang, const Submission& mine) const {
    const std::string nodes = gang.nodes == 1 ? "1 node" : fmt::format("{} nodes", gang.nodes);
    return fmt::format("{} of {} {}{}, {} asked for", nodes, gang.of_each, gang.accelerator,
                       mine.queue.empty() ? "" : ", queue " + mine.queue,
                       format_duration(*mine.limit));
  }

  /// The scenario with other hardware, where it can be simulated so.
  std::optional<std::pair<Gang, Submission>> changed(const std::vector<std::string>& overrides) {
    ScenarioChanges changes = changes_;
    changes.overrides.insert(changes.overrides.end(), overrides.begin(), overrides.end());
    auto loaded = load_all(file_, changes, catalog_);
    if (!loaded || !loaded->plan) return std::nullopt;
    const Gang gang = gang_of(*loaded->plan);
    const auto times = times_of(*loaded->plan);
    if (!times || gang.gpus() == 0 || !seen_name(gang.accelerator)) return std::nullopt;
    return std::pair(gang, submission(gang, *times));
  }

  std::vector<std::pair<std::string, Submission>> alternatives(const Gang& gang,
                                                               const Submission& mine) {
    std::vector<std::pair<std::string, Submission>> out;
    const std::string pool = "cluster.pools." + gang.pool;
    for (const int nodes : {gang.nodes / 2, gang.nodes / 4}) {
      if (nodes < 1) continue;
      if (const auto other = changed({fmt::format("{}.nodes={}", pool, nodes)}))
        out.emplace_back(
            fmt::format("{} of {}", nodes == 1 ? "1 node" : fmt::format("{} nodes", nodes),
                        gang.of_each),
            other->second);
    }
    for (const std::string& name : accelerators_of(snapshot_)) {
      if (name == mine.accelerator || out.size() >= kMostAlternatives) continue;
      const Accelerator* other = catalog_accelerator(name);
      if (other == nullptr) continue;
      if (const auto there = changed({fmt::format("{}.accelerator.type={}", pool, other->name)}))
        out.emplace_back(fmt::format("on {}", other->name), there->second);
    }
    for (const std::string& queue : queues_of(snapshot_)) {
      if (queue == mine.queue || out.size() >= kMostAlternatives) continue;
      Submission other = mine;
      other.queue = queue;
      out.emplace_back("in queue " + queue, other);
    }
    std::vector<Seconds> times = mine.times;
    std::ranges::sort(times);
    const Seconds p95 = times[std::size_t(0.95 * double(times.size() - 1))];
    const Seconds shorter{std::ceil(p95.count() / 60) * 60};
    if (shorter < 0.9 * *mine.limit) {
      Submission other = mine;
      other.limit = shorter;
      out.emplace_back(fmt::format("asking for {}", format_duration(shorter)), other);
    }
    Submission tonight = mine;
    const double of_day = std::fmod(double(snapshot_.at), kSecondsOfDay);
    double wait = kEvening * kSecondsOfHour - of_day;
    if (wait <= 0) wait += kSecondsOfDay;
    tonight.after = Seconds{wait};
    out.emplace_back(fmt::format("submitted at {}:00", kEvening), tonight);
    return out;
  }

  const Accelerator* catalog_accelerator(const std::string& seen) const {
    if (const Accelerator* product = accelerator_of_product(seen, catalog_)) return product;
    const Accelerator* best = nullptr;
    std::size_t most = 0;
    for (const Accelerator& a : catalog_.accelerators)
      if (const std::size_t like = likeness(seen, a.name, catalog_); like > most)
        best = &a, most = like;
    return best;
  }

  void add_notes(StartAnswer& out) const {
    out.notes.insert(out.notes.end(), snapshot_.notes.begin(), snapshot_.notes.end());
    const auto& history = snapshot_.history.jobs;
    if (history.size() < 2) {
      out.notes.emplace_back(
          "no history is given: no later jobs come, and jobs with a limit take a share of it that "
          "is "
          "uniform up to 100 %. With 'sacct --parsable2' of the last weeks the shares and the "
          "arrivals are the recorded ones.");
    } else {
      out.notes.push_back(
          fmt::format("lengths and later jobs are those of {} recorded jobs; later jobs queue "
                      "behind those that "
                      "wait",
                      format_count(double(history.size()))));
    }
    if (snapshot_.system == SnapshotSystem::slurm && !choice_.priority)
      out.notes.emplace_back(
          "priorities are those of the export, and the new job has the lowest that waits "
          "(--priority "
          "says another)");
  }

  static constexpr std::size_t kMostAlternatives = 6;
  const std::string& file_;
  const ScenarioChanges& changes_;
  const Sampling& sampling_;
  const SubmitChoice& choice_;
  const LoadedCatalog& catalog_;
  const NetworkModel& network_;
  ClusterSnapshot snapshot_;
  std::vector<std::string> notes_;
};

}  // namespace

int simulate_submission(const std::string& file, const ScenarioChanges& changes,
                        const Sampling& sampling, const SubmitChoice& choice, OutputFormat format,
                        const LoadedCatalog& catalog, const NetworkModel& network) {
  return SubmissionAnswer(file, changes, sampling, choice, catalog, network).answer(format);
}

}  // namespace reckon::cli
