#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/plan/plan_small_question.h"
#include "cli/run_reckon.h"

// How a question is asked: without a file, with a file that leaves out what is free, with a step
// that was measured.
using namespace reckon::test;
using Json = nlohmann::json;

namespace {

Json planned(const Workspace& w, const std::string& arguments) {
  const Output r = w.run("plan " + arguments + " --format json");
  INFO(arguments << "\n" << r.out << r.err);
  REQUIRE(r.code == 0);
  return Json::parse(r.out);
}

std::string best_of(const Json& answer) { return answer["plans"][0]["plan"]["overrides"].dump(); }

}  // namespace

TEST_CASE("a fine-tune needs no file, and its plan says what is trained") {
  const Workspace w;
  const std::string question =
      "--model gpt2_small --finetune lora:8 --tokens 20M --sequence 512 --provider gcp "
      "--accelerator T4 --nodes 1 --pricing on_demand --deadline 72h@95% --budget 500USD "
      "--replications 20";
  const Json adapters = planned(w, question + " --out best.yaml");
  const std::string file = read_all(w.path("best.yaml"));
  INFO(file);
  CHECK(contains(file, "finetune: {method: lora, rank: 8}"));
  CHECK(contains(file, "sequence_length: 512"));
  std::string whole = question;
  whole.replace(whole.find("--finetune lora:8"), 17, "");
  CHECK(double(planned(w, whole)["plans"][0]["forecast"]["memory"]["parts"]["optimizer"]) >
        double(adapters["plans"][0]["forecast"]["memory"]["parts"]["optimizer"]));
  for (const char* wrong : {"--finetune lora", "--finetune lora:0", "--finetune galore:16",
                            "--sequence many", "--sequence 0"}) {
    const Output r = w.run("plan --model gpt2_small --tokens 20M " + std::string(wrong));
    INFO(wrong << r.err);
    CHECK(r.code == 2);
  }
  CHECK(contains(w.run("plan --model resnet50 --epochs 1 --sequence 512").err,
                 "models that read tokens"));
  w.write("q.yaml", small_plan_question("T4", "on_demand"));
  CHECK(contains(w.run("plan q.yaml --sequence 512").err, "--set workload.sequence_length="));
}

TEST_CASE("any is all that the catalog knows: of accelerators, machines, regions and zones") {
  const Workspace w;
  const auto question = [](const std::string& vary) {
    return "--model resnet50 --epochs 1 --provider gcp --nodes 1 --pricing on_demand "
           "--global-batch 64 --replications 10 " +
           vary;
  };
  const Json all = planned(w, question(""));
  for (const char* any : {"--accelerator any", "--machine any", "--region any",
                          "--accelerator any --machine any --region any"}) {
    INFO(any);
    const Json answer = planned(w, question(any));
    CHECK(answer["candidates_considered"] == all["candidates_considered"]);
    CHECK(best_of(answer) == best_of(all));
  }
  CHECK(planned(w, question("--accelerator T4"))["candidates_considered"] <
        all["candidates_considered"]);
}

TEST_CASE("a file needs none of the keys that are free, and placeholders restrict nothing") {
  const Workspace w;
  const std::string workload =
      "name: small\n"
      "workload:\n"
      "  model: resnet50\n"
      "  dataset: imagenet\n"
      "  train: {epochs: 1}\n"
      "forecast: {replications: 10, seed: 5}\n";
  const std::string vary =
      "plan:\n"
      "  vary: {provider: gcp, region: [us-central1, us-west1], accelerator: [T4, V100-SXM2-16], "
      "nodes: 1..2, pricing: on_demand, strategy: any, global_batch: 1..128}\n";
  w.write("bare.yaml", workload + vary);
  const Json bare = planned(w, "bare.yaml");
  // All written out, with places that the question does not take.
  std::string written = workload;
  written.replace(written.find("  train:"), 2, "  batch_per_accelerator: 1\n  ");
  w.write("full.yaml",
          written +
              "cluster:\n  provider: gcp\n  region: us-east1\n  pools: [{name: workers, machine: "
              "n1-standard-16, accelerator: {type: T4, count: 1}, nodes: 1}]\n" +
              vary);
  const Json full = planned(w, "full.yaml");
  CHECK(bare["candidates_considered"] == full["candidates_considered"]);
  CHECK(bare["plans"][0]["forecast"]["cost_usd"] == full["plans"][0]["forecast"]["cost_usd"]);
  // "any" in the cluster is no region of that name.
  w.write("any.yaml", written +
                          "cluster:\n  provider: gcp\n  region: any\n  pools: [{name: workers, "
                          "machine: any, nodes: 1}]\nplan:\n  vary: {accelerator: [T4], nodes: 1, "
                          "global_batch: 1..128}\n");
  CHECK(planned(w, "any.yaml")["candidates_considered"] > 10);
  // What is not free is still asked for.
  w.write("less.yaml", workload + "plan:\n  vary: {nodes: 1..2}\n");
  CHECK(w.run("plan less.yaml").code == 2);
}

TEST_CASE("a step that was measured is evidence: it holds where it was measured, and scales") {
  const Workspace w;
  std::string text = kScenario;
  const auto with_step = [&](const std::string& step) {
    std::string other = text;
    other.replace(other.find("  strategy:"), 2,
                  "  container: {image: example.com/train:1, profile: {step: " + step + "}}\n  ");
    return other;
  };
  const auto step_of = [&](const std::string& options) {
    const Output r = w.run("simulate " + options + " --format json");
    INFO(options << r.err);
    REQUIRE(r.code == 0);
    return Json::parse(r.out);
  };
  w.write("plain.yaml", text);
  w.write("fast.yaml", with_step("500ms"));
  w.write("slow.yaml", with_step("900ms"));
  const double modelled = step_of("plain.yaml")["step"]["seconds"];
  const Json fast = step_of("fast.yaml"), slow = step_of("slow.yaml");
  // Where it was measured it is what was measured, nearly; nothing else moves it as far.
  CHECK(double(fast["step"]["seconds"]) == Approx(0.5).epsilon(0.02));
  CHECK(double(slow["step"]["seconds"]) == Approx(0.9).epsilon(0.02));
  CHECK(modelled != Approx(0.5).epsilon(0.1));
  CHECK(fast["evidence"]["own"] == 1);
  const auto width = [](const Json& answer) {
    const Json& factor = answer["evidence"]["step_factor"];
    return double(factor["p95"]) / double(factor["p5"]);
  };
  CHECK(width(fast) < width(step_of("plain.yaml")));
  // On other numbers of nodes it scales with the model's step.
  const std::string four =
      " --set cluster.pools.p100.nodes=4 --set "
      "'workload.strategy={kind: multi_worker_mirrored, workers: 4}'";
  const double fast4 = step_of("fast.yaml" + four)["step"]["seconds"];
  const double slow4 = step_of("slow.yaml" + four)["step"]["seconds"];
  const double plain4 = step_of("plain.yaml" + four)["step"]["seconds"];
  CHECK(slow4 / fast4 == Approx(0.9 / 0.5).epsilon(0.15));
  CHECK(fast4 > double(fast["step"]["seconds"]));  // four nodes talk
  CHECK(fast4 / plain4 == Approx(0.5 / modelled).epsilon(0.3));
  // It is as good without a container: a question needs no image.
  std::string plain_step = text;
  plain_step.replace(plain_step.find("  strategy:"), 2, "  profile: {step: 500ms}\n  ");
  w.write("no-container.yaml", plain_step);
  CHECK(step_of("no-container.yaml")["step"]["seconds"] == fast["step"]["seconds"]);
  std::string twice = with_step("500ms");
  twice.replace(twice.find("  strategy:"), 2, "  profile: {step: 500ms}\n  ");
  w.write("twice.yaml", twice);
  CHECK(contains(w.run("simulate twice.yaml").err, "the measured step is given twice"));
  // The model scales it: without one there is no answer.
  std::string without = with_step("500ms");
  without.replace(without.find("  model: resnet50_v1_5\n"), 23, "");
  w.write("without.yaml", without);
  const Output refused = w.run("simulate without.yaml");
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "needs the model that the program trains"));
  // plan takes it too.
  w.write("q.yaml", with_step("500ms") + "plan:\n  vary: {nodes: 1..2, strategy: any}\n");
  const Json answer = planned(w, "q.yaml --plans 1");
  CHECK(double(answer["plans"][0]["forecast"]["step"]["seconds"]) < 0.5);
}

TEST_CASE(
    "a pipeline with stages on several accelerators is simulated, and no plan is made of it") {
  const Workspace w;
  const std::string mixed = "scenarios/mixed-pipeline.yaml";
  const std::string file = std::string(RECKON_SOURCE_DIR) + "/" + mixed;
  const Output simulated = w.run("simulate " + file + " --replications 20 --format json");
  INFO(simulated.err);
  REQUIRE(simulated.code == 0);
  const Output even =
      w.run("simulate " + file +
            " --replications 20 --format json --set "
            "'workload.strategy.stages=[{pool: h100}, {pool: a100}, {pool: a100}]'");
  REQUIRE(even.code == 0);
  CHECK(double(Json::parse(simulated.out)["step"]["seconds"]) <
        0.9 * double(Json::parse(even.out)["step"]["seconds"]));
  const Output plan = w.run("plan " + file);
  CHECK(plan.code == 2);
  CHECK(contains(plan.err, "this pipeline has stages on several"));
  CHECK(contains(w.run("export megatron " + file).err, "stages"));
  CHECK_FALSE(contains(w.run("export kubernetes " + file).err, "stages"));  // the worker cuts so
}
