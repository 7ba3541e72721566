#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "report/html/html.h"
#include "report/html/page_assets.h"
#include "report/html/queue_charts.h"
#include "support/html_page.h"
#include "support/text.h"

using namespace reckon;
using nlohmann::json;

namespace {

/// 40 jobs of two teams on two nodes of eight, under a policy that suspends.
TraceQuestion crowded(SchedulingPolicy policy) {
  TraceQuestion question;
  question.scenario = "crowded <b id=evil>";
  question.policy = policy;
  QueueQuestion q;
  q.scheduler.policy = policy;
  q.groups = {{2, 8, 0}};
  q.group_names = {"a100"};
  q.rates.resize(q.groups.size());
  for (int k = 0; k < 40; ++k) {
    q.list.jobs.push_back(recorded_job(SimTime{} + std::chrono::minutes(k),
                                       std::chrono::minutes(10 + k * 7 % 50), 1 + k * 5 % 16));
    q.list.jobs.back().owner.team = q.list.names.teams.number(k % 2 == 0 ? "vision" : "<i>speech");
  }
  question.work = std::move(q);
  return question;
}

std::string queue_page_of(const TraceQuestion& question) {
  const TraceResult result = simulate_trace(question, 1, 1);
  const QueueRecord record = record_queue(question).value();
  return queue_html({question, result, record, "Why do jobs wait?"}, test::kAssets);
}

}  // namespace

TEST_CASE("the page of a queue shows its length, its GPUs, the waits, the nodes and a story") {
  const std::string page = queue_page_of(crowded(SchedulingPolicy::easy_backfill));
  const auto specs = test::specs_of(page);
  REQUIRE(specs.size() == 5);
  for (const char* id : {"queue-length", "gpus", "waits", "nodes", "story"}) {
    INFO(id);
    CHECK(specs.contains(id));
  }
  // In use, stranded and free add up to all GPUs at every time.
  std::map<double, double> sum;
  for (const json& v : specs.at("gpus")["data"]["values"]) sum[v["at"]] += v["value"].get<double>();
  for (const auto& [at, gpus] : sum) CHECK(gpus == Approx(16));
  // Every node has a row, and a curve for each team ends with all of its jobs.
  CHECK(specs.at("nodes")["encoding"]["y"]["scale"]["domain"] == json({"a100-0", "a100-1"}));
  std::map<std::string, double> last;
  double before = 0;
  for (const json& v : specs.at("waits")["data"]["values"]) {
    if (v["share"] == 0) before = 0;
    CHECK(v["wait"].get<double>() >= before);
    before = v["wait"];
    last[v["class"]] = v["share"];
  }
  CHECK(last == std::map<std::string, double>{{"<i>speech", 1}, {"vision", 1}});
  CHECK(test::contains(page, "Why do jobs wait?"));
  CHECK(test::contains(page, "It waited"));
  CHECK_FALSE(test::contains(page, "<b id=evil>"));
  CHECK_FALSE(test::contains(page, "<i>speech"));
}

TEST_CASE("the story tells of a job that was preempted") {
  const TraceQuestion question = crowded(SchedulingPolicy::srtf);
  const std::string page = queue_page_of(question);
  const QueueRecord record = record_queue(question).value();
  const std::size_t job = typical_wait(record.run);
  CHECK(test::contains(page, "Job " + std::to_string(job + 1)));
  CHECK(test::contains(page, "preempted") == (record.run.jobs[job].preemptions > 0));
}

TEST_CASE("the page of nodes that Karpenter makes shows them come and go") {
  TraceQuestion question = crowded(SchedulingPolicy::kubernetes);
  auto& q = std::get<QueueQuestion>(question.work);
  q.groups.clear();
  q.group_names.clear();
  q.rates.clear();
  for (JobRequest& job : q.list.jobs) {
    const int gpus = job.gpus();
    job.workers = gpus;  // pods of one GPU each
    job.worker = {};
    job.worker.gpus = 1;
  }
  q.scheduler.kubernetes.emplace();
  KarpenterMarket market;
  market.spec.node_pools.emplace_back().limits.gpus = 24;
  market.spec.do_not_disrupt = false;
  for (const auto& [type, gpus] : {std::pair{"g5.xlarge", 1}, std::pair{"g5.12xlarge", 4}}) {
    const NodeRoom room{gpus * 8000, gpus * 16'384, gpus};
    market.offerings.push_back(
        {type, CapacityType::on_demand, 0, room, room, std::int64_t{gpus} * 1'000'000'000});
    market.delays.emplace_back(Seconds{180});
  }
  q.karpenter = market;
  const std::string page = queue_page_of(question);
  const auto specs = test::specs_of(page);
  for (const char* id : {"queue-length", "gpus", "waits", "nodes", "story"}) {
    INFO(id);
    CHECK(specs.contains(id));
  }
  // In use, stranded and free add up to the GPUs that are there, which change.
  std::map<double, double> sum;
  for (const json& v : specs.at("gpus")["data"]["values"]) sum[v["at"]] += v["value"].get<double>();
  double least = 1e9, most = 0;
  for (const auto& [at, gpus] : sum) least = std::min(least, gpus), most = std::max(most, gpus);
  CHECK(most <= 28 + 1e-6);  // a replacement comes before its nodes go
  CHECK(least < 0.9 * most);
  // Where no node stands in a row nothing is drawn.
  const json& nodes = specs.at("nodes");
  const std::size_t rows = nodes["encoding"]["y"]["scale"]["domain"].size();
  std::set<double> times;
  for (const json& cell : nodes["data"]["values"]) times.insert(cell["at"].get<double>());
  CHECK(nodes["data"]["values"].size() < rows * times.size());
  CHECK(test::contains(page, "came and went"));
  CHECK(test::contains(page, "g5.12xlarge-0"));
}
