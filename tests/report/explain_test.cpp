#include "report/explain/explain.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "support/golden.h"

using namespace reckon;
using namespace std::chrono_literals;

namespace {

/// Written down by hand: round numbers, every part of it present.
Explanation example_explanation() {
  Explanation e;
  e.scenario = "example";
  e.engine = "fluid";
  e.accelerators = 8;
  e.step.step = 200ms;
  e.step.bottleneck = Bottleneck::communication;
  e.step.samples_per_second = SamplesPerSecond{1920};
  e.step.mfu = 0.312;
  e.memory.parameters = 1.0_GiB;
  e.memory.activations = 7.0_GiB;
  e.memory.available = 16.0_GiB;
  e.phases = {
      {"forward", 40ms, 0.2}, {"backward", 60ms, 0.3}, {"exposed communication", 100ms, 0.5}};
  e.layers = {{"conv1", 1, 10ms, 20ms, 0.15, 9'408, true},
              {"layer1", 12, 30ms, 40ms, 0.35, 215'808, false}};
  e.now = {"as it is", "", 200ms, SamplesPerSecond{1920}, Seconds{36'000}, Usd{100}};
  e.what_would_help = {
      {"twice the network", "", 150ms, SamplesPerSecond{2560}, Seconds{27'000}, Usd{75}},
      {"twice the peak FLOP/s", "", 200ms, SamplesPerSecond{1920}, Seconds{36'000}, Usd{100}},
      {"1 worker instead of 2", "--nodes", 110ms, SamplesPerSecond{1745}, Seconds{39'600},
       std::nullopt}};
  const auto row = [](int workers, double a, double b) {
    return CrossoverRow{workers, {SamplesPerSecond{a}, SamplesPerSecond{b}}, a < b ? 1u : 0u};
  };
  e.crossover = Crossover{{"all-reduce", "2 servers"},
                          "n1-highmem-8",
                          SamplesPerSecond{1000},
                          {row(2, 1900, 1800), row(4, 3600, 3700), row(8, 7000, 6000)}};
  return e;
}

}  // namespace

TEST_CASE("an explanation shows step, layers, memory, what would help and the crossover") {
  const std::string table = explain_table(example_explanation());
  test::check_golden("report/golden/explain.txt", table);
  CHECK(table.find("-25.0 %") != std::string::npos);  // 27,000 of 36,000 s
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
    CHECK((line.empty() || line.back() != ' '));
  }
}

TEST_CASE("blocks that are alike are one line with their sum, others are told apart") {
  Explanation e = example_explanation();
  e.layers = {{"embeddings", 1, 1ms, 2ms, 0.015, 1'000, true}};
  for (int k = 0; k < 12; ++k)
    e.layers.push_back({"h." + std::to_string(k), 10, 2ms, 4ms, 0.03, 7'000, false});
  e.layers[6].forward = 3ms;  // h.5
  for (const char* name : {"tail.a", "tail.b"})
    e.layers.push_back({name, 1, 0ms, 0ms, 0, 0, false});
  const std::string table = std::regex_replace(explain_table(e), std::regex(" +"), " ");
  CHECK(table.find("h.0 to 4 (10 layers each) 10.0 ms 20.0 ms 15.0 % 35,000") != std::string::npos);
  CHECK(table.find("h.5 (10 layers) 3.00 ms 4.00 ms 3.0 % 7,000") != std::string::npos);
  CHECK(table.find("h.6 to 11 (10 layers each) 12.0 ms 24.0 ms 18.0 % 42,000") !=
        std::string::npos);
  CHECK(table.find("tail.a to tail.b (1 layer each)") != std::string::npos);
}

TEST_CASE("who is fastest is told by stretches of the number of workers") {
  Crossover c = *example_explanation().crossover;
  CHECK(who_is_fastest(c) ==
        "all-reduce with 2 workers, 2 servers with 4 workers, all-reduce from 8 workers");
  c.rows[2].best = 1;
  CHECK(who_is_fastest(c) == "all-reduce with 2 workers, 2 servers from 4 workers");
  c.rows[0].best = 1;
  CHECK(who_is_fastest(c) == "2 servers at every size");
  c.rows[2].best = 0;
  CHECK(who_is_fastest(c) == "2 servers with 2 to 4 workers, all-reduce from 8 workers");
}

TEST_CASE("an explanation's JSON has the fields that programs rely on") {
  const auto j = nlohmann::json::parse(explain_json(example_explanation()));
  CHECK(j["command"] == "explain");
  CHECK(j["phases"][2]["name"] == "exposed communication");
  CHECK(j["phases"][2]["share"] == 0.5);
  CHECK(j["layers"][1]["layers"] == 12);
  CHECK(j["memory"]["required_bytes"] == 8.0 * 1024 * 1024 * 1024);
  CHECK(j["bottleneck"] == "communication");
  CHECK(j["what_would_help"][0]["change"] == "twice the network");
  CHECK(j["what_would_help"][0]["step_seconds"] == 0.15);
  CHECK(j["what_would_help"][2]["training_cost_usd"].is_null());
  CHECK(j["crossover"][1]["workers"] == 4);
  CHECK(j["crossover"][1]["fastest"] == "2 servers");
  Explanation tpu = example_explanation();
  tpu.crossover.reset();
  CHECK(nlohmann::json::parse(explain_json(tpu))["crossover"].is_null());
  CHECK(explain_table(tpu).find("parameter servers") == std::string::npos);
}

TEST_CASE("other ways to go on after a loss are rows beside the plan's own, with what sets them") {
  CHECK(restarts_table({}).empty());
  CHECK_FALSE(nlohmann::json::parse(explain_json(example_explanation())).contains("restarts"));
  const std::vector<RestartChange> changes{
      {"full restart", "", "", 100 * 3600.0, 1000.0, 0.80, 42.25},
      {"in_place restart", "workload.restart={kind: in_place}", "--restart in_place", 90 * 3600.0,
       900.0, 0.89, 42.25},
      {"saves to peers", "workload.checkpoint.local={to: peer_memory}", "", 95 * 3600.0,
       std::nullopt, 0.84, 42.25}};
  const std::string table = std::regex_replace(restarts_table(changes), std::regex(" +"), " ");
  using Catch::Matchers::Contains;
  CHECK_THAT(table, Contains("After a loss (42.2 interruptions"));
  CHECK_THAT(table, Contains("full restart 4 d 4 h 1,000.00 USD 80.0 %"));
  CHECK_THAT(table, Contains("in_place restart 3 d 18 h -10.0 % 900.00 USD -10.0 % 89.0 %"));
  CHECK_THAT(table, Contains("saves to peers") && Contains("unknown") && Contains("outside"));
  CHECK_THAT(table, Contains("--set 'workload.restart={kind: in_place}'"));
  const auto j = nlohmann::json::parse(explain_json(example_explanation(), changes));
  REQUIRE(j["restarts"].size() == 3);
  CHECK(j["restarts"][0]["set"].is_null());
  CHECK(j["restarts"][2]["cost_usd"].is_null());
  CHECK(j["restarts"][1]["goodput"] == 0.89);
}
