#include "sim/accuracy/scoring/reliability_runs.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/shipped_catalog.h"
#include "support/skip.h"

using namespace reckon;

namespace {

constexpr std::string_view kHeader =
    "run,accelerators,accelerator,nodes,days,interruptions,interruptions_kind,cause_shares,"
    "goodput_or_ettr,goodput_kind,checkpoint_interval,checkpoint_seconds,restart_time,evidence,"
    "source,notes\n";

ReliabilityScores scored(const std::string& rows, int replications = 60) {
  const std::string text = std::string(kHeader) + rows;
  REQUIRE(is_reliability_table(text));
  const auto scores = score_reliability("runs.csv", text, test::shipped_catalog(), replications);
  REQUIRE(scores);
  return *scores;
}

}  // namespace

TEST_CASE("published counts of interruptions are read as they are written") {
  const ReliabilityScores scores = scored(
      "a,384,A100,48,14,1-2 a week,failures,,,,about 3 h (100 iterations),40,,read,,\n"
      "b,1024,A100,128,10,\"6.50 a 1,000 node-days\",failures,,>0.90,,,,\"back within 15 "
      "min\",read,,\n"
      "c,\">10,000\",A100,,30,about 20,failures,,0.97,,,,a machine of the cloud: hours,read,,\n");
  REQUIRE(scores.runs.size() == 3);
  const ReliabilityRun& a = scores.runs[0].run;
  CHECK(a.interruptions->low == Approx(2));
  CHECK(a.interruptions->high == Approx(4));
  CHECK(a.interval == Seconds{3 * 3600});
  CHECK(a.save == Seconds{40});
  const ReliabilityRun& b = scores.runs[1].run;
  CHECK(b.interruptions->low == Approx(6.5 * 10 * 128 / 1000));
  CHECK(b.goodput->low == Approx(0.9));
  CHECK(b.goodput->high == Approx(1));
  CHECK(b.restart == Seconds{900});
  const ReliabilityRun& c = scores.runs[2].run;
  CHECK(c.accelerators == 10000);
  CHECK(c.nodes == 1250);
  CHECK(c.rented);
  CHECK_FALSE(c.restart);
}

TEST_CASE("rows that say nothing about failures of machines are left out and counted") {
  const ReliabilityScores scores = scored(
      "spikes,6144,TPU-v4,,30,about 20,loss spikes; restarted,,,,,,,read,,\n"
      "no length,384,A100,48,,3,failures,,,,,,,read,,\n"
      "nothing,384,A100,48,30,,failures,,,,,,,read,,\n");
  CHECK(scores.runs.empty());
  CHECK(scores.counts.rows == 3);
  CHECK(scores.counts.problems.size() == 3);
}

TEST_CASE("a run of twice the accelerators is interrupted twice as often") {
  const ReliabilityScores scores = scored(
      "one,1024,H100,128,60,1,failures,,,,1h,20,10 min,read,,\n"
      "two,2048,H100,256,60,1,failures,,,,1h,20,10 min,read,,\n",
      200);
  REQUIRE(scores.runs.size() == 2);
  const double ratio = scores.runs[1].interruptions.mean / scores.runs[0].interruptions.mean;
  CHECK(ratio == Approx(2).epsilon(0.05));
  CHECK(scores.runs[1].goodput_lost.mean > scores.runs[0].goodput_lost.mean);
}

TEST_CASE("published interruptions lie inside of the forecast's range, which is narrow") {
  const char* data = std::getenv("RECKON_DATA");
  if (data == nullptr) return skip_test("RECKON_DATA names no folder of published data");
  const auto path = std::filesystem::path(data) / "reliability_runs.csv";
  if (!std::filesystem::exists(path)) return skip_test("there is no " + path.string());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const auto scores = score_reliability(path.string(), text.str(), test::shipped_catalog());
  REQUIRE(scores);
  int judged = 0;
  for (const ScoredReliability& s : scores->runs) {
    INFO(s.run.name);
    CHECK(s.interruptions.p95 <= 4 * s.interruptions.p5);
    if (s.run.evidence.starts_with("recalled") || !s.run.interruptions) continue;
    ++judged;
    CHECK(s.interruptions_inside());
  }
  CHECK(judged >= 3);
}
