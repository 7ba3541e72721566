#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "cli/plan/plan_small_question.h"
#include "cli/run_reckon.h"

// What `reckon plan` answers besides its table: the fewest, the baseline, the memo.
using namespace reckon::test;
using Json = nlohmann::json;

namespace {

const std::string kPlanAnswersQuestion = small_plan_question("T4", "on_demand");

}  // namespace

TEST_CASE("a baseline: equal today passes, a dearer price fails beyond the tolerance only") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  REQUIRE(w.run("plan q.yaml --out best.yaml").code == 0);
  const Output same = w.run("plan q.yaml --baseline best.yaml --diff same.md");
  INFO(same.out + same.err);
  CHECK(same.code == 0);
  CHECK(same.out.find("Today's best plan is as good as the baseline best.yaml") !=
        std::string::npos);
  CHECK(read_all(w.path("same.md")).starts_with("### small: within tolerance"));
  // All prices 10 % up since: the plan is the same and costs 10 % more.
  const Output planned = w.run("plan q.yaml --format json");
  const double cost = Json::parse(planned.out)["plans"][0]["forecast"]["cost_usd"]["mean"];
  std::string cheaper = read_all(w.path("best.yaml"));
  const std::size_t at = cheaper.find("cost_usd: {mean: ");
  REQUIRE(at != std::string::npos);
  const std::size_t end = cheaper.find(',', at);
  cheaper.replace(at, end - at, "cost_usd: {mean: " + std::to_string(cost / 1.10));
  w.write("then.yaml", cheaper);
  const Output worse = w.run("plan q.yaml --baseline then.yaml --tolerance 3% --diff worse.md");
  CHECK(worse.code == 1);
  CHECK(worse.out.find("10.0 % worse than the baseline") != std::string::npos);
  CHECK(worse.out.find("- mean cost:") != std::string::npos);
  CHECK(worse.out.find("+ mean cost:") != std::string::npos);
  CHECK(worse.out.find("    hardware:") != std::string::npos);  // the same in both
  const std::string page = read_all(w.path("worse.md"));
  CHECK(page.starts_with("### small: worse than the baseline"));
  CHECK(page.find("| mean cost | ") != std::string::npos);
  CHECK(w.run("plan q.yaml --baseline then.yaml --tolerance 11%").code == 0);
  CHECK(w.run("plan q.yaml --baseline best.yaml --deadline 5min@95%").code == 1);
  CHECK(w.run("plan q.yaml --tolerance 3%").code == 2);
  CHECK(w.run("plan q.yaml --baseline best.yaml --tolerance -1%").code == 2);
  CHECK(w.run("plan q.yaml --baseline nowhere.yaml").code == 2);
  // A bare 3 would be 300 %.
  CHECK(w.run("plan q.yaml --baseline best.yaml --tolerance 3").code == 2);
  const Json held =
      Json::parse(w.run("plan q.yaml --baseline then.yaml --format json").out)["baseline"];
  CHECK(held["worse"] == true);
  CHECK(double(held["change"]) == Approx(0.10).epsilon(1e-4));
  CHECK(Json::parse(planned.out)["baseline"].is_null());
}

TEST_CASE("a baseline is neither overwritten nor left out by an empty name") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  REQUIRE(w.run("plan q.yaml --out best.yaml").code == 0);
  const std::string before = read_all(w.path("best.yaml"));
  const Output same = w.run("plan q.yaml --baseline best.yaml --out ./best.yaml");
  CHECK(same.code == 2);
  CHECK(same.err.find("--baseline and --out are one file") != std::string::npos);
  CHECK(read_all(w.path("best.yaml")) == before);
  CHECK(w.run("plan q.yaml --out q.yaml").code == 2);
  CHECK(w.run("plan q.yaml --baseline ''").code == 2);
}

TEST_CASE("a baseline of another job is refused, one that is no plan any more is still held to") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  REQUIRE(w.run("plan q.yaml --out best.yaml").code == 0);
  const Output other = w.run("plan q.yaml --set workload.train.epochs=1 --baseline best.yaml");
  CHECK(other.code == 2);
  CHECK(other.err.find("the baseline trains") != std::string::npos);
  std::string gone = read_all(w.path("best.yaml"));
  const std::size_t at = gone.find("machine: n1-standard-16");
  REQUIRE(at != std::string::npos);
  gone.replace(at, 23, "machine: n1-standard-17");
  w.write("gone.yaml", gone);
  const Output held = w.run("plan q.yaml --baseline gone.yaml");
  INFO(held.out + held.err);
  CHECK(held.code == 0);
  CHECK(held.out.find("The baseline's own plan is no longer possible") != std::string::npos);
  const Output seed = w.run("plan q.yaml --seed 6 --baseline best.yaml --tolerance 20%");
  CHECK(seed.out.find("part of the difference is chance") != std::string::npos);
}

TEST_CASE("a baseline of several jobs is refused where the list of jobs begins") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  const std::string job =
      "workload: {model: resnet50, dataset: imagenet, train: {epochs: 1}, "
      "batch_per_accelerator: 32, strategy: {kind: single}}}\n";
  w.write("two.yaml", "name: two\njobs:\n  - {name: a, " + job + "  - {name: b, " + job +
                          "cluster:\n  provider: gcp\n  region: us-central1\n"
                          "  pools: [{name: workers, machine: n1-standard-16, "
                          "accelerator: {type: T4, count: 1}, nodes: 1}]\n");
  const Output refused = w.run("plan q.yaml --baseline two.yaml");
  INFO(refused.out + refused.err);
  CHECK(refused.code == 2);
  CHECK(refused.err.find("two.yaml:2:1: error: a baseline is of one job, and the scenario has "
                         "several") != std::string::npos);
}

TEST_CASE("the memo of a plan is one page with question, recommendation, alternatives and prices") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  REQUIRE(w.run("plan q.yaml --replications 120 --memo memo.md").code == 0);
  const std::string page = read_all(w.path("memo.md"));
  for (const char* part :
       {"# small\n", "## Question\n\nhow many T4 for two epochs?", "## Recommendation\n\n**",
        "## Alternatives\n", "## What would change the choice\n", "## What to measure first\n",
        "## Risks\n", "## Assumptions\n", "## Prices\n", "120 simulated runs, seed 5"}) {
    INFO(part << "\n" << page);
    CHECK(page.find(part) != std::string::npos);
  }
}

TEST_CASE("the fewest accelerators as a table and as JSON, exit code 1 where none is enough") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  const Output table = w.run("plan q.yaml --fewest");
  CHECK(table.code == 0);
  CHECK(table.out.find("gcp T4") != std::string::npos);
  const Output json = w.run("plan q.yaml --fewest --format json");
  REQUIRE(json.code == 0);
  CHECK(Json::parse(json.out)["fewest"][0]["fits"]["accelerators"] == 1);
  const Output late = w.run("plan q.yaml --fewest --deadline 5min@95%");
  CHECK(late.code == 1);
  CHECK(w.run("plan q.yaml --fewest --out best.yaml").code == 2);
}

TEST_CASE("plans of two questions compare, with a calibration laid over the catalog") {
  const Workspace w;
  w.write("q.yaml", kPlanAnswersQuestion);
  REQUIRE(w.run("plan q.yaml --out a.yaml").code == 0);
  REQUIRE(w.run("plan q.yaml --objective time --out b.yaml").code == 0);
  const Output compared = w.run("compare a.yaml b.yaml");
  CHECK(compared.code == 0);
  const Output none = w.run("plan q.yaml --calibration nowhere.yaml");
  CHECK(none.code == 3);
}
