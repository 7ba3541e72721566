#include <catch2/catch.hpp>
#include <limits>

#include "report/example_forecast.h"
#include "report/html/html.h"
#include "report/html/page.h"
#include "report/html/page_assets.h"
#include "support/golden.h"
#include "support/html_page.h"
#include "support/plans.h"
#include "support/text.h"

using namespace reckon;
using nlohmann::json;

namespace {

Expectation expectation(const std::string& text) { return parse_expectation(text).value(); }

/// 100 replications between 64,800 and 84,600 s, one each 200 s; 1 USD for 288 s.
Forecast page_forecast() {
  Forecast f = test::example_forecast();
  f.replications = 100;
  for (int k = 0; k < 100; ++k) {
    f.times_seconds.push_back(64'800 + 200 * k);
    f.costs_usd.push_back(f.times_seconds.back() / 288);
  }
  return f;
}

Plan example_plan() {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 3, 2);
  plan.expect = {expectation("p95(time) <= 20h"), expectation("p95(cost) <= 400 USD")};
  return plan;
}

/// A job that waits an hour for two nodes, trains, loses one of them after five hours and goes on.
LifeResult example_life() {
  const auto at = [](int minutes) { return SimTime{} + std::chrono::minutes(minutes); };
  LifeResult life;
  life.finished = true;
  life.finish = at(900);
  life.timeline.spans = {
      {"queued", "provisioning", -1, -1, at(0), at(60)},
      {"training", "goodput", -1, -1, at(60), at(300)},
      {"queued", "waiting", -1, -1, at(300), at(360)},
      {"training", "goodput", -1, -1, at(360), at(900)},
      {"provisioning", "node", 0, 0, at(0), at(60)},
      {"job", "node", 0, 0, at(60), at(900)},
      {"provisioning", "node", 0, 1, at(0), at(50)},
      {"idle", "node", 0, 1, at(50), at(60)},
      {"job", "node", 0, 1, at(60), at(300)},
      {"provisioning", "node", 0, 1, at(310), at(360)},
      {"job", "node", 0, 1, at(360), at(900)},
  };
  life.timeline.marks = {{"reclaim notice", 0, 1, at(299)}, {"reclaimed", 0, 1, at(300)}};
  return life;
}

std::string forecast_page_of(const Forecast& f, const Plan& plan, const LifeResult* life = nullptr,
                             const std::string& question = "How long, and how much?") {
  return forecast_html({plan, f, question, life, 7}, test::kAssets);
}

}  // namespace

TEST_CASE("a page of a forecast is what it was") {
  const LifeResult life = example_life();
  test::check_golden("report/golden/forecast.html",
                     forecast_page_of(page_forecast(), example_plan(), &life));
}

TEST_CASE("a page asks no one for anything") {
  const LifeResult life = example_life();
  const std::string page = forecast_page_of(page_forecast(), example_plan(), &life);
  CHECK(test::contains(page, "content=\"default-src 'none';"));
  CHECK(page.find("Content-Security-Policy") < page.find("<style>"));
  for (const char* asking : {"src=", "<link", "<img", "@import", "url(", "://"}) {
    INFO(asking);
    CHECK_FALSE(test::contains(page, asking));
  }
}

TEST_CASE("the bins of a distribution hold every replication once") {
  const auto specs = test::specs_of(forecast_page_of(page_forecast(), example_plan()));
  for (const char* id : {"time", "cost"}) {
    INFO(id);
    int count = 0;
    json last;
    for (const json& bin : specs.at(id)["layer"][0]["data"]["values"]) {
      CHECK(bin["from"] < bin["to"]);
      if (!last.is_null()) CHECK(bin["from"] == last["to"]);
      count += bin["count"].get<int>();
      last = bin;
    }
    CHECK(count == 100);
    CHECK(last["up_to"] == "100.0 %");
  }
  // 64,800 s are 18 h, 84,600 s are 23.5 h. Interquartile range: 49 of the 100 steps of 200 s,
  // 2.72 h; Freedman and Diaconis: 2 * 2.72 / 100^(1/3) = 1.17 h, at most an eighth of 5.5 h =
  // 0.6875 h, rounded up 1 h.
  const json bins = specs.at("time")["layer"][0]["data"]["values"];
  REQUIRE(bins.size() == 6);
  CHECK(bins[0]["from"] == 18.0);
  CHECK(bins[0]["count"] == 18);  // 18 h up to, not including, 19 h: 3,600 s / 200 s
}

TEST_CASE("replications that all take the same are one bin") {
  Forecast f = page_forecast();
  f.times_seconds.assign(100, 36'000.0);
  f.time_seconds = {36'000, 36'000, 36'000, 36'000};
  const auto specs = test::specs_of(forecast_page_of(f, example_plan()));
  const json bins = specs.at("time")["layer"][0]["data"]["values"];
  REQUIRE(bins.size() == 1);
  CHECK(bins[0]["count"] == 100);
}

TEST_CASE("replications that never finish are counted, not drawn") {
  Forecast f = page_forecast();
  f.times_seconds[3] = f.times_seconds[9] = std::numeric_limits<double>::infinity();
  f.unfinished_share = 0.02;
  f.unfinished_reason = "no nodes";
  const std::string page = forecast_page_of(f, example_plan());
  CHECK(test::contains(page, "2 of 100 replications never finish"));
  CHECK(test::contains(page, "2.0 % of the runs never finish: no nodes"));
  int count = 0;
  const auto specs = test::specs_of(page);
  for (const json& bin : specs.at("time")["layer"][0]["data"]["values"])
    count += bin["count"].get<int>();
  CHECK(count == 98);
}

TEST_CASE("where none finishes there is no picture of the times") {
  Forecast f = page_forecast();
  const double never = std::numeric_limits<double>::infinity();
  f.times_seconds.assign(100, never);
  f.time_seconds = {never, never, never, never};
  CHECK_FALSE(test::specs_of(forecast_page_of(f, example_plan())).contains("time"));
}

TEST_CASE("a limit is drawn where it is, and said where it is far away") {
  Plan plan = example_plan();
  plan.expect.push_back(expectation("p95(time) <= 1000h"));
  const std::string page = forecast_page_of(page_forecast(), plan);
  CHECK(test::contains(page, "p95(time) &lt;= 1000h holds and lies outside the plot"));
  const json layers = test::specs_of(page).at("time")["layer"];
  const json limits = layers[2]["data"]["values"];
  REQUIRE(limits.size() == 1);
  CHECK(limits[0]["at"] == 20.0);
  CHECK(limits[0]["text"] == "p95(time) <= 20h: does not hold");  // p95 is 24 h
}

TEST_CASE("the waterfall goes down from all the time to goodput without a gap") {
  const auto specs = test::specs_of(forecast_page_of(page_forecast(), example_plan()));
  const json rows = specs.at("goodput")["data"]["values"];
  REQUIRE(rows.size() == 8);  // all, six causes (data loading is 0), goodput
  double at = rows[0]["to"];
  CHECK(at == 100.0);
  for (std::size_t k = 1; k + 1 < rows.size(); ++k) {
    CHECK(rows[k]["to"].get<double>() == Approx(at));
    at = rows[k]["from"];
  }
  CHECK(at == Approx(90.0));
  CHECK(rows.back()["to"].get<double>() == Approx(90.0));
  // A tenth is lost: the axis starts at 100 - 1.5 * 10 = 85.
  CHECK(specs.at("goodput")["layer"][0]["encoding"]["x"]["scale"]["domainMin"] == 85.0);
}

TEST_CASE("without a price the page has no cost and says so") {
  Forecast f = page_forecast();
  f.cost_usd.reset();
  f.costs_usd.clear();
  for (auto& a : f.assumptions) a.cost_effect_usd.reset();
  const std::string page = forecast_page_of(f, example_plan());
  const auto specs = test::specs_of(page);
  CHECK(test::contains(page, "a price is missing"));
  for (const char* id : {"cost", "ledger", "cost-effects"}) CHECK_FALSE(specs.contains(id));
  CHECK(specs.contains("node-hours"));
}

TEST_CASE("a plan that does not fit has only its memory") {
  Forecast f = page_forecast();
  f.feasible = false;
  const std::string page = forecast_page_of(f, example_plan());
  const auto specs = test::specs_of(page);
  CHECK(test::contains(page, "Not feasible"));
  CHECK(specs.size() == 1);
  CHECK(specs.contains("memory"));
}

TEST_CASE("what users write cannot become markup") {
  const std::string evil = "</script><script>alert('1')</script><!-- & \"q\"";
  Forecast f = page_forecast();
  f.scenario = evil;
  f.warnings = {evil};
  f.assumptions[0].what = evil;
  f.node_hours = {{evil, 1}};
  Plan plan = example_plan();
  plan.name = plan.pools[0].name = plan.jobs[0].name = evil;
  plan.expect[0].text = evil;
  const LifeResult life = example_life();
  const std::string page = forecast_page_of(f, plan, &life, evil);
  CHECK_FALSE(test::contains(page, "<script>alert"));
  CHECK_FALSE(test::contains(page, "<!--"));
  CHECK(test::contains(page, "<title>&lt;/script&gt;&lt;script&gt;alert(&#39;1&#39;)"));
  const auto specs = test::specs_of(page);  // each is whole: it parses
  CHECK(specs.size() == 10);
  CHECK(test::contains(specs.at("node-hours")["data"]["values"][0]["name"].get<std::string>(),
                       "</script><script>alert('1')</script>"));
}

TEST_CASE("the timeline draws the job above its nodes, and what took a node") {
  const LifeResult life = example_life();
  const Plan plan = example_plan();
  const std::string pool = plan.pools[0].name;
  const auto specs = test::specs_of(forecast_page_of(page_forecast(), plan, &life));
  const json& spec = specs.at("timeline");
  CHECK(spec["encoding"]["y"]["scale"]["domain"] == json{"job", pool + "-0", pool + "-1"});
  const json blocks = spec["layer"][0]["data"]["values"];
  CHECK(blocks.size() == 11);
  CHECK(blocks[1]["row"] == "job");
  CHECK(blocks[1]["what"] == "training");
  CHECK(blocks[1]["from"] == 1.0);  // hours
  CHECK(blocks[1]["to"] == 5.0);
  const json losses = spec["layer"][1]["data"]["values"];
  REQUIRE(losses.size() == 1);  // the notice before it is not drawn
  CHECK(losses[0]["row"] == pool + "-1");
  CHECK(losses[0]["at"] == 5.0);
}

TEST_CASE("a timeline's training goes on across saves too short to be seen") {
  LifeResult life = example_life();
  auto& spans = life.timeline.spans;
  spans.clear();
  SimTime at{};
  for (int k = 0; k < 1000; ++k) {  // a save is a thousandth of a thousandth of the whole
    const SimTime saved = at + std::chrono::minutes(1),
                  next = saved + std::chrono::milliseconds(60);
    spans.push_back({"training", "goodput", -1, -1, at, saved});
    spans.push_back({"save", "checkpoint_save", -1, -1, saved, next});
    at = next;
  }
  const auto specs = test::specs_of(forecast_page_of(page_forecast(), example_plan(), &life));
  const json blocks = specs.at("timeline")["layer"][0]["data"]["values"];
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0]["from"] == 0.0);
  CHECK(blocks[0]["to"].get<double>() ==
        Approx((1000 * 60 + 999 * 0.06) / 3600));  // the last save is left out
}

TEST_CASE("the typical replication is the one nearest to the median") {
  Forecast f = page_forecast();
  f.time_seconds.p50 = 70'000;  // 64,800 + 200 * 26
  CHECK(typical_replication(f) == 26);
  f.times_seconds.assign(3, std::numeric_limits<double>::infinity());
  CHECK(typical_replication(f) == 0);
  f.time_seconds.p50 = std::numeric_limits<double>::infinity();
  CHECK(typical_replication(f) == 0);
}
