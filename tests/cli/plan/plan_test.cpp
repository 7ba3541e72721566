#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "cli/plan/plan_small_question.h"
#include "cli/run_reckon.h"

using namespace reckon::test;
using Json = nlohmann::json;

namespace {

const std::string kPlanQuestion = small_plan_question("T4, V100-SXM2-16", "spot, on_demand");

}  // namespace

TEST_CASE(
    "a plan that is written out is simulated to the same digits, and compares as a scenario") {
  const Workspace w;
  w.write("q/question.yaml", kPlanQuestion);
  const Output planned =
      w.run("plan q/question.yaml --out best.yaml --svg front.svg --format json");
  INFO(planned.err);
  REQUIRE(planned.code == 0);
  const Json answer = Json::parse(planned.out);
  CHECK(answer["command"] == "plan");
  CHECK(answer["infeasible"].is_null());
  const Json& first = answer["plans"][0]["forecast"];
  const Output simulated = w.run("simulate best.yaml --format json");
  REQUIRE(simulated.code == 0);
  const Json again = Json::parse(simulated.out);
  CHECK(again["time_seconds"] == first["time_seconds"]);
  CHECK(again["cost_usd"] == first["cost_usd"]);
  CHECK(again["goodput"] == first["goodput"]);
  CHECK(again["seed"] == 5);
  CHECK(w.run("compare best.yaml q/question.yaml").code == 0);
  CHECK(read_all(w.path("front.svg")).starts_with("<svg"));
}

TEST_CASE("no plan fits: exit code 1, the limit that binds and what it would have to be") {
  const Workspace w;
  w.write("question.yaml", kPlanQuestion);
  const Output none = w.run("plan question.yaml --deadline 5min@95% --out best.yaml");
  CHECK(none.code == 1);
  CHECK(none.out.find("No plan fits") != std::string::npos);
  CHECK(none.out.find("the deadline of 5min@95% is not met") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("best.yaml")));
  const Output neither =
      w.run("plan question.yaml --deadline 5min@95% --budget 0.01USD --format json");
  CHECK(neither.code == 1);
  const std::string reason = Json::parse(neither.out)["infeasible"]["reason"];
  CHECK(reason.starts_with("neither the deadline of 5min@95% nor the budget of 0.01USD"));
  CHECK(contains(reason, "; the fastest takes about "));
}

TEST_CASE("options alone are a question, a wrong one is told by its place") {
  const Workspace w;
  const Output planned = w.run(
      "plan --model resnet50 --epochs 1 --accelerator t4 --provider gcp --region us-central1 "
      "--nodes 1..2 --pricing spot --replications 20");
  INFO(planned.err);
  CHECK(planned.code == 0);
  CHECK(planned.out.find("T4") != std::string::npos);
  CHECK(w.run("plan").code == 2);
  const Output unknown = w.run("plan --model resnet5 --epochs 1");
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("did you mean 'resnet50'?") != std::string::npos);
  const Output budget = w.run("plan --model resnet50 --epochs 1 --accelerator T4 --budget cheap");
  CHECK(budget.code == 2);
  CHECK(budget.err.starts_with("--budget cheap: error: plan.budget: 'cheap' is not an amount"));
}

TEST_CASE("each freedom of the plan: block is an option too, and gives the same answer") {
  const Workspace w;
  w.write("plain.yaml", kPlanQuestion);
  w.write(
      "block.yaml",
      kPlanQuestion.substr(0, kPlanQuestion.find("plan:")) +
          "plan:\n"
          "  vary: {machine: [n1-standard-16], accelerator: [T4], nodes: 1..2, pricing: [spot],\n"
          "         strategy: [multi_worker_mirrored, parameter_server], base: [50% on_demand],\n"
          "         fallback: [10min], parameter_servers: 1..2, recompute: [none],\n"
          "         parameter_server_machine: [n1-standard-8], zone: [us-central1-a],\n"
          "         autoscaling: [fixed, 150%],\n"
          "         checkpoint_interval: [10min, optimal], checkpoint_storage: [gcs-standard]}\n"
          "  quota: {gcp/us-central1/T4: 6}\n  memory: 90%\n  max_nodes: 5\n");
  const Output block = w.run("plan block.yaml --format json");
  INFO(block.err);
  REQUIRE(block.code == 0);
  const Output options = w.run(
      "plan plain.yaml --machine n1-standard-16 --accelerator T4 --nodes 1..2 --pricing spot "
      "--strategy multi_worker_mirrored,parameter_server --base '50% on_demand' --fallback 10min "
      "--parameter-servers 1..2 --parameter-server-machine n1-standard-8 --zone us-central1-a "
      "--autoscaling fixed,150% --memory 90% --max-nodes 5 --recompute none --checkpoint-interval "
      "10min,optimal "
      "--checkpoint-storage gcs-standard --quota gcp/us-central1/T4=6 --format json");
  INFO(options.err);
  REQUIRE(options.code == 0);
  const Json a = Json::parse(block.out), b = Json::parse(options.out);
  CHECK(a["candidates_considered"] == b["candidates_considered"]);
  CHECK(a["rejected"] == b["rejected"]);
  CHECK(a["plans"] == b["plans"]);
  const Output wrong = w.run("plan plain.yaml --quota gcp/us-central1/T4");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("--quota takes places with numbers") != std::string::npos);
}

TEST_CASE("the batch of a step is given, or free up to a number") {
  const Workspace w;
  const std::string question =
      "plan --model resnet50 --epochs 1 --accelerator t4 --provider gcp --region us-central1 "
      "--nodes 2 --pricing spot --replications 20 --precision fp32 --global-batch ";
  const Output given = w.run(question + "64");
  INFO(given.err);
  CHECK(given.code == 0);
  CHECK(given.out.find("Assumed: each accelerator gets") == std::string::npos);
  const Output free = w.run(question + "1..64");
  CHECK(free.code == 0);
  CHECK(free.out.find("Assumed: each accelerator gets") != std::string::npos);
}

TEST_CASE("where data may be and how clean the power is are asked of the catalog's regions") {
  const Workspace w;
  const std::string question =
      "plan --model resnet50 --epochs 1 --accelerator h100,l4 --provider gcp --nodes 1 "
      "--pricing spot --replications 20 ";
  const Output europe = w.run(question + "--residency EU --carbon-free 80%");
  INFO(europe.out << europe.err);
  CHECK(europe.code == 0);
  CHECK(europe.out.find("gcp europe-") != std::string::npos);
  CHECK(europe.out.find("gcp us-") == std::string::npos);
  const Output nowhere = w.run(question + "--residency Atlantis");
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err.find("no region of the catalog is in 'Atlantis'") != std::string::npos);
}

TEST_CASE("machines without accelerators are planned too, with any strategy") {
  const Workspace w;
  w.write("cpus.yaml",
          "name: cpus\n"
          "workload:\n"
          "  model: mlp_mnist\n"
          "  dataset: {samples: 60000, bytes_per_sample: 785B}\n"
          "  train: {steps: 100}\n"
          "  precision: fp32\n"
          "  batch_per_accelerator: 64\n"
          "  strategy: {kind: multi_worker_mirrored, workers: 2}\n"
          "cluster:\n"
          "  provider: on_premises\n"
          "  pools: [{name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 2}]\n"
          "forecast: {replications: 20}\n");
  const Output planned = w.run("plan cpus.yaml --nodes 1..2 --strategy any --objective time");
  INFO(planned.err);
  CHECK(planned.code == 0);
  CHECK(planned.out.find("multi_worker_mirrored") != std::string::npos);
}
