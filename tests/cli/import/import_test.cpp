#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/run_reckon.h"

using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kJob = R"(trainingInput:
  scaleTier: CUSTOM
  masterType: n1-highcpu-16
  masterConfig: {acceleratorConfig: {count: 4, type: NVIDIA_TESLA_T4}}
  runtimeVersion: '2.1'
)";

}  // namespace

TEST_CASE("an imported AI Platform job is simulated, and exported as it was") {
  const Workspace w;
  w.write("config.yaml", kJob);
  const Output made = w.run(
      "import ai-platform config.yaml --epochs 1 --region us-central1 --out "
      "job.yaml -- --rate 0.1");
  CHECK(made.code == 0);
  CHECK_THAT(made.err, Contains("job.yaml is written"));
  CHECK(w.run("simulate job.yaml --replications 20").code == 0);
  const Output back = w.run("export ai-platform job.yaml --out back.yaml");
  CHECK(back.code == 0);
  const std::string text = read_all(w.path("back.yaml"));
  CHECK_THAT(text, Contains("runtimeVersion: \"2.1\"") && Contains("- \"--rate\"") &&
                       Contains("masterType: n1-highcpu-16"));
  CHECK(w.run("import ai-platform back.yaml --epochs 1 --out again.yaml").code == 0);
  CHECK(w.run("export ai-platform again.yaml").out == text);
}

TEST_CASE("every scale tier and every legacy machine of AI Platform is simulated with its price") {
  const Workspace w;
  std::vector<std::string> inputs;
  for (const char* tier : {"BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU"})
    inputs.push_back(std::string("scaleTier: ") + tier);
  for (const char* machine :
       {"standard", "large_model", "complex_model_s", "complex_model_m", "complex_model_l",
        "standard_gpu", "complex_model_m_gpu", "complex_model_l_gpu", "standard_p100",
        "complex_model_m_p100", "standard_v100", "large_model_v100", "complex_model_m_v100",
        "complex_model_l_v100"})
    inputs.push_back(std::string("scaleTier: CUSTOM, masterType: ") + machine);
  inputs.emplace_back(
      "scaleTier: CUSTOM, masterType: n1-standard-4, workerType: cloud_tpu, workerCount: 1");
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    INFO(inputs[k]);
    const std::string in = "in" + std::to_string(k) + ".yaml", out = "out" + in;
    w.write(in, "trainingInput: {region: us-central1, " + inputs[k] + "}\n");
    REQUIRE(w.run("import ai-platform " + in + " --model mlp_mnist --epochs 1 --out " + out).code ==
            0);
    const Output forecast = w.run("simulate " + out + " --replications 2");
    CHECK(forecast.code == 0);
    CHECK_THAT(forecast.out, !Contains("cost     unknown"));
    CHECK_THAT(w.run("export ai-platform " + out).out,
               Contains(inputs[k].substr(inputs[k].rfind(": ") + 2)));
  }
}

TEST_CASE("import overwrites nothing and says what it does not know") {
  const Workspace w;
  w.write("config.yaml", kJob);
  w.write("job.yaml", "mine");
  const Output exists = w.run("import ai-platform config.yaml --out job.yaml");
  CHECK(exists.code == 2);
  CHECK(read_all(w.path("job.yaml")) == "mine");
  CHECK_THAT(w.run("import kubernets job.yaml").err, Contains("did you mean 'kubernetes'?"));
  CHECK(w.run("import").code == 2);
  CHECK(w.run("import gke").code == 2);
  CHECK_THAT(w.run("import ai-platform").err, Contains("takes a config.yaml, gcloud's flags"));
  CHECK(w.run("import ai-platform missing.yaml").code == 3);
  CHECK_THAT(w.run("import ai-platform config.yaml --model resnet51").err,
             Contains("unknown model 'resnet51'; did you mean"));
}

TEST_CASE("TF_CONFIG is read from the environment") {
  const Workspace w;
  const Output made = w.run("import tf-config --accelerator T4",
                            R"(TF_CONFIG='{"cluster": {"worker": ["a:1", "b:1"]}}')");
  CHECK(made.code == 0);
  CHECK_THAT(made.out, Contains("nodes: 2") && Contains("{type: T4, count: 1}"));
  CHECK(w.run("import tf-config", "TF_CONFIG=").code == 2);
}
