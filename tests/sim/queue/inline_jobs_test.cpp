#include "sim/queue/lists/inline_jobs.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// `jobs:` that cluster.scheduler starts.
using namespace reckon;
using Catch::Contains;

namespace {

constexpr const char* kListed = R"(name: listed
cluster:
  provider: on_premises
  scheduler: SCHEDULER
  pools:
    - name: a100
      nodes: 1
      accelerator: {type: A100-SXM4-80, count: 8}
      machine: {vcpu: 128, memory: 1TiB, network: 800Gbps}
    - name: v100
      nodes: 1
      accelerator: {type: V100-SXM2-32, count: 4}
      machine: {vcpu: 96, memory: 768GiB, network: 100Gbps}
jobs:
JOBS)";

/// `jobs` begin on line 15.
ScenarioFile listed(const std::string& scheduler, const std::string& jobs,
                    const std::vector<std::string>& sets = {}) {
  std::string text = kListed;
  text.replace(text.find("SCHEDULER"), 9, scheduler);
  text.replace(text.find("JOBS"), 4, jobs);
  const auto scenario = parse_scenario(text, "listed.yaml", sets);
  if (!scenario) FAIL(format(scenario.error()));
  return *scenario;
}

QueueRecord recorded(const std::string& scheduler, const std::string& jobs) {
  const auto question = load_trace(listed(scheduler, jobs));
  if (!question) FAIL(format(question.error()));
  return *record_queue(*question);
}

double listed_start(const QueueRecord& record, std::size_t job) {
  return double((record.run.jobs.at(job).start.value() - SimTime{}) / std::chrono::seconds(1));
}

/// Three of them fill the 8 GPUs one after the other.
const std::string kThree = R"(  - {name: long, gpus: 8, duration: 2h, team: vision, user: ann}
  - {name: short, submit: 1min, gpus: 8, duration: 1h, limit: 90min, team: language, user: bob}
  - {name: urgent, submit: 2min, gpus: 8, duration: 1h, priority: 10, team: language, user: cy}
)";

}  // namespace

TEST_CASE("a scenario's own jobs run through its scheduler, in its order") {
  const QueueRecord fifo = recorded("{policy: fifo}", kThree);
  CHECK(listed_start(fifo, 0) == 0);
  CHECK(listed_start(fifo, 1) == 7200);
  CHECK(listed_start(fifo, 2) == 7200 + 3600);
  const QueueRecord kubernetes =
      recorded("{policy: kubernetes, kubernetes: {preemptionPolicy: Never}}", kThree);
  CHECK(listed_start(kubernetes, 2) == 7200);
  CHECK(listed_start(kubernetes, 1) == 7200 + 3600);
  const QueueRecord preempting = recorded("{policy: kubernetes}", kThree);
  CHECK(listed_start(preempting, 2) == 120);
  CHECK(preempting.run.jobs[0].preemptions == 1);
}

TEST_CASE("their owners, limits and lines are those of the file") {
  const auto question = load_trace(listed("{policy: fifo}", kThree));
  REQUIRE(question);
  const JobList& list = std::get<QueueQuestion>(question->work).list;
  CHECK(list.names.teams.names() == std::vector<std::string>{"vision", "language"});
  CHECK(list.names.users.name(list.jobs[2].owner.user) == "cy");
  CHECK(list.jobs[2].owner.priority == 10);
  CHECK(std::get<FixedTime>(list.jobs[1].work).limit == to_clock(Seconds{5400}));
  CHECK(list.jobs[0].line == 15);
  CHECK(list.jobs[2].line == 17);
  const TraceResult result = simulate_trace(*question, 1, 1);
  REQUIRE(result.teams.size() == 2);
  CHECK(result.teams[1].jobs == 2);
  CHECK(result.fairness);
}

TEST_CASE("a job is submitted as often as it says") {
  const QueueRecord r =
      recorded("{policy: fifo}",
               "  - {name: nightly, gpus: 4, duration: 1h, submit: 1h, every: 1d, times: 3}\n");
  REQUIRE(r.list.jobs.size() == 3);
  CHECK(listed_start(r, 0) == 3600);
  CHECK(listed_start(r, 2) == 3600 + 2 * 86'400);
}

TEST_CASE("a job's pace by pool counts, and a pool of pace 0 is not used") {
  const QueueRecord slow = recorded(
      "{policy: fifo}", "  - {name: a, gpus: 4, duration: 1h, pace: {v100: 50%, a100: 0}}\n");
  CHECK(to_seconds(*slow.run.jobs[0].end - *slow.run.jobs[0].start).count() == 7200);
}

TEST_CASE("a job that is a training takes what the step model says, in the file or beside it") {
  const std::string jobs = R"(  - {name: file, gpus: 8, job: bert.yaml}
  - name: inline
    gpus: 8
    workload: {model: resnet50_v1_5, dataset: imagenet, train: {epochs: 1},
               batch_per_accelerator: 64}
)";
  QueueSources sources;
  std::vector<std::string> asked;
  sources.own_times.of_file = [&](const std::filesystem::path& file,
                                  const ClusterSpec&) -> Expected<Seconds> {
    asked.push_back(file.filename().string());
    return Seconds{600};
  };
  sources.own_times.of_training = [&](const ScenarioFile& training,
                                      const ClusterSpec& on) -> Expected<Seconds> {
    CHECK(training.scenario.jobs.empty());
    REQUIRE(training.scenario.workload);
    CHECK(training.places.find("workload.model").line == 18);
    asked.push_back(on.pools.front().name);
    // 8 GPUs are two nodes of V100.
    return Seconds{on.pools.front().name == "a100" ? 1000.0 : 4000.0};
  };
  const auto question = load_trace(listed("{policy: fifo}", jobs), sources);
  if (!question) FAIL(format(question.error()));
  CHECK(asked == std::vector<std::string>{"bert.yaml", "bert.yaml", "a100", "v100"});
  const JobList& list = std::get<QueueQuestion>(question->work).list;
  CHECK(std::get<FixedTime>(list.jobs[0].work).time == to_clock(Seconds{600}));
  CHECK(std::get<FixedTime>(list.jobs[1].work).time == to_clock(Seconds{1000}));
  CHECK(list.paces[std::size_t(list.jobs[1].pace)].by_pool[1][0] == Approx(0.25));
  const auto without = load_trace(listed("{policy: fifo}", jobs));
  REQUIRE_FALSE(without);
  CHECK_THAT(format(without.error()),
             Contains("listed.yaml:15:") && Contains("a training of one's own needs the catalog"));
}

TEST_CASE("what jobs name and the cluster does not have is told where the job names it") {
  const auto wrong = [](const std::string& scheduler, const std::string& jobs) {
    const auto question = load_trace(listed(scheduler, jobs));
    REQUIRE_FALSE(question);
    return format(question.error());
  };
  CHECK_THAT(wrong("{policy: slurm, slurm: {partitions: [{name: all}]}}",
                   "  - {name: a, gpus: 1, duration: 1h, queue: all}\n"
                   "  - {name: b, gpus: 1, duration: 1h, queue: al}\n"),
             Contains("listed.yaml:16:45") && Contains("'al'"));
  CHECK_THAT(wrong("{policy: fifo}",
                   "  - {name: a, gpus: 1, duration: 1h, resource: nvidia.com/mig-1g.10gb}\n"),
             Contains("listed.yaml:15:48") && Contains("which no pool has"));
  CHECK_THAT(wrong("{policy: fifo}", "  - {name: a, gpus: 1, duration: 1h, pace: {v10: 50%}}\n"),
             Contains("listed.yaml:15:") && Contains("did you mean 'v100'?"));
}

TEST_CASE("a job that can never run is told with its line and the limit that binds") {
  const auto question =
      load_trace(listed("{policy: fifo}", "  - {name: big, gpus: 64, duration: 1h}\n"));
  REQUIRE(question);
  const TraceResult result = simulate_trace(*question, 1, 1);
  CHECK(result.never == 1);
  REQUIRE(result.warnings.size() == 1);
  CHECK_THAT(result.warnings[0], Contains("line 15") && Contains("64 GPUs"));
}
