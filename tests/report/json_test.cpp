#include "report/json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "report/example_forecast.h"
#include "support/golden.h"

using namespace reckon;
using nlohmann::json;

namespace {

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

std::vector<std::string> ordered_keys(const std::string& text) {
  std::vector<std::string> names;
  const auto object = nlohmann::ordered_json::parse(text);
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

}  // namespace

TEST_CASE("the field names of `reckon simulate --format json` are the interface") {
  const std::string text = forecast_json(test::example_forecast());
  test::check_golden("report/golden/forecast.json", text);
  CHECK(ordered_keys(text) == std::vector<std::string>{"schema_version",
                                                       "command",
                                                       "scenario",
                                                       "seed",
                                                       "replications",
                                                       "engine",
                                                       "feasible",
                                                       "step",
                                                       "samples_per_second",
                                                       "tokens_per_second",
                                                       "steps",
                                                       "accelerators",
                                                       "memory",
                                                       "time_seconds",
                                                       "cost_usd",
                                                       "node_hours",
                                                       "cost_breakdown_usd",
                                                       "prices",
                                                       "purchases",
                                                       "energy",
                                                       "rates",
                                                       "goodput",
                                                       "goodput_range",
                                                       "badput",
                                                       "lost_work_seconds",
                                                       "on_notice",
                                                       "interruptions",
                                                       "prices_as_of",
                                                       "catalog_digest",
                                                       "calibrations",
                                                       "assumptions",
                                                       "evidence",
                                                       "warnings",
                                                       "extrapolated"});
  const json j = json::parse(text);
  using Names = std::vector<std::string>;  // json sorts them
  CHECK(keys(j["step"]) == Names{"bottleneck", "bubble_seconds", "communication_seconds",
                                 "compute_seconds", "exposed_communication_seconds",
                                 "exposed_input_seconds", "host_seconds", "input_seconds", "mfu",
                                 "seconds", "update_seconds"});
  CHECK(keys(j["memory"]) ==
        Names{"available_bytes", "margin_bytes", "out_of_memory", "parts", "required_bytes"});
  CHECK(keys(j["time_seconds"]) == Names{"mean", "p5", "p50", "p95"});
  CHECK(keys(j["cost_usd"]) == Names{"mean", "p5", "p50", "p95"});
  CHECK(keys(j["cost_breakdown_usd"]) ==
        Names{"accelerators", "idle", "machines", "management", "network", "storage"});
  CHECK(keys(j["badput"]) == Names{"checkpoint_restore", "checkpoint_save", "data_loading",
                                   "initialization", "lost_work", "provisioning", "waiting"});
  CHECK(keys(j["interruptions"]) == Names{"failure", "maintenance", "preemption"});
  CHECK(keys(j["assumptions"][0]) == Names{"cost_effect_usd", "effects_seconds", "effects_usd",
                                           "high", "key", "low", "median", "source",
                                           "time_effect_seconds", "unit", "value", "what"});
  CHECK(keys(j["node_hours"]) == Names{"p100", "servers"});
}

TEST_CASE("values arrive in the JSON unchanged") {
  const json j = json::parse(forecast_json(test::example_forecast()));
  CHECK(j["schema_version"] == 1);
  CHECK(j["command"] == "simulate");
  CHECK(j["step"]["seconds"] == 0.2);
  CHECK(j["step"]["bottleneck"] == "compute");
  CHECK(j["samples_per_second"] == 1920.0);
  CHECK(j["time_seconds"]["p95"] == 86400.0);
  CHECK(j["cost_usd"]["p50"] == 248.0);
  CHECK(j["badput"]["checkpoint_save"] == 0.03);
  CHECK(j["interruptions"]["preemption"] == 2.5);
  CHECK(j["assumptions"].size() == 6);
  CHECK(j["assumptions"][0]["time_effect_seconds"] == -18000.0);
  double badput = j["goodput"];
  for (const auto& part : j["badput"]) badput += part.get<double>();
  CHECK(badput == Approx(1.0));
}

TEST_CASE("what is unknown is null, never a guess") {
  Forecast f = test::example_forecast();
  f.cost_usd.reset();
  f.rates.reset();
  f.step.mfu = 0;  // no accelerators
  f.prices_as_of.clear();
  f.time_seconds.p95 = std::numeric_limits<double>::infinity();
  f.assumptions[0].cost_effect_usd.reset();
  json j = json::parse(forecast_json(f));
  CHECK(j["cost_usd"].is_null());
  CHECK(j["cost_breakdown_usd"].is_null());
  CHECK(j["rates"].is_null());
  CHECK(j["step"]["mfu"].is_null());
  CHECK(j["prices_as_of"].is_null());
  CHECK(j["time_seconds"]["p95"].is_null());
  CHECK(j["assumptions"][0]["cost_effect_usd"].is_null());
  CHECK(j["node_hours"]["p100"] == 60.0);

  f.feasible = false;
  j = json::parse(forecast_json(f));
  CHECK(j["feasible"] == false);
  for (const char* name :
       {"step", "time_seconds", "cost_usd", "node_hours", "goodput", "goodput_range", "badput",
        "lost_work_seconds", "on_notice", "interruptions"}) {
    INFO(name);
    CHECK(j[name].is_null());
  }
  CHECK(j["memory"]["required_bytes"] > 0);
}

TEST_CASE("a name that is no UTF-8 does not break the JSON") {
  Forecast f = test::example_forecast();
  f.scenario = "caf\xe9";
  CHECK(json::parse(forecast_json(f))["scenario"] == "caf\xEF\xBF\xBD");
}

TEST_CASE("a trace names its processes and gives times in microseconds") {
  Plan plan;
  plan.jobs.resize(1);
  plan.jobs[0].name = "example";
  plan.pools.resize(2);
  plan.pools[0].name = "p100";
  plan.pools[1].name = "servers";
  const auto at = [](std::int64_t ns) { return SimTime{SimDuration{ns}}; };
  LifeResult life;
  life.timeline.spans = {{"step", "goodput", -1, -1, at(1'500), at(2'000'500)},
                         {"ready", "node", 1, 3, at(0), at(9'000)}};
  life.timeline.marks = {{"reclaim", 0, 2, at(7'250)}};
  const json events = json::parse(trace_json(plan, life))["traceEvents"];

  std::map<int, std::string> processes;
  std::vector<json> spans, marks;
  for (const json& e : events) {
    if (e["ph"] == "M" && e["name"] == "process_name") processes[e["pid"]] = e["args"]["name"];
    if (e["ph"] == "X") spans.push_back(e);
    if (e["ph"] == "i") marks.push_back(e);
  }
  CHECK(processes ==
        std::map<int, std::string>{{1, "job example"}, {2, "pool p100"}, {3, "pool servers"}});
  REQUIRE(spans.size() == 2);
  CHECK(spans[0]["ts"] == 1.5);
  CHECK(spans[0]["dur"] == 1999.0);
  CHECK(spans[0]["pid"] == 1);
  CHECK(spans[1]["pid"] == 3);
  CHECK(spans[1]["tid"] == 3);
  REQUIRE(marks.size() == 1);
  CHECK(marks[0]["ts"] == 7.25);
  CHECK(marks[0]["tid"] == 2);
}
