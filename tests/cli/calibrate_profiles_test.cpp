#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

// Profiles of other tools as evidence of the next forecast.
using namespace reckon::test;

namespace {

using Json = nlohmann::json;

const std::string kProfiledJob = RECKON_SOURCE_DIR "/scenarios/gpt2-one-h100.yaml";

/// Twenty steps of about `milliseconds` as torch.profiler writes them, of which a tenth is idle.
std::string trace(double milliseconds, const std::string& device = "NVIDIA H100 80GB HBM3") {
  Json events = Json::array();
  double at = 1000;
  for (int step = 0; step < 20; ++step) {
    const double took = 1000 * milliseconds * (1 + 0.01 * (step % 3 - 1));
    const auto span = [&](const char* category, const std::string& name, double from, double to) {
      events.push_back({{"ph", "X"},
                        {"cat", category},
                        {"name", name},
                        {"pid", 0},
                        {"tid", 7},
                        {"ts", at + from * took},
                        {"dur", (to - from) * took},
                        {"args", {{"device", 0}, {"stream", 7}}}});
    };
    span("user_annotation", "ProfilerStep#" + std::to_string(step), 0, 1);
    span("kernel", "nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", 0, 0.6);
    span("kernel", "pytorch_flash::flash_bwd_kernel", 0.6, 0.8);
    span("kernel", "vectorized_elementwise_kernel", 0.8, 0.9);
    at += took;
  }
  return Json{{"deviceProperties", {{{"id", 0}, {"name", device}}}},
              {"traceEvents", std::move(events)}}
      .dump();
}

Json forecast(const Workspace& w, const std::string& options) {
  const Output out =
      w.run("simulate " + kProfiledJob + " --replications 20 --format json " + options);
  INFO(out.err);
  REQUIRE(out.code == 0);
  return Json::parse(out.out);
}
const std::string kRecorded = RECKON_SOURCE_DIR "/tests/data/profiles/";

/// ResNet-50 on so many A100-40 of one machine.
std::string job_on_a100(int accelerators) {
  return "name: job\nworkload:\n  model: resnet50\n  dataset: imagenet\n  train: {epochs: 1}\n"
         "  precision: fp32\n  batch_per_accelerator: 32\n  strategy: {kind: mirrored}\n"
         "cluster:\n  provider: on_premises\n  pools:\n    - name: nodes\n"
         "      machine: {vcpu: 32, memory: 256GiB, network: 100Gbps, price: 9 USD/h}\n"
         "      accelerator: {type: A100-SXM4-40, count: " +
         std::to_string(accelerators) + "}\n      nodes: 1\n";
}

/// Of the logarithm, the 5th to the 95th percentile of the factor on the step.
double half_width(const Json& forecast) {
  const Json& factor = forecast["evidence"]["step_factor"];
  return std::log(factor["p95"].get<double>() / factor["p5"].get<double>()) / 2;
}

}  // namespace

TEST_CASE("a profile of a job is what its next forecast rests on, within a fifth") {
  const Workspace w;
  const Json before = forecast(w, "");
  const double measured = 1.3 * before["step"]["seconds"].get<double>();
  w.write("trace.json", trace(1000 * measured));
  const Output fit = w.run("calibrate trace.json --scenario " + kProfiledJob + " --out own.yaml");
  INFO(fit.out << fit.err);
  REQUIRE(fit.code == 0);
  CHECK(fit.out.find("PyTorch (Kineto), NVIDIA H100 80GB HBM3, 20 steps") != std::string::npos);
  CHECK(fit.out.find("source: own") != std::string::npos);

  const Json after = forecast(w, "--calibration own.yaml");
  CHECK(after["step"]["seconds"].get<double>() == Approx(measured).epsilon(0.05));
  CHECK(std::expm1(half_width(before)) > 0.25);
  CHECK(std::expm1(half_width(after)) < 0.2);
  CHECK(after["evidence"]["own"] == 1);
  CHECK(after["evidence"]["nearest"][0]["source"] == "own");
  CHECK(after["evidence"]["nearest"][0]["id"] == "gpt2-one-h100");
  const Output told =
      w.run("simulate " + kProfiledJob + " --replications 20 --calibration own.yaml");
  CHECK(told.out.find("own, gpt2-one-h100") != std::string::npos);

  SECTION("and near ones gain by it") {
    const std::string near = "--set workload.batch_per_accelerator=16 ";
    const Json near_before = forecast(w, near);
    const Json near_after = forecast(w, near + "--calibration own.yaml");
    CHECK(std::expm1(half_width(near_after)) < 0.2);
    CHECK(near_after["step"]["seconds"].get<double>() >
          1.15 * near_before["step"]["seconds"].get<double>());
  }
  SECTION("unless it is left out") {
    const Json without = forecast(w, "--calibration own.yaml --without-evidence own");
    CHECK(without["evidence"]["own"] == 0);
    CHECK(without["step"]["seconds"] == before["step"]["seconds"]);
  }
}

TEST_CASE("a profile of other hardware than the scenario's is refused") {
  const Workspace w;
  w.write("trace.json", trace(100, "NVIDIA A100-SXM4-80GB"));
  const Output fit = w.run("calibrate trace.json --scenario " + kProfiledJob + " --out own.yaml");
  CHECK(fit.code == 2);
  CHECK(fit.err.find("trace.json: error: it is of 'NVIDIA A100-SXM4-80GB', the scenario has "
                     "H100-SXM5-80") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("own.yaml")));
  CHECK(w.run("calibrate trace.json").code == 2);  // of which scenario?
}

TEST_CASE("a trace that PyTorch recorded is a run of one's own") {
  // Two steps of a recommender (tests/data/README.md), taken for a ResNet's here.
  const Workspace w;
  w.write("job.yaml", job_on_a100(2));
  const Output fit =
      w.run("calibrate " + kRecorded + "pytorch-2-a100.json.gz --scenario job.yaml --out own.yaml");
  INFO(fit.out << fit.err);
  REQUIRE(fit.code == 0);
  CHECK(fit.out.find("PyTorch (Kineto), NVIDIA A100-PG509-200, 2 steps of 221 ms") !=
        std::string::npos);
  CHECK(fit.out.find("allreduce of 25.0 MiB a step") != std::string::npos);
  CHECK(fit.out.find("source: own") != std::string::npos);
}

TEST_CASE("all-reduces that nccl-tests recorded correct the links of a job") {
  const Workspace w;
  w.write("job.yaml", job_on_a100(8));
  const Output fit = w.run("calibrate " + kRecorded +
                           "nccl-tests-allreduce.log --scenario job.yaml --out own.yaml");
  INFO(fit.out << fit.err);
  REQUIRE(fit.code == 0);
  CHECK(fit.out.find("nccl-tests, all_reduce of float on 8 ranks") != std::string::npos);
  CHECK(fit.out.find("8.00 GiB take 63.9 ms out of place, 64.0 ms in place") != std::string::npos);
  CHECK(std::filesystem::exists(w.path("own.yaml")));
}

TEST_CASE("samples of DCGM are told beside the forecast, and nothing is written") {
  const Workspace w;
  w.write("dmon.txt",
          "#Entity   GRACT   TENSO   DRAMA   POWER   FBUSD\n"
          "GPU 0     0.990   0.500   0.300   612.0   41000\n");
  const Output fit = w.run("calibrate dmon.txt --scenario " + kProfiledJob + " --out own.yaml");
  INFO(fit.err);
  CHECK(fit.code == 0);
  CHECK(fit.out.find("power 612 W a GPU, 612 W at most, 700 W by the data sheet") !=
        std::string::npos);
  CHECK(fit.out.find("memory 40.0 GiB at most, ") != std::string::npos);
  CHECK(fit.out.find("nothing is written") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("own.yaml")));
}
