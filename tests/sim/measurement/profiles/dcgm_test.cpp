#include "sim/measurement/profiles/dcgm.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

/// As `dcgmi dmon -e 1001,1002,1003,1004,1005,155,252` prints it (docs.nvidia.com/datacenter/dcgm,
/// "Feature Overview", "Profiling Metrics"): the header comes again, a field may be N/A.
constexpr const char* kDmon =
    "#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        POWER     FBUSD\n"
    "ID                                                                         W         \n"
    "GPU 0     0.000        0.000        0.000        0.000        0.000        62.1      455\n"
    "GPU 0     0.990        0.900        0.400        0.500        0.300        380.0     61000\n"
    "GPU 1     0.970        0.800        0.400        N/A          0.300        400.0     62000\n"
    "#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        POWER     FBUSD\n"
    "ID                                                                         W         \n"
    "GPU 0     0.980        0.850        0.400        0.600        0.300        390.0     61000\n";

}  // namespace

TEST_CASE("samples of DCGM are means while GPUs work, and the most memory of all") {
  REQUIRE(is_dcgm(kDmon));
  const auto read = parse_dcgm("dmon.txt", kDmon);
  REQUIRE(read);
  CHECK(read->gpus == 2);
  CHECK(read->samples == 3);
  CHECK(read->idle_samples == 1);
  CHECK(read->active.value() == Approx(0.98));
  CHECK(read->multiprocessors.value() == Approx(0.85));
  CHECK(read->tensor.value() == Approx(0.55));  // of those that have it
  CHECK(read->watts.value() == Approx(390));
  CHECK(read->watts_most.value() == Approx(400));
  CHECK(read->memory_used.value() == Bytes{62000.0 * 1048576});
}

TEST_CASE("what DCGM has not sampled yet is no sample, and idle multiprocessors are idle") {
  // As DCGM 3.3 prints it: the profiling fields' first values are N/A, and without rights to them
  // GRACT stays so.
  const auto read = parse_dcgm("dmon.txt",
                               "#Entity   GRACT        SMACT        DRAMA\n"
                               "ID\n"
                               "GPU 0     N/A          N/A          N/A\n"
                               "GPU 0     0.000        0.000        0.000\n"
                               "GPU 1     N/A          0.000        0.000\n"
                               "GPU 2     0.984        0.930        0.252\n");
  REQUIRE(read);
  CHECK(read->gpus == 3);
  CHECK(read->samples == 1);
  CHECK(read->idle_samples == 2);
  CHECK(read->multiprocessors.value() == Approx(0.93));
}

TEST_CASE("the same as CSV, with DCGM's long names") {
  const std::string text =
      "timestamp,Entity,DCGM_FI_PROF_SM_ACTIVE,DCGM_FI_DEV_FB_USED\n"
      "10:00:00,GPU 0,0.5,100\n10:00:01,GPU 0,0.7,\n";
  REQUIRE(is_dcgm(text));
  const auto read = parse_dcgm("dcgm.csv", text);
  REQUIRE(read);
  CHECK(read->multiprocessors.value() == Approx(0.6));
  CHECK_FALSE(read->active);
  CHECK(read->memory_used.value() == Bytes{100.0 * 1048576});
}

TEST_CASE("samples that are none are errors at their line") {
  const auto wrong =
      parse_dcgm("dmon.txt", "#Entity GRACT POWER\nGPU 0 1.5 100\nGPU 0 0.5\nGPU 0 0.5 much\n");
  REQUIRE(!wrong);
  CHECK(format(wrong.error()) ==
        "dmon.txt:2: error: GRACT: '1.5' is no number from 0 to 1\n"
        "dmon.txt:3: error: 2 values, the header has 3\n"
        "dmon.txt:4: error: POWER: 'much' is no number from 0 to 100000\n");
  CHECK_FALSE(is_dcgm("step,seconds\n1,2\n"));
  CHECK_FALSE(is_dcgm("step_seconds,POWER\n1,300\n"));
  CHECK_THAT(format(parse_dcgm("dmon.txt", "#Entity GRACT\n").error()),
             Catch::Contains("no sample of DCGM"));
}
