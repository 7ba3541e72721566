#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "support/skip.h"

using namespace reckon::test;

namespace {

/// What `reckon simulate` says of what `reckon init` wrote with these options.
nlohmann::json simulated(const Workspace& w, const std::string& options) {
  const Output written = w.run("init --out new.yaml " + options);
  INFO(written.err);
  REQUIRE(written.code == 0);
  const Output r = w.run("simulate new.yaml --format json --replications 5");
  INFO(read_all(w.path("new.yaml")) << r.err);
  REQUIRE(r.code == 0);
  std::filesystem::remove(w.path("new.yaml"));
  return nlohmann::json::parse(r.out);
}

}  // namespace

TEST_CASE("what init writes can be simulated as it is, at a known price") {
  const Workspace w;
  for (const char* options :
       {"--model resnet50 --accelerator T4 --count 4",
        "--model gpt2_small --tokens 1B --accelerator H100-SXM5-80 --count 16",
        "--model resnet50 --epochs 1 --accelerator nvidia-tesla-p100 --pricing spot",
        "--model resnet50 --epochs 1 --accelerator TPU-v2 --count 4"}) {
    INFO(options);
    const auto forecast = simulated(w, options);
    CHECK(forecast["feasible"] == true);
    CHECK(forecast["cost_usd"].is_object());
  }
}

TEST_CASE("of machines at one price init takes the one with the faster network") {
  // a3-edgegpu-8g costs 0.00002 USD/h less than a3-highgpu-8g and has 600 Gbit/s, not 1,000.
  const Workspace w;
  const Output r = w.run("init --model resnet50 --accelerator H100-SXM5-80 --count 8");
  CHECK(contains(r.out, "machine: a3-highgpu-8g"));
}

TEST_CASE("init finds the machines of AWS and Azure for who asks for them") {
  // two p5.48xlarge in us-east-1: 55.04 USD/h each; eight A100-80 in eastus: 32.77
  const Workspace w;
  Output r = w.run(
      "init --model gpt2_small --tokens 10B --accelerator H100-SXM5-80 --count 16 --provider aws");
  CHECK(r.code == 0);
  CHECK(contains(r.out, "machine: p5.48xlarge"));
  CHECK(contains(r.out, "region: us-east-1  # all nodes together 110.08 USD an hour"));
  r = w.run(
      "init --model gpt2_small --tokens 10B --accelerator A100-SXM4-80 --count 8 --provider azure");
  CHECK(r.code == 0);
  CHECK(contains(r.out, "machine: Standard_ND96amsr_A100_v4"));
}

TEST_CASE("init takes the largest power of two that fits: twice may not, four times does not") {
  const Workspace w;
  REQUIRE(w.run("init --model gpt2_medium --accelerator T4 --out a.yaml").code == 0);
  const std::string text = read_all(w.path("a.yaml"));
  const std::string key = "batch_per_accelerator: ";
  const int batch = std::stoi(text.substr(text.find(key) + key.size()));
  CHECK(batch >= 1);
  CHECK((batch & (batch - 1)) == 0);
  const std::string set = "simulate a.yaml --replications 1 --set workload.batch_per_accelerator=";
  CHECK(w.run(set + std::to_string(batch)).code == 0);
  CHECK(contains(w.run(set + std::to_string(2 * batch)).out, "memory is tight"));
  const Output refused = w.run(set + std::to_string(4 * batch));
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "of memory on each"));
}

TEST_CASE("accelerators that do not fit on one node are spread over equal nodes") {
  const Workspace w;
  const Output r = w.run("init --model gpt2_small --accelerator H100-SXM5-80 --count 16");
  CHECK(r.code == 0);
  CHECK(contains(r.out, "strategy: {kind: multi_worker_mirrored, workers: 2}"));
  CHECK(contains(r.out, "nodes: 2"));
  CHECK(r.out.starts_with("# Question: "));
  CHECK(contains(r.out, "# expect:"));
}

TEST_CASE("init writes for every provider of the catalog, with and without accelerators") {
  const Workspace w;
  const auto providers =
      nlohmann::json::parse(w.run("catalog list providers --format json").out)["tables"][0]["rows"];
  REQUIRE(providers.size() >= 5);
  for (const auto& provider : providers) {
    const std::string name = provider["name"];
    for (const char* on : {"none", "T4"}) {
      const std::string options =
          "--model resnet50 --epochs 1 --accelerator " + std::string(on) + " --provider " + name;
      INFO(options);
      const Output written = w.run("init --out new.yaml " + options);
      INFO(written.err);
      REQUIRE(written.code == 0);
      const std::string text = read_all(w.path("new.yaml"));
      INFO(text);
      CHECK(contains(text, "# Assumed: dataset imagenet"));
      const Output r = w.run("simulate new.yaml --format json --replications 5");
      INFO(r.err);
      CHECK(r.code == 0);
      std::filesystem::remove(w.path("new.yaml"));
    }
  }
}

TEST_CASE("init of several nodes without accelerators is a job of several workers") {
  const Workspace w;
  const Output r =
      w.run("init --model mlp_mnist --accelerator none --count 2 --provider on_premises");
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "strategy: {kind: multi_worker_mirrored, workers: 2}"));
  CHECK(contains(r.out, "machine: {vcpu: 8, memory: 32GiB, network: 10Gbps}  # assumed"));
  CHECK_FALSE(contains(r.out, " accelerator:"));
}

TEST_CASE("wrong answers come at once, each with the one that was meant") {
  const Workspace w;
  const Output r =
      w.run("init --model resnet5 --accelerator P100-PCI-16 --count 0 --pricing sport");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK(contains(r.err, "unknown model 'resnet5'; did you mean 'resnet50'?"));
  CHECK(contains(r.err, "did you mean 'P100-PCIE-16'?"));
  CHECK(contains(r.err, "'0' is no whole number from 1"));
  CHECK(contains(r.err, "did you mean 'spot'?"));
  CHECK(contains(w.run("init --model resnet50 --tokens 1B --accelerator T4").err,
                 "model resnet50 reads no tokens"));
}

TEST_CASE("what is offered nowhere, or fits in no memory, is said with what is") {
  const Workspace w;
  Output r = w.run("init --model resnet50 --accelerator T4 --region us-central9");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "unknown region 'us-central9'; did you mean 'us-central1'?"));
  r = w.run("init --model resnet50 --accelerator TPU-v2 --count 3");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "no machine of the catalog offers 3 x TPU-v2"));
  CHECK(contains(r.err, "v2-8 (4)"));
  r = w.run("init --model gpt3_175b --accelerator T4");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "gpt3_175b at batch 1 needs"));
}

TEST_CASE("without a terminal init names the options that are missing") {
  const Workspace w;
  const Output r = w.run("init --count 4");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "init needs --model --accelerator"));
}

TEST_CASE("on a terminal init asks five questions and asks again after a wrong answer") {
  if (std::system("command -v script >/dev/null") != 0) skip_test("no `script` to make a terminal");
  const Workspace w;
  // Nothing behind a question takes what stands in its brackets.
  const std::string command = "cd '" + w.path("").string() +
                              "' && printf 'resnet5\\nresnet50\\n\\nT4\\n2\\n\\n' | "
                              "script -qec \"'" RECKON_BINARY_DIR
                              "/bin/reckon' init --out a.yaml\" /dev/null >screen.txt";
  REQUIRE(std::system(command.c_str()) == 0);
  const std::string screen = read_all(w.path("screen.txt"));
  INFO(screen);
  CHECK(contains(screen, "did you mean 'resnet50'?"));
  CHECK(contains(screen, "How many epochs? [90]"));
  const std::string text = read_all(w.path("a.yaml"));
  CHECK(contains(text, "train: {epochs: 90}"));
  CHECK(contains(text, "accelerator: {type: T4, count: 2}"));
  CHECK(contains(text, "pricing: on_demand"));
}

TEST_CASE("init overwrites nothing") {
  const Workspace w;
  w.write("a.yaml", "mine");
  const Output r = w.run("init --model resnet50 --accelerator T4 --out a.yaml");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "'a.yaml' exists"));
  CHECK(read_all(w.path("a.yaml")) == "mine");
}

TEST_CASE("a model gets the largest data set that it reads: pictures ImageNet, sequences words") {
  const Workspace w;
  for (const auto& [model, dataset] : {std::pair{"resnet50", "dataset: imagenet"},
                                       std::pair{"gpt2_small", "dataset: openwebtext"}}) {
    const Output r = w.run(std::string("init --epochs 1 --accelerator H100-SXM5-80 --model ") +
                           model + " --out -");
    INFO(r.out << r.err);
    CHECK(r.code == 0);
    CHECK(contains(r.out, dataset));
  }
}
