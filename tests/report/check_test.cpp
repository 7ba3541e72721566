#include "report/check/check.h"

#include <nlohmann/json.hpp>

#include "report/json.h"
#include "support/golden.h"

using namespace reckon;

namespace {

CheckedExpectation expectation(Metric metric, std::string text, std::optional<double> value,
                               bool passed, std::string reason = "") {
  Expectation e;
  e.text = text;
  e.metric = metric;
  return {e, {std::move(text), value, passed, std::move(reason)}, {"scenarios/a.yaml", 12, 5}};
}

std::vector<CheckedScenario> examples() {
  CheckedScenario good{"scenarios/a.yaml", std::nullopt, {}, {}};
  good.expectations = {
      expectation(Metric::time, "p95(time) <= 48h", 148'320, true),
      expectation(Metric::cost, "mean(cost) < 100 USD", 123.456, false),
      expectation(Metric::cost, "p95(cost) < 100 USD", std::nullopt, false, "a price is unknown")};
  CheckedScenario wrong{"scenarios/b & c.yaml", std::nullopt, {}, {}};
  wrong.errors = {{Severity::error,
                   {"scenarios/b & c.yaml", 3, 7},
                   "unknown key 'acceleratr'; did you mean 'accelerator'?",
                   "one of: 100% <these>"}};
  return {good,
          wrong,
          {"scenarios/d.yaml", std::nullopt, {}, {}},
          {"scenarios/e.yaml", "needs a GPU", {}, {}}};
}

}  // namespace

TEST_CASE("check prints each expectation with its value and counts at the end") {
  test::check_golden("report/golden/check.txt", check_text(examples()));
  // 148,320 s is 41.2 h.
  CHECK(check_text(examples()).find("PASS p95(time) <= 48h") != std::string::npos);
  CHECK(check_text(examples()).find("(41.2 h)") != std::string::npos);
}

TEST_CASE("JUnit XML counts failures and errors and escapes what users wrote") {
  const std::string xml = check_junit(examples());
  test::check_golden("report/golden/check.xml", xml);
  CHECK(xml.find("name=\"scenarios/b &amp; c.yaml\"") != std::string::npos);
  CHECK(xml.find("p95(time) &lt;= 48h") != std::string::npos);
  CHECK(xml.find("&lt;these&gt;") != std::string::npos);
  CHECK(xml.find("<system-out>41.2 h</system-out>") != std::string::npos);
  CHECK(xml.find("tests=\"6\" failures=\"2\" errors=\"1\" skipped=\"1\"") != std::string::npos);
}

TEST_CASE("SARIF holds each failure and each error at its line, with the path as a URI") {
  const auto log = nlohmann::json::parse(check_sarif(examples(), "1.2.3"));
  CHECK(log["version"] == "2.1.0");
  const auto& run = log["runs"][0];
  CHECK(run["tool"]["driver"]["name"] == "reckon");
  CHECK(run["tool"]["driver"]["version"] == "1.2.3");
  const auto& results = run["results"];
  REQUIRE(results.size() == 3);
  CHECK(results[0]["ruleId"] == "expectation");
  CHECK(results[0]["level"] == "error");
  CHECK(results[0]["message"]["text"] == "mean(cost) < 100 USD: 123.46 USD");
  const auto place = [&](std::size_t k) { return results[k]["locations"][0]["physicalLocation"]; };
  CHECK(place(0)["artifactLocation"]["uri"] == "scenarios/a.yaml");
  CHECK(place(0)["region"] == nlohmann::json{{"startLine", 12}, {"startColumn", 5}});
  CHECK(results[2]["ruleId"] == "scenario");
  CHECK(place(2)["artifactLocation"]["uri"] == "scenarios/b%20%26%20c.yaml");
  CHECK(place(2)["region"]["startLine"] == 3);
  // Every rule that results name is declared.
  for (const auto& result : results) {
    const auto& rules = run["tool"]["driver"]["rules"];
    CHECK(std::any_of(rules.begin(), rules.end(),
                      [&](const auto& rule) { return rule["id"] == result["ruleId"]; }));
  }
}

TEST_CASE("SARIF of what has no line names the file alone") {
  CheckedScenario s{"a.yaml", std::nullopt, {{Severity::warning, {}, "empty", ""}}, {}};
  const auto log = nlohmann::json::parse(check_sarif(std::vector{s}, "1"));
  const auto& result = log["runs"][0]["results"][0];
  CHECK(result["level"] == "warning");
  CHECK(result["locations"][0]["physicalLocation"] ==
        nlohmann::json{{"artifactLocation", {{"uri", "a.yaml"}}}});
  CHECK(nlohmann::json::parse(check_sarif({}, "1"))["runs"][0]["results"].empty());
}

TEST_CASE("control characters, which XML cannot hold, are replaced") {
  CheckedScenario s{"a\x01\"b'\n.yaml", std::nullopt, {}, {}};
  const std::string xml = check_junit(std::vector{s});
  CHECK(xml.find("name=\"a\uFFFD&quot;b&#39;&#10;.yaml\"") != std::string::npos);
}

TEST_CASE("GitHub annotations stand on one line each, at the place of the expectation") {
  const std::string text = check_annotations(examples());
  CHECK(text ==
        "::error file=scenarios/a.yaml,line=12,col=5::mean(cost) < 100 USD: 123.46 USD\n"
        "::error file=scenarios/a.yaml,line=12,col=5::p95(cost) < 100 USD: a price is unknown\n"
        "::error file=scenarios/b & c.yaml,line=3,col=7::unknown key 'acceleratr'; did you mean "
        "'accelerator'?%0Aone of: 100%25 <these>\n");
}

TEST_CASE("properties of a GitHub annotation escape colons and commas as well") {
  CheckedScenario s{
      "C:a,b.yaml", std::nullopt, {{Severity::error, {"C:a,b.yaml", 0, 0}, "empty: a, b", ""}}, {}};
  CHECK(check_annotations(std::vector{s}) == "::error file=C%3Aa%2Cb.yaml::empty: a, b\n");
}

TEST_CASE("a file's name makes no line of its own in what check prints") {
  CheckedScenario s{"a\n::error::b\x1b.yaml", std::nullopt, {}, {}};
  CHECK_THAT(check_text(std::vector{s}),
             Catch::StartsWith("a\\n::error::b\\u001b.yaml: no expect lines\n"));
  s.file = "::error::b.yaml";
  CHECK_THAT(check_text(std::vector{s}), Catch::StartsWith("./::error::b.yaml: "));
  s.errors = {{Severity::error, {s.file, 3, 1}, "wrong", ""}};
  CHECK(check_annotations(std::vector{s}) ==
        "::error file=%3A%3Aerror%3A%3Ab.yaml,line=3,col=1::wrong\n");
}

TEST_CASE("the field names of `reckon check --format json` are the interface") {
  const auto j = nlohmann::ordered_json::parse(check_json(examples()));
  const auto names = [](const nlohmann::ordered_json& object) {
    std::vector<std::string> out;
    for (const auto& item : object.items()) out.push_back(item.key());
    return out;
  };
  using Names = std::vector<std::string>;
  CHECK(names(j) == Names{"schema_version", "command", "scenarios"});
  CHECK(names(j["scenarios"][0]) == Names{"file", "passed", "skipped", "expectations", "lock"});
  CHECK(names(j["scenarios"][0]["expectations"][0]) == Names{"text", "value", "passed", "cause"});
  CHECK(j["scenarios"][0]["passed"] == false);
  CHECK(j["scenarios"][0]["expectations"][0]["value"] == 148'320.0);
  CHECK(j["scenarios"][0]["expectations"][2]["value"].is_null());
  CHECK(j["scenarios"][1]["passed"] == false);
  CHECK(j["scenarios"][2]["passed"] == true);
  CHECK(j["scenarios"][3]["skipped"] == "needs a GPU");
}

TEST_CASE("measured values are printed in the unit of their metric") {
  const auto text = [](Metric metric, double value) {
    return value_text(expectation(metric, "x", value, true));
  };
  CHECK(text(Metric::time, 148'320) == "41.2 h");
  CHECK(text(Metric::step_seconds, 0.0679) == "67.9 ms");
  CHECK(text(Metric::cost, 1234.5) == "1,234.50 USD");
  CHECK(text(Metric::memory, 16.0 * 1073741824) == "16.0 GiB");
  CHECK(text(Metric::goodput, 0.9512) == "95.1 %");
  CHECK(text(Metric::step_mfu, 0.4) == "40.0 %");
  CHECK(text(Metric::step_share, 0.25) == "25.0 %");
  CHECK(text(Metric::samples_per_second, 72'397.4) == "72,397 samples/s");
  CHECK(text(Metric::samples_per_second, 162.25) == "162.2 samples/s");
  CHECK(text(Metric::tokens_per_second, 104'447.6) == "104,448 tokens/s");
  CHECK(text(Metric::interruptions, 0.445) == "0.445");
  CHECK(text(Metric::feasible, 0) == "false");
}
