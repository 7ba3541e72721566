#include "sim/queue/pace/own_jobs.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/queue/lists/job_lists.h"
#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Classes whose jobs are trainings of one's own, and paces as a scenario says them.
using namespace reckon;
using Catch::Contains;

namespace {

constexpr const char* kMixed = R"(name: mixed
cluster:
  provider: on_premises
  scheduler: {policy: fifo}
  fabric: {nodes_per_leaf: 4, oversubscription: 2}
  pools:
    - name: a100
      nodes: 8
      accelerator: {type: A100-SXM4-80, count: 8}
      machine:
        {vcpu: 128, memory: 1TiB, network: 800Gbps, purchase: 165000 EUR, amortised_over: 4y}
    - name: v100
      nodes: 8
      accelerator: {type: V100-SXM2-32, count: 4}
      machine: {vcpu: 96, memory: 768GiB, network: 100Gbps}
prices: {currency: EUR, usd_rate: 0.92}
arrivals:
  period: 10d
  classes:
    - CLASS
)";

ScenarioFile mixed(const std::string& kind, const std::vector<std::string>& sets = {}) {
  std::string text = kMixed;
  text.replace(text.find("CLASS"), 5, kind);
  const auto scenario = parse_scenario(text, "mixed.yaml", sets);
  REQUIRE(scenario);
  return *scenario;
}

/// A step model that takes an hour on one leaf of the A100, twice that on the V100, and a tenth
/// more for each further leaf. It notes what it was asked, as "file pool nodes x GPUs, nodes of a
/// leaf".
struct AskedModel {
  std::vector<std::string> questions;
  bool refuses = false;  // the V100

  Expected<Seconds> answer(const std::filesystem::path& file, const ClusterSpec& on) {
    const PoolSpec& pool = on.pools.front();
    const int leaf = *on.fabric->nodes_per_leaf;
    questions.push_back(fmt::format("{} {} {}x{}, {}", file.filename().string(), pool.name,
                                    pool.nodes.initial, pool.accelerator->count, leaf));
    // Neither who schedules the queue nor what its nodes cost is of the training.
    CHECK_FALSE(on.scheduler);
    CHECK_FALSE(std::get<MachineInline>(pool.machine).purchase);
    if (pool.name == "v100" && refuses)
      return tl::unexpected(Diagnostics{{Severity::error, {}, "it does not fit in memory", ""}});
    const int leaves = (pool.nodes.initial + leaf - 1) / leaf;
    return Seconds{(pool.name == "v100" ? 7200 : 3600) * (1 + 0.1 * (leaves - 1))};
  }
  OwnJobTime time() {
    return [this](const std::filesystem::path& file, const ClusterSpec& on) {
      return answer(file, on);
    };
  }
};

const std::string kBert =
    "{name: bert, jobs_per_hour: 1, gpus: 16, job: bert.yaml, teams: {language: 1}}";

const ClassPace& pace_of(const TraceQuestion& question, int gpus) {
  return std::get<QueueQuestion>(question.work).drawn->paces.front().at(gpus);
}

}  // namespace

TEST_CASE("a training is asked about on each pool, by the leaves that its nodes may be of") {
  AskedModel asked;
  const auto question = load_trace(mixed(kBert), asked.time());
  REQUIRE(question);
  CHECK(asked.questions ==
        std::vector<std::string>{"bert.yaml a100 2x8, 2", "bert.yaml a100 2x8, 1",
                                 "bert.yaml v100 4x4, 4", "bert.yaml v100 4x4, 2",
                                 "bert.yaml v100 4x4, 1"});
  const ClassPace& pace = pace_of(*question, 16);
  CHECK(pace.length->count() == 3600);
  REQUIRE(pace.pace.by_pool.size() == 2);
  REQUIRE(pace.pace.by_pool[0].size() == 2);
  CHECK(pace.pace.by_pool[0][0] == 1);
  CHECK(pace.pace.by_pool[0][1] == Approx(1 / 1.1));
  REQUIRE(pace.pace.by_pool[1].size() == 4);  // 1, 2, 3 and 4 leaves; 3 are as 2 nodes a leaf
  CHECK(pace.pace.by_pool[1][0] == 0.5);
  CHECK(pace.pace.by_pool[1][1] == Approx(0.5 / 1.1));
  CHECK(pace.pace.by_pool[1][2] == Approx(0.5 / 1.1));
  CHECK(pace.pace.by_pool[1][3] == Approx(0.5 / 1.3));
}

TEST_CASE("jobs of a class are as long as their training is on the nodes that they get") {
  AskedModel asked;
  const auto question = load_trace(mixed(kBert), asked.time());
  REQUIRE(question);
  const auto record = record_queue(*question);
  REQUIRE(record->list.jobs.size() > 200);
  int fast = 0, slow = 0;
  for (const JobTimes& job : record->run.jobs) {
    const double hours = to_seconds(*job.end - *job.start).count() / 3600;
    CHECK(hours >= 1 - 1e-9);
    CHECK(hours <= 2.6 + 1e-9);
    fast += hours < 1.2 ? 1 : 0;
    slow += hours >= 2 ? 1 : 0;
  }
  CHECK(fast > 0);
  CHECK(fast + slow == int(record->list.jobs.size()));
}

TEST_CASE("a job of fewer GPUs than a node has is one node with so many") {
  AskedModel asked;
  REQUIRE(load_trace(mixed("{name: b, jobs_per_hour: 1, gpus: 2, job: b.yaml}"), asked.time()));
  CHECK(asked.questions == std::vector<std::string>{"b.yaml a100 1x2, 1", "b.yaml v100 1x2, 1"});
}

TEST_CASE("a pool on which a training cannot run is left out, and the reason is told") {
  AskedModel asked;
  asked.refuses = true;
  const auto question = load_trace(mixed(kBert), asked.time());
  REQUIRE(question);
  CHECK(pace_of(*question, 16).pace.by_pool[1].empty());
  CHECK(question->warnings ==
        std::vector<std::string>{
            "jobs of class bert on 16 GPUs are kept off pool v100: it does not fit in memory"});
  const auto record = record_queue(*question);
  for (const Holding& h : record->holdings) CHECK(h.part.node < 8);
  // 12 GPUs are no whole nodes of eight, and the V100s cannot.
  const auto nowhere =
      load_trace(mixed("{name: odd, jobs_per_hour: 1, gpus: 12, job: odd.yaml}"), asked.time());
  REQUIRE_FALSE(nowhere);
  CHECK_THAT(format(nowhere.error().front()),
             Contains("mixed.yaml:20:") && Contains("'odd.yaml' runs on no pool on 12 GPUs") &&
                 Contains("kept off pool v100: it does not fit in memory"));
}

TEST_CASE("without a catalog a training of one's own is refused") {
  const auto question = load_trace(mixed(kBert));
  REQUIRE_FALSE(question);
  CHECK_THAT(question.error().front().what, Contains("needs the catalog"));
}

TEST_CASE("paces as said are by pool and across leaves") {
  const auto question = load_trace(mixed(
      "{name: n, jobs_per_hour: 1, gpus: [8, 16], duration: 1h, pace: {v100: 45%}, across_leaves: "
      "80%}"));
  REQUIRE(question);
  for (const int gpus : {8, 16}) {
    const ClassPace& pace = pace_of(*question, gpus);
    CHECK_FALSE(pace.length);
    CHECK(pace.pace.by_pool[0] == std::vector<double>{1, 0.8});
    CHECK(pace.pace.by_pool[1] == std::vector<double>{0.45, 0.45 * 0.8});
  }
  const auto none =
      load_trace(mixed("{name: n, jobs_per_hour: 1, gpus: 8, duration: 1h, pace: {v100: 0}}"));
  REQUIRE(none);
  const auto record = record_queue(*none);
  for (const Holding& h : record->holdings) CHECK(h.part.node < 8);
}

TEST_CASE("paces that cannot be are told where they stand") {
  const auto what = [](const std::string& kind) {
    const auto question = load_trace(mixed(kind));
    REQUIRE_FALSE(question);
    return question.error().front().what;
  };
  CHECK_THAT(what("{name: n, jobs_per_hour: 1, gpus: 8, duration: 1h, pace: {v10: 45%}}"),
             Contains("'v10' is no pool with GPUs; did you mean 'v100'?"));
  CHECK_THAT(what("{name: n, jobs_per_hour: 1, gpus: 8, duration: 1h, pace: {v100: 0, a100: 0}}"),
             Contains("its jobs run on no pool"));
  ScenarioFile flat =
      mixed("{name: n, jobs_per_hour: 1, gpus: 8, duration: 1h, across_leaves: 80%}");
  flat.scenario.cluster.fabric.reset();
  const auto question = load_trace(flat);
  REQUIRE_FALSE(question);
  CHECK_THAT(question.error().front().what, Contains("the cluster has no leaves"));
}

TEST_CASE("a list of one's own may name trainings, beside the file of the list") {
  const std::string text = "submit_seconds,duration_seconds,gpus,job\n0,,16,bert.yaml\n0,600,16,\n";
  const auto list = read_job_csv("jobs.csv", text);
  REQUIRE(list);
  CHECK(list->names.trainings.names() == std::vector<std::string>{"bert.yaml"});
  CHECK(list->jobs[0].pace == 0);
  CHECK(list->jobs[1].pace == JobRequest::kAlikeEverywhere);
  const auto both =
      read_job_csv("jobs.csv", "submit_seconds,duration_seconds,gpus,job\n0,600,16,bert.yaml\n");
  REQUIRE_FALSE(both);
  CHECK(format(both.error().front())
            .starts_with("jobs.csv:2:10: error: a row has a duration_seconds and a job"));
  AskedModel asked;
  ScenarioFile file = mixed(kBert);
  file.scenario.arrivals.reset();
  file.scenario.trace = TraceSpec{.file = "jobs.csv", .pace = {{{"v100", 0.25}}, {}}};
  TraceSource source(file, "trace", "");
  std::vector<std::string> notes;
  JobList paced = *list;
  const OwnTimes time{asked.time(), {}};
  PaceLoader loader(file, {"a100", "v100"}, time, source, notes);
  REQUIRE(loader.set_list(paced));
  CHECK(paced.jobs[0].pace == 1);
  CHECK(std::get<FixedTime>(paced.jobs[0].work).time == std::chrono::seconds(3600));
  CHECK(paced.paces[1].by_pool[1][0] == 0.5);
  CHECK(paced.jobs[1].pace == 0);  // as the list says
  CHECK(paced.paces[0].by_pool == std::vector<std::vector<double>>{{1}, {0.25}});
}
