#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run_reckon.h"

using namespace reckon::test;

namespace {

/// The row of a table that begins with the letter: hours, and USD, of its medians.
std::pair<double, double> medians_of_row(const std::string& table, char letter) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    double hours = 0, usd = 0;
    const std::string form =
        std::string("  ") + letter + " %lf h (%*f .. %*f) %lf USD (%*f .. %*f)";
    if (std::sscanf(line.c_str(), form.c_str(), &hours, &usd) == 2) return {hours, usd};
  }
  FAIL("no row " << letter << " in\n" << table);
  return {};
}

}  // namespace

TEST_CASE("one question under two autoscalers is one table, a row each, as each alone answers it") {
  const Workspace w;
  const std::string scenario = RECKON_SOURCE_DIR "/scenarios/karpenter-or-cluster-autoscaler.yaml";
  const std::string few = " --set forecast.replications=200";
  const Output text = w.run("compare " + scenario + few +
                            " --sweep cluster.autoscaler=cluster_autoscaler,karpenter");
  INFO(text.err << text.out);
  REQUIRE(text.code == 0);
  CHECK(contains(text.out,
                 "A  karpenter-or-cluster-autoscaler "
                 "cluster.autoscaler=cluster_autoscaler\n"));
  CHECK(contains(text.out, "B  karpenter-or-cluster-autoscaler cluster.autoscaler=karpenter\n"));
  CHECK(contains(text.out, "200 replications with common random numbers"));
  const std::size_t table = text.out.find("time ");
  REQUIRE(table != std::string::npos);
  const std::string header = text.out.substr(table, text.out.find('\n', table) - table);
  for (const char* column : {"time", "cost", "goodput"}) CHECK(contains(header, column));
  std::map<char, std::pair<double, double>> rows;
  for (const auto& [letter, autoscaler] :
       std::array{std::pair{'A', "cluster_autoscaler"}, std::pair{'B', "karpenter"}}) {
    INFO(autoscaler);
    rows[letter] = medians_of_row(text.out, letter);
    const Output alone = w.run("simulate " + scenario + few +
                               " --set cluster.autoscaler=" + autoscaler + " --format json");
    REQUIRE(alone.code == 0);
    const auto answer = nlohmann::json::parse(alone.out);
    const double hours = answer["time_seconds"]["p50"].get<double>() / 3600;
    const double usd = answer["cost_usd"]["p50"].get<double>();
    CHECK(rows[letter].first == Approx(hours).margin(0.051));  // as it is rounded there
    CHECK(rows[letter].second == Approx(usd).margin(0.51));
  }
  // Karpenter takes nodes on demand where spot is refused, the other waits a quarter of an hour.
  CHECK(rows['B'].first < rows['A'].first);
  CHECK(rows['B'].second > rows['A'].second);
}
