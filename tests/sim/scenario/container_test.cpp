#include <catch2/catch.hpp>

#include "sim/scenario/resolve/container_metrics.h"
#include "sim/scenario/resolve/job_wiring.h"
#include "support/scenario_text.h"

// A program of the user's own: how it tells of its progress, and how its processes find each other.
using namespace reckon;
using Catch::Matchers::Contains;

namespace {

std::string mistakes_of(std::map<std::string, std::string> metrics) {
  ContainerSpec container;
  container.metrics = std::move(metrics);
  std::vector<MetricsMistake> mistakes;
  container_metrics(container, mistakes);
  std::string text;
  for (const MetricsMistake& m : mistakes) text += m.key + ": " + m.what + " | " + m.hint + '\n';
  return text;
}

}  // namespace

TEST_CASE("what a container's metrics say wrong is named, all of it") {
  CHECK(mistakes_of({{"log", "anything"}, {"json", ""}, {"prometheus", ":80"}}).empty());
  const std::string text =
      mistakes_of({{"lgo", "x"}, {"json", "stepp=a, loss"}, {"prometheus", "9090/metrics step=a"}});
  CHECK_THAT(text, Contains("lgo: unknown key 'lgo' in metrics; did you mean 'log'?"));
  CHECK_THAT(text, Contains("json: 'stepp' is no way to report progress; did you mean 'step'"));
  CHECK_THAT(text, Contains("json: 'loss' has no name behind it"));
  CHECK_THAT(text, Contains("prometheus: '9090/metrics' names no port of the program"));
  CHECK_THAT(mistakes_of({{"prometheus", ":70000"}}), Contains("names no port"));
  CHECK_THAT(mistakes_of({{"prometheus", ""}}), Contains("names no port"));
}

TEST_CASE("mistakes of metrics stand at their place in the scenario") {
  const std::string text =
      "name: own\n"
      "workload:\n"
      "  container: {image: a, profile: resnet50, metrics: {lgo: x}}\n"
      "  dataset: imagenet\n"
      "  train: {epochs: 1}\n"
      "  batch_per_accelerator: 32\n"
      "cluster:\n"
      "  provider: on_premises\n"
      "  pools: [{name: here, machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}, nodes: 1}]\n";
  CHECK_THAT(test::errors_of(text), Contains("s.yaml:3") && Contains("did you mean 'log'"));
}

TEST_CASE("a job's processes in the words of TensorFlow, PyTorch and JAX") {
  const JobWiring job{
      .workers = 2, .servers = 1, .chief = true, .devices = 4, .addresses = {"a:1", "b:2", "c:3"}};
  CHECK(tf_config(job, "worker", "0") ==
        R"({"cluster": {"chief":["a:1"],"worker":["b:2"],"ps":["c:3"]}, )"
        R"("task": {"type": "worker", "index": 0}})");
  const JobWiring alike{
      .workers = 2, .servers = 0, .chief = false, .devices = 4, .addresses = {"a:1", "b:2"}};
  CHECK(rank_variables(alike, "1") ==
        Variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
  const Variables more = launcher_variables(alike, "1");
  CHECK(std::ranges::count(more, std::pair<std::string, std::string>{"PET_NPROC_PER_NODE", "4"}) ==
        1);
  CHECK(std::ranges::count(
            more, std::pair<std::string, std::string>{"JAX_COORDINATOR_ADDRESS", "a:1"}) == 1);
}

TEST_CASE("a job directory without a value is the job's, and variables are put in") {
  ContainerSpec container;
  const auto words = [&](std::vector<std::string> command) {
    container.command = std::move(command);
    return program_words(container);
  };
  using Words = std::vector<std::string>;
  CHECK(words({"t", "--job-dir"}) == Words{"t", "--job-dir", "$(RECKON_JOB_DIR)"});
  CHECK(words({"t", "--job-dir", "-v"}) == Words{"t", "--job-dir", "$(RECKON_JOB_DIR)", "-v"});
  CHECK(words({"t", "--job-dir", "gs://b"}) == Words{"t", "--job-dir", "gs://b"});
  const Variables variables{{"A", "1"}, {"B", "$(A)"}};
  CHECK(with_variables("x$(A)y $(C) $$(A) $(B) $", variables) == "x1y $(C) $(A) $(A) $");
  CHECK(with_variables("$(A", variables) == "$(A");
}
