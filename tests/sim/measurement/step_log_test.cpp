#include "sim/measurement/step_log.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

namespace reckon {

TEST_CASE("step times are read from the column that has them") {
  const auto seconds = parse_step_csv("a.csv", "step,loss,step_seconds\n0,2.1,0.5\n1,2.0,0.25\n");
  REQUIRE(seconds);
  CHECK(seconds->values == std::vector<double>{0.5, 0.25});
  const auto ms = parse_step_csv("a.csv", "step_ms\n500\n");
  REQUIRE(ms);
  CHECK(ms->seconds(8) == std::vector<double>{0.5});
  const auto rate = parse_step_csv("a.csv", "# a comment\nsamples_per_second\n64\n");
  REQUIRE(rate);
  CHECK(rate->seconds(32) == std::vector<double>{0.5});
}

TEST_CASE("a table without step times, and rows without numbers, are errors at their line") {
  const auto none = parse_step_csv("a.csv", "step,loss\n0,2\n");
  REQUIRE(!none);
  CHECK_THAT(none.error().front().hint, Catch::Contains("step_seconds"));
  const auto bad = parse_step_csv("a.csv", "seconds\n1\nfast\n-1\n");
  REQUIRE(!bad);
  REQUIRE(bad.error().size() == 2);
  CHECK(bad.error()[0].at.line == 3);
  CHECK(!parse_step_csv("a.csv", ""));
}

TEST_CASE("a pattern with named groups finds the steps of a log") {
  const char* const log =
      "starting (really)\n"
      "step 1: loss 2.5 [0.125 s]\n"
      "step 2: loss 2.4 [0.250 s]\r\n"
      "saved\n";
  for (const char* pattern : {R"(step (?<step>\d+): .*\[(?<seconds>[\d.]+) s\])",
                              R"((step) (?P<step>\d+): .*\[(?P<seconds>[\d.]+) s\])"}) {
    INFO(pattern);
    const auto found = parse_pattern_log("log", log, pattern);
    REQUIRE(found);
    CHECK(found->values == std::vector<double>{0.125, 0.25});
  }
  const auto rates =
      parse_pattern_log("log", "rate=(64)\n", R"(rate=\((?<samples_per_second>\d+)\))");
  REQUIRE(rates);
  CHECK(rates->seconds(32) == std::vector<double>{0.5});
}

TEST_CASE("patterns that cannot find a step say why") {
  CHECK_THAT(parse_pattern_log("log", "x", "(?<step>x)").error().front().what,
             Catch::Contains("no group for the time"));
  CHECK_THAT(parse_pattern_log("log", "x", "(?<seconds>[").error().front().what,
             Catch::Contains("no regular expression"));
  CHECK_THAT(parse_pattern_log("log", "y", "(?<seconds>x)").error().front().what,
             Catch::Contains("finds no step"));
}

TEST_CASE("nccl-tests' all-reduces are read, out of place") {
  const char* const text =
      "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: "
      "20\n"
      "#                                                              out-of-place    in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time  "
      " algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    45.20   23.20   40.60      0    "
      "44.90   "
      "23.35   40.87      0\n"
      "   134217728      33554432     float     sum      -1   1020.0  131.59  230.28      0   "
      "1018.0  "
      "131.84  230.73      0\n"
      "# Avg bus bandwidth    : 120.1\n";
  CHECK(is_nccl_tests(text));
  const auto log = parse_nccl_tests("nccl.txt", text);
  REQUIRE(log);
  CHECK(log->collective == "all_reduce");
  CHECK(log->type == "float");
  CHECK(log->ranks == 8);  // 230.28 / 131.59 = 1.75 = 2 * 7 / 8
  REQUIRE(log->samples.size() == 2);
  CHECK(log->samples[0].size == Bytes{1048576});
  CHECK(log->samples[0].time.count() == Approx(45.2e-6));
  CHECK(log->samples[0].in_place.count() == Approx(44.9e-6));
  CHECK(log->samples[0].error == Approx(std::log(45.2 / 44.9) / std::sqrt(2)));
  const CollectiveLine line = line_through(log->samples);
  // Through both points: (1020 - 45.2) us for 133,169,152 bytes.
  CHECK(line.bandwidth.v == Approx(133169152 / 974.8e-6));
  CHECK(line.latency.count() == Approx(45.2e-6 - 1048576 / line.bandwidth.v));
  CHECK(!parse_nccl_tests("nccl.txt", "# algbw busbw\n"));
}

TEST_CASE("older outputs of nccl-tests, which have fewer columns, are read by their header") {
  // Recorded on eight A100-40 (tests/data/README.md).
  const auto recorded = [](const std::string& name) {
    std::ifstream file(RECKON_SOURCE_DIR "/tests/data/profiles/nccl-tests-" + name + ".log");
    return parse_nccl_tests("nccl.log", std::string{std::istreambuf_iterator<char>(file), {}});
  };
  const auto reduced = recorded("allreduce");  // has no column root
  REQUIRE(reduced);
  CHECK(reduced->collective == "all_reduce");
  CHECK(reduced->type == "float");
  CHECK(reduced->ranks == 8);
  REQUIRE(!reduced->samples.empty());
  CHECK(reduced->samples.back().size == Bytes{8589934592.0});
  CHECK(reduced->samples.back().time.count() == Approx(63896e-6));
  CHECK(reduced->samples.back().in_place.count() == Approx(63959e-6));
  // Through all sizes by relative errors; the largest alone reach 134 GB/s.
  CHECK(line_through(reduced->samples).bandwidth.v == Approx(134e9).epsilon(0.15));
  const auto exchanged = recorded("alltoall");  // redop is blank
  REQUIRE(exchanged);
  CHECK(exchanged->collective == "alltoall");
  CHECK(exchanged->ranks == 8);
  CHECK(exchanged->samples.back().time.count() > 0.01);
  const auto gathered = parse_nccl_tests(
      "nccl.log",
      "#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "  8192  2048  float  40.0  0.20  0.18  N/A  41.0  0.20  0.18  N/A\n");
  REQUIRE(gathered);
  CHECK(gathered->collective == "all_gather");
  CHECK(gathered->samples[0].time.count() == Approx(40e-6));
  // What small sizes print is rounded: their ratio says nothing.
  const auto scattered = parse_nccl_tests(
      "nccl.log",
      "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "  256  8  float  sum  34.8  0.01  0.01  N/A  34.8  0.01  0.01  N/A\n"
      "  8589934592  268435456  float  sum  32464  264.60  231.52  N/A  32502  264.29  231.25  "
      "N/A\n");
  REQUIRE(scattered);
  CHECK(scattered->collective == "reduce_scatter");
  CHECK(scattered->ranks == 8);
  const auto sent = parse_nccl_tests(
      "nccl.log",
      "#   Rank  0 Pid 1 on host device  0\n#   Rank  1 Pid 1 on host device  1\n"
      "#  size  count  type  root  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "  8192  2048  float  0  40.0  0.20  0.20  N/A  41.0  0.20  0.20  N/A\n");
  REQUIRE(sent);
  CHECK(sent->collective == "broadcast");
  CHECK(sent->ranks == 2);
}

TEST_CASE("collectives of nccl-tests are told apart, by their line or by their bandwidths") {
  const std::string head = "# algbw busbw\n";
  const auto of = [&](const std::string& text) {
    return parse_nccl_tests("nccl.txt", head + text).value();
  };
  const std::string scatter = "1048576 262144 float sum -1 45.2 24.0 21.0 0 45.0 24.1 21.1 0\n";
  CHECK(of(scatter).collective == "reduce_scatter");
  CHECK(of(scatter).ranks == 8);  // 21 / 24 = 7 / 8
  CHECK(of("1048576 262144 float none -1 45.2 24.0 21.0 0\n").collective == "all_gather");
  const auto named = of("# Collective test starting: alltoall_perf\n" + scatter);
  CHECK(named.collective == "alltoall");
  const auto wrong = parse_nccl_tests("nccl.txt", head + "1048576 262144 float sum -1 x 1 1 0\n");
  REQUIRE(!wrong);
  CHECK(format(wrong.error()) ==
        "nccl.txt:2: error: 'x' is no time in microseconds\n"
        "    columns: size, count, type, redop, root, time, algbw, busbw\n");
}

TEST_CASE("waits are read with what was cut off") {
  const char* const text =
      "kind,seconds,censored,pool\nprovisioning,310,0,gpu\nprovisioning,900,yes,gpu\nreclaim,7200,,"
      "\n";
  CHECK(is_waiting_csv(text));
  CHECK(!is_waiting_csv("seconds\n1\n"));
  const auto waits = parse_waiting_csv("waits.csv", text);
  REQUIRE(waits);
  REQUIRE(waits->size() == 3);
  CHECK((*waits)[0].pool == "gpu");
  CHECK((*waits)[1].sample.censored);
  CHECK((*waits)[2].kind == WaitRecord::Kind::reclaim);
  const auto bad = parse_waiting_csv(
      "waits.csv", "kind,seconds,censored\nlunch,1,0\nreclaim,x,0\nreclaim,1,?\n");
  REQUIRE(!bad);
  CHECK(bad.error().size() == 3);
}

}  // namespace reckon
