#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/background_job.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "support/small_job.h"

// `reckon run --budget` with real processes.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Nodes that cost 1 USD a second each, and a job that no machine ends within a test.
std::string dear_job(int nodes, const std::string& price = ", price: 3600 USD/h") {
  return small_job("dear", "{kind: multi_worker_mirrored, workers: " + std::to_string(nodes) + "}",
                   100'000'000) +
         "    - {name: here, role: worker, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps" +
         price + "}, nodes: " + std::to_string(nodes) + "}\n";
}

constexpr int kBudgetSpent = 4;
const std::string kWithoutReplan = " --replications 20 --replan off";

Measurements dear_records(const Workspace& w, const std::string& out) {
  return read_measurement_log(w.path(out) / "measurements.jsonl").value();
}

}  // namespace

TEST_CASE("a run stops behind a checkpoint before its budget is passed, and goes on with more") {
  const Workspace w;
  w.write("job.yaml", dear_job(2));
  BackgroundJob job(w, "job.yaml", "run", "--budget 16USD --format json" + kWithoutReplan);
  REQUIRE(job.code() == kBudgetSpent);
  INFO(job.errors());
  const auto answer = nlohmann::json::parse(job.output());
  CHECK(answer.at("finished") == false);
  CHECK(answer.at("exit_code") == kBudgetSpent);
  CHECK(contains(answer.at("reason").get<std::string>(), "of the budget of 16.00 USD are spent"));

  // What was trained is saved, and what was spent is recorded.
  const Measurements first = dear_records(w, "run");
  REQUIRE(first.ends.size() == 1);
  const EndRecord& end = first.ends.front();
  CHECK(!end.finished);
  REQUIRE(end.spent);
  // Each of the two nodes is billed by the second that has begun.
  CHECK(*end.spent >= 2 * end.at.count());
  CHECK(*end.spent <= 2 * (end.at.count() + 1));
  CHECK(contains(end.detail, "of the budget of 16.00 USD are spent"));
  REQUIRE(end.steps_done > 0);
  const auto sets = list_sets(w.path("run") / "checkpoints");
  REQUIRE(!sets.empty());
  CHECK(sets.front().complete);
  CHECK(sets.front().step == end.steps_done);
  CHECK(contains(job.errors(), "checkpoint at step " + std::to_string(end.steps_done) +
                                   "; go on with: reckon run job.yaml --out run --format json "
                                   "--replications 20 --replan off --budget "));

  SECTION("with the same budget nothing is started") {
    BackgroundJob again(w, "job.yaml", "run", "--resume --budget 16USD" + kWithoutReplan);
    CHECK(again.code() == kBudgetSpent);
    CHECK(contains(again.output(), "are spent: a start, one step and its checkpoint would pass"));
    CHECK(dear_records(w, "run").ends.size() == 1);
    CHECK(dear_records(w, "run").runs.size() == first.runs.size());
  }
  SECTION("with a larger one it goes on, and what the first part spent counts") {
    std::this_thread::sleep_for(std::chrono::seconds(4));  // longer than what is rounded up
    BackgroundJob again(w, "job.yaml", "run",
                        "--resume --budget 32USD --format json" + kWithoutReplan);
    CHECK(again.code() == kBudgetSpent);
    const Measurements all = dear_records(w, "run");
    REQUIRE(all.ends.size() == 2);
    const auto whole = nlohmann::json::parse(again.output());
    CHECK(whole.at("starts") == 2);
    const double paused = whole.at("paused_seconds");
    CHECK(paused >= 4);
    CHECK(whole.at("time_seconds").get<double>() + paused ==
          Approx(all.ends.back().at.count()).margin(1e-6));
    CHECK(all.ends.back().steps_done > end.steps_done);
    REQUIRE(all.ends.back().spent);
    CHECK(*all.ends.back().spent > *end.spent);
    // Between the two parts nobody held the nodes.
    CHECK(*all.ends.back().spent < 2 * all.ends.back().at.count());
  }
}

TEST_CASE("what a killed run spent counts when it is resumed under its budget") {
  const Workspace w;
  w.write("job.yaml", dear_job(1));
  {
    BackgroundJob job(w, "job.yaml", "run",
                      "--budget 1000000USD --checkpoint-steps 20" + kWithoutReplan);
    REQUIRE(job.wait_for([&] { return !list_sets(w.path("run") / "checkpoints").empty(); }));
    job.signal(SIGKILL);
    CHECK(job.code() == 128 + SIGKILL);
  }
  REQUIRE(dear_records(w, "run").ends.empty());
  BackgroundJob again(w, "job.yaml", "run", "--resume --budget 15USD" + kWithoutReplan);
  REQUIRE(again.code() == kBudgetSpent);
  const Measurements all = dear_records(w, "run");
  REQUIRE(all.ends.size() == 1);
  REQUIRE(all.ends.front().spent);
  CHECK(*all.ends.front().spent == Approx(all.ends.front().at.count()).margin(1.1));
}

TEST_CASE("a budget without prices, or that is none, is refused") {
  const Workspace w;
  w.write("free.yaml", dear_job(1, ""));
  const Output free = w.run("run free.yaml --out run --budget 5USD");
  CHECK(free.code == 2);
  CHECK(contains(free.err,
                 "free.yaml:13:7: error: --budget needs prices, and that of pool 'here' "
                 "is unknown"));
  w.write("job.yaml", dear_job(1));
  CHECK(contains(w.run("run job.yaml --budget 5EUR").err, "--budget: the price is in EUR"));
  CHECK(contains(w.run("run job.yaml --budget 5").err, "'5' has no currency"));
  CHECK(contains(w.run("run job.yaml --budget 0USD").err, "--budget must be above 0"));
  CHECK(contains(w.run("run free.yaml --on kubernetes --image a:1 --budget 5USD").err,
                 "--budget needs prices"));
}
