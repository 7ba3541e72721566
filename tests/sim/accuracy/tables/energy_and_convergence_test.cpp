#include <catch2/catch.hpp>
#include <map>

#include "sim/accuracy/tables/tables.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

const std::string kEnergyHeader =
    "kind,id,source,dataset,network,batch,optimizer,target_metric,runs_reached,epochs_median,"
    "accelerator,power_limit_watts,seconds_per_epoch,average_watts\n";

std::string convergence(const std::string& id, const std::string& batch, const std::string& target,
                        const std::string& epochs) {
  return "convergence," + id + ",z,cifar100,net," + batch + ",adam," + target + ",5," + epochs +
         ",,,,\n";
}
std::string power(const std::string& id, const std::string& task, const std::string& rest) {
  return "power," + id + ",z," + task + ",net,64,adam,,,,V100-PCIE-16," + rest + "\n";
}

std::map<std::string, ScoredRun> by_id(const ScoredTable& table, std::string_view figure) {
  std::map<std::string, ScoredRun> runs;
  for (const ScoredRun& r : table.scored.runs)
    if (r.figure.starts_with(figure)) runs[std::string(r.at.id)] = r;
  return runs;
}

ScoredTable scored_energy(const std::string& rows, TextPool& pool) {
  auto table =
      score_energy_and_convergence("e.csv", kEnergyHeader + rows, pool, test::shipped_catalog());
  REQUIRE(table);
  return std::move(*table);
}

}  // namespace

TEST_CASE("a target's epochs follow from its middle batch and the task's other targets") {
  TextPool pool;
  // The first target's samples double at 1,024: 20 (1 + B / 1024) + 1/2.
  const std::string first = convergence("a", "64", "0.3", "21.75") +
                            convergence("b", "1024", "0.3", "40.5") +
                            convergence("c", "4096", "0.3", "100.5");
  const std::string second = convergence("d", "64", "0.4", "1") +
                             convergence("e", "1024", "0.4", "11") +
                             convergence("f", "4096", "0.4", "1");
  const auto runs = by_id(scored_energy(first + second, pool), "epochs");
  REQUIRE(runs.size() == 4);  // two of each target; the middle one is given
  // 10.5 of the given 11, (1 + 64/1024) / 2 and 5/2 of it, in whole epochs; what d and f measured
  // is not read.
  CHECK(runs.at("d").predicted == 6);
  CHECK(runs.at("f").predicted == 27);
  CHECK(runs.at("d").measured == 1);
  CHECK_FALSE(runs.contains("e"));
}

TEST_CASE("a batch that never reached its target is counted, not predicted") {
  TextPool pool;
  const auto table = scored_energy("convergence,a,z,d,net,64,adam,0.3,0,,,,,\n", pool);
  CHECK(table.scored.runs.empty());
  CHECK(table.scored.skipped.count("no run reached the target") == 1);
}

TEST_CASE(
    "an epoch under a power limit follows from the highest and the accelerator's other tasks") {
  TextPool pool;
  // Of another task: static 60 W (24 % of 250), exponent 3: (81.25-60)/(230-60) = 1/8.
  const std::string rows = power("a", "imagenet", "250,100,230") +
                           power("b", "imagenet", "81.25,200,81.25") +
                           power("c", "imagenet", "145,125.99,145") +
                           power("d", "squad", "250,50,230") + power("e", "squad", "81.25,1,1");
  const ScoredTable table = scored_energy(rows, pool);
  const auto times = by_id(table, "seconds"), watts = by_id(table, "watts");
  REQUIRE(times.size() == 3);
  CHECK(times.at("e").predicted == Approx(100));
  CHECK(watts.at("e").predicted == Approx(81.25));
  CHECK(times.at("e").measured == 1);
  CHECK(table.scored.skipped.count("given: the highest power limit") == 2);
}

TEST_CASE("wrong cells of an energy table are told with file, line and column") {
  TextPool pool;
  const ScoredTable table = scored_energy(
      convergence("a", "none", "0.3", "4") + convergence("b", "64", "0.3", "-4") +
          "guess,c,z,d,net,64,adam,0.3,5,4,,,,\n" + power("d", "imagenet", "250,,230"),
      pool);
  CHECK(table.scored.runs.empty());
  REQUIRE(table.counts.problems.size() == 4);
  CHECK(format(table.counts.problems[0]) ==
        "e.csv:2:30: error: row skipped: batch is not a number above zero");
  CHECK(table.counts.problems[1].what == "row skipped: epochs_median is not a number above zero");
  CHECK(table.counts.problems[2].what == "row skipped: kind is convergence or power");
  CHECK(table.counts.problems[3].at.line == 5);
}
