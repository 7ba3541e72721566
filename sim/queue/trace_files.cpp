#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/mapped_file.h"
#include "sim/queue/free_nodes.h"
#include "sim/queue/openb_csv.h"
#include "sim/queue/slurm.h"
#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon {
namespace {

using std::filesystem::path;

class TraceLoader {
 public:
  explicit TraceLoader(const ScenarioFile& file)
      : file_(file), spec_(*file.scenario.trace), scheduler_(*file.scenario.cluster.scheduler) {}

  Expected<TraceQuestion> load() {
    question_.scenario = file_.scenario.name;
    question_.policy = scheduler_.policy;
    question_.window = spec_.window;
    question_.seed = file_.scenario.forecast.seed;
    if (spec_.load)
      load_pods();
    else if (scheduler_.policy == SchedulingPolicy::fifo_perf)
      load_gavel();
    else
      load_fifo();
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    return std::move(question_);
  }

 private:
  void error(const char* at, std::string what, std::string hint = "") {
    problems_.push_back({Severity::error, file_.places.find(at), std::move(what), std::move(hint)});
  }

  /// Where a file of the trace may be, the likeliest first.
  std::vector<path> candidates(const std::string& key, const path& name) const {
    std::vector<path> places;
    if (!spec_.directory.empty()) {
      for (const path& from : {directory_of(file_, "trace.directory"), path()}) {
        places.push_back(from / spec_.directory / name);
        places.push_back(from / spec_.directory / name.filename());
      }
    }
    places.push_back(directory_of(file_, "trace." + key) / name);
    if (file_.places.find("trace." + key).line == 0) places.push_back(name);
    return places;
  }

  /// Reads with `read(name, bytes)`; nullopt: reported.
  template <class Read>
  auto read(const std::string& key, const std::string& name, Read reader)
      -> std::optional<typename decltype(reader("", ""))::value_type> {
    for (const path& place : candidates(key, name)) {
      std::error_code unreadable;
      if (!std::filesystem::is_regular_file(place, unreadable)) continue;
      const MappedFile bytes(place);
      auto value = reader(place.lexically_normal().string(), bytes.bytes());
      if (value) return std::move(*value);
      problems_.insert(problems_.end(), value.error().begin(), value.error().end());
      return std::nullopt;
    }
    error(("trace." + key).c_str(), fmt::format("the file '{}' is not found", name),
          spec_.directory.empty() ? "a path is relative to the scenario; trace.directory names "
                                    "another place"
                                  : "it is neither in trace.directory nor beside the scenario");
    return std::nullopt;
  }

  void load_pods() {
    LoadQuestion work;
    work.load = *spec_.load;
    if (spec_.format != TraceFormat::openb)
      return error("trace.format", "a load is of pods in the format openb",
                   "without trace.load: policy fifo");
    if (spec_.nodes.empty())
      return error("trace", "a load needs a list of nodes",
                   "example: nodes: openb_node_list_gpu_node.csv");
    if (spec_.running != 0 || spec_.window)
      return error("trace", "running and window are of jobs that end",
                   "with a load pods stay: leave them out");
    auto nodes = read("nodes", spec_.nodes, read_openb_nodes);
    auto pods = read("file", spec_.file, read_openb_pods);
    if (!nodes || !pods) return;
    work.nodes = std::move(*nodes);
    work.pods = std::move(*pods);
    question_.work = std::move(work);
  }

  void load_gavel() {
    GavelQuestion work;
    for (const PoolSpec& pool : file_.scenario.cluster.pools)
      work.kinds.push_back({pool.name, pool.nodes.initial * gpus_of(pool)});
    std::sort(work.kinds.begin(), work.kinds.end(),
              [](const GavelKind& a, const GavelKind& b) { return a.name < b.name; });
    if (work.kinds.empty())
      return error("cluster", "jobs of Gavel's lists run on cluster.pools",
                   "the name of a pool is its kind in the table of throughputs");
    work.rules.round = scheduler_.time_per_iteration.value_or(work.rules.round);
    work.rules.between_decisions =
        scheduler_.minimum_time_between_allocation_resets.value_or(work.rules.between_decisions);
    const auto table = read("throughputs", spec_.throughputs, read_throughputs);
    if (!table) return;
    auto list = read("file", spec_.file, [&](const std::string& name, std::string_view bytes) {
      return read_gavel_jobs(name, bytes, *table, work.kinds,
                             static_cast<std::size_t>(spec_.running));
    });
    if (!list) return;
    work.list = std::move(*list);
    if (work.list.repeated_line > 0)
      question_.warnings.push_back(
          fmt::format("line {} of the list repeats the job that opens the window, and was left out",
                      work.list.repeated_line));
    check_window(work.list.jobs.size() - work.list.running);
    question_.work = std::move(work);
  }

  void load_fifo() {
    FifoQuestion work;
    work.running = static_cast<std::size_t>(spec_.running);
    for (const PoolSpec& pool : file_.scenario.cluster.pools)
      work.groups.push_back({pool.nodes.initial, gpus_of(pool)});
    if (!spec_.nodes.empty()) {
      const auto nodes = read("nodes", spec_.nodes, read_openb_nodes);
      if (!nodes) return;
      for (const GpuNode& node : *nodes)
        if (node.gpus > 0) work.groups.push_back({1, node.gpus});
    }
    std::erase_if(work.groups, [](const NodeGroup& g) { return g.gpus == 0 || g.nodes == 0; });
    if (work.groups.empty())
      return error("cluster", "no node has a GPU", "give a pool its accelerator");
    std::optional<std::vector<JobRequest>> jobs;
    if (spec_.format == TraceFormat::philly)
      jobs = read("file", spec_.file, read_philly_csv);
    else if (spec_.format == TraceFormat::csv)
      jobs = read("file", spec_.file, read_job_csv);
    else if (spec_.format == TraceFormat::slurm)
      jobs = slurm_jobs();
    else
      return error("trace.format", "jobs of this format are not simulated yet under this policy",
                   "formats with durations: csv, philly, slurm");
    if (!jobs) return;
    tell_jobs_that_never_run(*jobs, work.groups);
    work.jobs = std::move(*jobs);
    if (work.running >= work.jobs.size())
      return error("trace.running", fmt::format("{} jobs ran already, and the list has {}",
                                                work.running, work.jobs.size()));
    check_window(work.jobs.size() - work.running);
    question_.work = std::move(work);
  }

  std::optional<std::vector<JobRequest>> slurm_jobs() {
    auto list = read("file", spec_.file, read_sacct);
    if (!list) return std::nullopt;
    std::vector<std::string> left_out;
    const auto count = [&](int rows, const char* what) {
      if (rows > 0) left_out.push_back(fmt::format("{} {}", rows, what));
    };
    count(list->steps, "steps of jobs");
    count(list->without_gpu, "without gres/gpu");
    count(list->not_run, "that never started");
    count(list->running, "that still run");
    if (!left_out.empty())
      question_.warnings.push_back(
          fmt::format("rows of the list left out: {}", fmt::join(left_out, ", ")));
    return std::move(list->jobs);
  }

  /// One note: the first of them and the limit that binds.
  void tell_jobs_that_never_run(const std::vector<JobRequest>& jobs,
                                const std::vector<NodeGroup>& groups) {
    const FreeNodes empty(groups);
    const auto never = [&](const JobRequest& job) { return !empty.fits(job.gpus()); };
    const auto first = std::find_if(jobs.begin(), jobs.end(), never);
    if (first == jobs.end()) return;
    question_.warnings.push_back(fmt::format(
        "{} of the jobs can never run; the first, line {} of the list, asks for {} GPUs: {}",
        std::count_if(jobs.begin(), jobs.end(), never), first->line, first->gpus(),
        limit_that_binds(first->gpus(), groups).value_or("")));
  }

  void check_window(std::size_t behind) {
    if (spec_.window && static_cast<std::size_t>(*spec_.window) > behind)
      error("trace.window", fmt::format("the window has {} jobs, and only {} follow those that "
                                        "ran already",
                                        *spec_.window, behind));
  }

  static int gpus_of(const PoolSpec& pool) {
    return pool.accelerator ? pool.accelerator->count : 0;
  }

  const ScenarioFile& file_;
  const TraceSpec& spec_;
  const SchedulerSpec& scheduler_;
  TraceQuestion question_;
  Diagnostics problems_;
};

}  // namespace

Expected<TraceQuestion> load_trace(const ScenarioFile& file) { return TraceLoader(file).load(); }

}  // namespace reckon
