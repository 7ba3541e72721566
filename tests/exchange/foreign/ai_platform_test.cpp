#include "exchange/foreign/ai_platform/ai_platform.h"

#include <catch2/catch.hpp>

#include "exchange/foreign/resnet_work.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// The job of the service's own documentation: a master and 9 workers with 4 T4 each, 3 servers.
const std::string kT4Job = R"(jobId: t4_job
labels: {team: vision}
trainingInput:
  scaleTier: CUSTOM
  masterType: n1-highcpu-16
  masterConfig:
    acceleratorConfig:
      count: 4
      type: NVIDIA_TESLA_T4
  workerCount: 9
  workerType: n1-highcpu-16
  workerConfig:
    acceleratorConfig:
      count: 4
      type: NVIDIA_TESLA_T4
    imageUri: gcr.io/us/train:7
  parameterServerCount: 3
  parameterServerType: n1-highmem-8
  region: us-central1
  runtimeVersion: '2.10'
  pythonModule: trainer.task
  packageUris: [gs://bucket/trainer-0.1.tar.gz]
  args: [--rate, '0.10', --flag]
  scheduling: {maxRunningTime: 172800s}
  useChiefInTfConfig: true
)";

/// The scenario, or the errors as a user reads them.
std::string imported(const std::string& config, const std::vector<std::string>& words = {}) {
  auto job = ai_platform_job(config, "config.yaml", words);
  if (!job) return format(job.error());
  const auto found = import_ai_platform(std::move(*job), "config.yaml", shipped_catalog());
  if (!found) return format(found.error());
  const auto text = scenario_of(*found, kResNet50, shipped_catalog());
  return text ? *text : format(text.error());
}

std::string exported(const std::string& scenario) {
  const auto file = parse_scenario(scenario, "s.yaml");
  const auto document = parse_yaml(scenario, "s.yaml");
  if (!file) FAIL(format(file.error()));
  REQUIRE(document);
  const auto text = ai_platform_config(*file, *document, shipped_catalog());
  return text ? *text : format(text.error());
}

/// Every value by its path, in any order: two files that say the same.
void add_values(const YamlNode& node, const std::string& path, std::vector<std::string>& out) {
  if (node.kind == YamlNode::Kind::scalar) out.push_back(path + "=" + node.text);
  for (std::size_t k = 0; k < node.entries.size(); ++k) {
    const auto& entry = node.entries[k];
    add_values(entry.value, path + "/" + (entry.key.empty() ? std::to_string(k) : entry.key), out);
  }
}
std::vector<std::string> values_of(const std::string& yaml) {
  const auto node = parse_yaml(yaml, "y");
  REQUIRE(node);
  std::vector<std::string> out;
  add_values(*node, "", out);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("an AI Platform job becomes a scenario that can be simulated") {
  const std::string text = imported(kT4Job);
  INFO(text);
  CHECK(errors_of(text) == "");
  const auto plan = plan_of(text);
  REQUIRE(plan);
  CHECK(plan->name == "t4_job");
  CHECK(plan->service.id == Service{"ai_platform"});
  REQUIRE(plan->pools.size() == 3);
  CHECK(plan->pools[0].role == Role::chief);
  CHECK(plan->pools[1].nodes_max == 9);
  CHECK(plan->pools[1].accelerators_per_node == 4);
  CHECK(plan->pools[1].accelerator->name == "T4");
  CHECK(plan->pools[2].machine.name == "n1-highmem-8");
  CHECK(plan->jobs.front().strategy.kind == StrategyKind::parameter_server);
  CHECK_FALSE(plan->jobs.front().strategy.servers->synchronous);
  CHECK_THAT(text, Contains("- p95(time) <= 172800s"));
}

TEST_CASE("importing and exporting an AI Platform job loses nothing") {
  CHECK(values_of(exported(imported(kT4Job))) == values_of(kT4Job));
  // Texts that look like numbers stay texts: 2.10 is a version, not 2.1.
  CHECK_THAT(exported(imported(kT4Job)), Contains("runtimeVersion: \"2.10\""));
  CHECK_THAT(exported(imported(kT4Job)), Contains("useChiefInTfConfig: true"));
}

TEST_CASE("legacy machine types, scale tiers and TPUs come back as they were") {
  const std::string job = GENERATE(
      "jobId: a\ntrainingInput: {scaleTier: CUSTOM, masterType: complex_model_m_gpu, workerCount: "
      "9, workerType: complex_model_m_gpu, parameterServerCount: 3, parameterServerType: "
      "large_model, region: us-central1}\n",
      "jobId: a\ntrainingInput: {scaleTier: STANDARD_1, region: us-central1}\n",
      "jobId: a\ntrainingInput: {scaleTier: CUSTOM, masterType: n1-standard-4, workerType: "
      "cloud_tpu, workerCount: 1, workerConfig: {acceleratorConfig: {type: TPU_V2, count: 8}, "
      "tpuTfVersion: '2.1'}, region: us-central1}\n");
  const std::string text = imported(job);
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK(values_of(exported(text)) == values_of(job));
}

TEST_CASE("flags of gcloud give the same scenario as the file, and override it") {
  const std::vector<std::string> flags{"gcloud",
                                       "ai-platform",
                                       "jobs",
                                       "submit",
                                       "training",
                                       "t4_job",
                                       "--scale-tier",
                                       "custom",
                                       "--master-machine-type",
                                       "n1-highcpu-16",
                                       "--master-accelerator",
                                       "count=4,type=nvidia-tesla-t4",
                                       "--worker-count",
                                       "9",
                                       "--worker-machine-type=n1-highcpu-16",
                                       "--worker-accelerator",
                                       "count=4,type=nvidia-tesla-t4",
                                       "--worker-image-uri",
                                       "gcr.io/us/train:7",
                                       "--parameter-server-count",
                                       "3",
                                       "--parameter-server-machine-type",
                                       "n1-highmem-8",
                                       "--region",
                                       "us-central1",
                                       "--runtime-version",
                                       "2.10",
                                       "--module-name",
                                       "trainer.task",
                                       "--packages",
                                       "gs://bucket/trainer-0.1.tar.gz",
                                       "--labels",
                                       "team=vision",
                                       "--use-chief-in-tf-config",
                                       "--async",
                                       "--package-path",
                                       "./trainer",
                                       "--",
                                       "--rate",
                                       "0.10",
                                       "--flag"};
  const std::string text = imported("", flags);
  auto expected = values_of(kT4Job);
  std::erase_if(expected, [](const std::string& v) { return v.find("scheduling") != v.npos; });
  CHECK(values_of(exported(text)) == expected);
  CHECK_THAT(exported(text), Contains("submit training t4_job --config=THIS_FILE --async "
                                      "--package-path=./trainer"));
  CHECK_THAT(imported(kT4Job, {"--worker-count", "4"}), Contains("nodes: 4"));
  CHECK_THAT(imported(kT4Job, {"--worker-count", "4"}), !Contains("nodes: 9"));
  CHECK_THAT(exported(imported(kT4Job, {"--use-chief-in-tf-config", "False", "--no-async"})),
             Contains("useChiefInTfConfig: false") && Contains("--no-async"));
}

TEST_CASE("a master with more accelerators than a worker holds as many workers as fit") {
  const std::string text = imported(
      "trainingInput: {scaleTier: CUSTOM, masterType: n1-highcpu-16, masterConfig: "
      "{acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 4}}, workerType: n1-highcpu-16, "
      "workerCount: 3, workerConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 2}}, "
      "parameterServerType: n1-standard-8, parameterServerCount: 2, region: us-central1}");
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("accelerators_per_worker: 2") &&
                       Contains("nodes with 2 and 4 accelerators train together"));
}

TEST_CASE("a count that is no number is one mistake") {
  CHECK(imported("trainingInput: {scaleTier: CUSTOM, masterType: n1-standard-8, workerType: "
                 "n1-standard-8, workerCount: -1, region: us-central1}") ==
        "config.yaml:1:103: error: 'workerCount' takes a whole number from 0 to 10000, not '-1'\n");
}

TEST_CASE("accelerators that a machine has built in are used") {
  const std::string text = imported(
      "trainingInput: {scaleTier: CUSTOM, masterType: complex_model_m_gpu, region: us-central1}");
  CHECK_THAT(text, Contains("strategy: {kind: mirrored}"));
}

TEST_CASE(
    "evaluators and a master that only coordinates are paid for, do not train, and come back") {
  const std::string job =
      "jobId: a\nlabels: {priority: '7', minValue: '2.10'}\ntrainingInput: {scaleTier: CUSTOM, "
      "masterType: n1-standard-8, workerType: n1-standard-8, workerCount: 2, workerConfig: "
      "{acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 1}}, evaluatorType: n1-standard-4, "
      "evaluatorCount: 1, hyperparameters: {maxTrials: 10, params: [{parameterName: rate, "
      "minValue: "
      "0.5}]}, region: us-central1}\n";
  const std::string text = imported(job);
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("workers: 2") && Contains("it coordinates") &&
                       Contains("evaluators: they are paid for from the start to the end") &&
                       Contains("role: evaluator") && Contains("role: chief") &&
                       Contains("one trial of the 10"));
  const auto file = parse_scenario(text, "s.yaml");
  REQUIRE(file);
  const auto plan = make_plan(*file, shipped_catalog());
  REQUIRE(plan);
  REQUIRE(computing_pools(*plan).size() == 1);
  CHECK(computing_pools(*plan).front()->role == Role::worker);
  CHECK(values_of(exported(text)) == values_of(job));
  CHECK_THAT(exported(text), Contains("priority: \"7\"") && Contains("minValue: \"2.10\"") &&
                                 Contains("minValue: 0.5"));
}

TEST_CASE("words of a submission cannot become keys of the file or commands of a shell") {
  const std::string text = imported("trainingInput: {scaleTier: BASIC, region: us-central1}",
                                    {"--package-path", "x\nevil: 1", "--project", "a'b; rm"});
  const std::string job = exported(text);
  INFO(job);
  CHECK_THAT(job,
             Contains("$'--package-path=x\\012evil: 1'") && Contains("'--project=a'\\''b; rm'"));
  const auto document = parse_yaml(job, "job");
  REQUIRE(document);
  CHECK_FALSE(document->has("evil"));
}

TEST_CASE("what a forecast has no use for is named and kept") {
  const std::string text = imported(kT4Job);
  CHECK_THAT(text, Contains("#   - trainingInput.pythonModule"));
  CHECK_THAT(imported("trainingInput: {scaleTier: BASIC, workerCont: 3}"),
             Contains("trainingInput.workerCont (no field of the service that we know; did you "
                      "mean 'workerCount'?)"));
  CHECK_THAT(imported("trainingInput: {scaleTier: BASIC}"),
             Contains("cluster.region: us-central1; --region says another"));
}

TEST_CASE("jobs that the service would refuse are refused, all mistakes at once") {
  CHECK_THAT(imported("trainingInput: {masterType: n1-standard-8}"),
             Contains("config.yaml:1:17: error: masterType needs scaleTier: CUSTOM"));
  CHECK_THAT(imported("trainingInput: {scaleTier: BASIC_GPU, workerType: n1-standard-8}"),
             Contains("scale tier BASIC_GPU brings its own machines"));
  const std::string both = imported(
      "trainingInput:\n  scaleTier: CUSTOM\n  masterType: n1-standard-8\n  workerCount: 3\n"
      "  parameterServerType: n1-standard-8\n");
  CHECK_THAT(both, Contains("config.yaml:4:16: error: workerCount needs workerType"));
  CHECK_THAT(both, Contains("parameterServerType needs parameterServerCount"));
  CHECK_THAT(imported("predictionInput: {}"), Contains("batch prediction"));
  CHECK_THAT(imported("- a\n"), Contains("a job is a map"));
  CHECK_THAT(imported("", {"--master-accelerator", "4"}), Contains("is no KEY=VALUE"));
  CHECK_THAT(imported("", {"--scale-tier"}), Contains("--scale-tier takes a value"));
  CHECK_THAT(imported("", {"--epoch", "5"}),
             Contains("unknown option '--epoch'; did you mean '--epochs'?"));
  CHECK_THAT(imported("", {"a_job", "another"}), Contains("a job has one name"));
  CHECK_THAT(imported("jobId: [a]\ntrainingInput: {scaleTier: BASIC}"),
             Contains("'jobId' takes a text"));
  CHECK_THAT(imported("trainingInput:\n  region: us-east1\n  region: us-central1\n"),
             Contains("config.yaml:3:3: error: key 'region' is given twice"));
  // The rules of the scenario, at their place in the imported file.
  CHECK_THAT(imported("trainingInput:\n  scaleTier: CUSTOM\n  masterType: n1-standard-8\n"
                      "  masterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 3}}\n"),
             Contains("config.yaml:3:15: error:"));
  CHECK_THAT(imported("trainingInput: {scaleTier: PREMIUM_2, region: us-central1}"),
             Contains("unknown scale tier 'PREMIUM_2'"));
}

TEST_CASE("only what AI Platform can have becomes one of its jobs") {
  const std::string scenario = R"(
name: spot
workload:
  {model: resnet50, dataset: imagenet, train: {epochs: 1}, batch_per_accelerator: 32,
   strategy: {kind: multi_worker_mirrored, workers: 4}}
cluster:
  provider: gcp
  service: ai_platform
  region: us-central1
  pools:
    - {name: a, machine: n1-standard-8, accelerator: {type: T4, count: 1}, nodes: 4}
)";
  const std::string job = exported(scenario);
  CHECK_THAT(job, Contains("masterType: n1-standard-8") && Contains("workerCount: 3"));
  CHECK_THAT(exported(scenario + "      \n    - {name: b, role: worker, machine: n1-standard-8, "
                                 "nodes: 1, pricing: spot}\n"),
             Contains("b is a second pool of it"));
}
