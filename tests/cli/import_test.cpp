#include <catch2/catch.hpp>

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
