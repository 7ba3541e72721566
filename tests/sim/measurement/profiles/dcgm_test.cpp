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

TEST_CASE("pages of dcgm-exporter, one after another, are samples of each GPU") {
  // The first is recorded: an A100 of two MIG instances that multiplies matrices
  // (docs.nvidia.com/datacenter/cloud-native, "DCGM-Exporter", GPU metrics with MIG).
  const std::string gpu =
      R"({gpu="0",UUID="GPU-34319582-d595-d1c7-d1d2-179bcfa61660",device="nvidia0",)";
  const std::string whole = gpu + R"(Hostname="ub20-a100-k8s"} )";
  const std::string instance =
      gpu + R"(GPU_I_PROFILE="1g.5gb",GPU_I_ID="13",Hostname="ub20-a100-k8s"} )";
  const std::string recorded =
      "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n"
      "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
      "DCGM_FI_DEV_POWER_USAGE" +
      whole + "409.692000\n" + "DCGM_FI_DEV_XID_ERRORS" + whole + "0\n" + "DCGM_FI_DEV_FB_USED" +
      whole + "4845\n" + "DCGM_FI_PROF_GR_ENGINE_ACTIVE" + whole + "0.995630\n" +
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + whole + "0.929260\n" + "DCGM_FI_PROF_DRAM_ACTIVE" +
      whole + "0.690789\n" + "DCGM_FI_PROF_GR_ENGINE_ACTIVE" + instance + "0.995687\n" +
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + instance + "0.930433\n" + "DCGM_FI_PROF_DRAM_ACTIVE" +
      instance + "0.800339\n";
  REQUIRE(is_dcgm(recorded));
  const auto one = parse_dcgm("metrics.txt", recorded);
  REQUIRE(one);
  CHECK(one->gpus == 1);
  CHECK(one->samples == 1);
  CHECK(one->active.value() == Approx(0.99563));
  CHECK(one->tensor.value() == Approx(0.92926));
  CHECK(one->watts.value() == Approx(409.692));
  CHECK(one->memory_used.value() == Bytes{4845.0 * 1048576});
  // Later the GPU has nothing to do, and a field has no value.
  const auto two = parse_dcgm("metrics.txt", recorded + "DCGM_FI_DEV_POWER_USAGE" + whole +
                                                 "52.1\nDCGM_FI_PROF_GR_ENGINE_ACTIVE" + whole +
                                                 "0.000000\nDCGM_FI_DEV_FB_USED" + whole +
                                                 "9223372036854775794\n");
  REQUIRE(two);
  CHECK(two->samples == 1);
  CHECK(two->idle_samples == 1);
  CHECK(two->watts.value() == Approx(409.692));
  CHECK(two->memory_used.value() == Bytes{4845.0 * 1048576});
  // Two nodes name their first GPU alike; instances count where their GPU says nothing.
  const auto instances = parse_dcgm(
      "metrics.txt",
      "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"a\",GPU_I_ID=\"7\"} 0.5\n"
      "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"a\",GPU_I_ID=\"8\"} 0.7\n"
      "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"b\",pod=\"}\\\"x\"} 0.9 1700000000000\n");
  REQUIRE(instances);
  CHECK(instances->gpus == 3);
  CHECK(instances->active.value() == Approx(0.7));
  const auto wrong = parse_dcgm("metrics.txt", "DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\"} 65\n");
  REQUIRE(!wrong);
  CHECK(format(wrong.error()) ==
        "metrics.txt:1: error: DCGM_FI_PROF_SM_ACTIVE: '65' is no number from 0 to 1\n");
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
             Catch::Contains("no sample of DCGM has a value"));
  CHECK_THAT(format(parse_dcgm("dmon.txt", "#Entity GRACT\nGPU 0 N/A\n").error()),
             Catch::Contains("no sample of DCGM has a value"));
}
