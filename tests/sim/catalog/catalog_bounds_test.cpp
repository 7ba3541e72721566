#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "sim/catalog/catalog.h"

// What a catalog may hold at most: numbers that can be counted with, and files that are read in a
// time that grows with their size.
using namespace reckon;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// What is wrong with a user's catalog of one file, over ours.
Diagnostics problems_of(const std::string& file, const std::string& text) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "reckon-catalog-XXXXXX").string();
  REQUIRE(mkdtemp(directory.data()));
  std::ofstream(std::filesystem::path(directory) / file, std::ios::binary) << text;
  const std::array<std::filesystem::path, 2> layers{RECKON_SOURCE_DIR "/catalogs", directory};
  const auto loaded = load_catalog(layers);
  std::filesystem::remove_all(directory);
  return loaded ? Diagnostics{} : loaded.error();
}

std::string first_of(const Diagnostics& problems) {
  return problems.empty() ? "" : problems.front().what;
}

std::string price(const std::string& usd) {
  return "provider,region,item,covers,on_demand_usd_per_hour,date,zones,count\n"
         "gcp,us-central1,n1-standard-16,machine," +
         usd + ",2026-07-20,,\n";
}

}  // namespace

TEST_CASE("a price of the catalog has the bound of a scenario's") {
  CHECK(problems_of("prices.csv", price("1000000")).empty());
  const Diagnostics dear = problems_of("prices.csv", price("1e308"));
  REQUIRE(dear.size() == 1);
  CHECK(dear.front().at.line == 2);
  CHECK_THAT(dear.front().what,
             StartsWith("on_demand_usd_per_hour: '1e308' is more than 1,000,000 USD an hour"));
  CHECK_FALSE(problems_of("prices.csv", price("1000001")).empty());
  CHECK_THAT(first_of(problems_of("prices.csv", price("3 [1 1e300]"))),
             StartsWith("on_demand_usd_per_hour: '1e300' is more than"));
  CHECK_THAT(first_of(problems_of("storage_prices.csv",
                                  "provider,region,storage,usd_per_gb_month,date\n"
                                  "gcp,us-central1,gcs-standard,1e9,2026-07-20\n")),
             StartsWith("usd_per_gb_month: '1e9' is more than 1,000 USD"));
}

TEST_CASE("every quantity of a catalog has a bound that its message names") {
  const auto machine = [](const std::string& columns, const std::string& values) {
    return first_of(problems_of(
        "machines.csv", "provider,machine," + columns + "\ngcp,n1-standard-16," + values + "\n"));
  };
  CHECK_THAT(machine("network_gbps", "1e300"), Contains("is more than 10 PB/s"));
  CHECK_THAT(machine("memory_gib", "1e9"), Contains("is more than 1 PB"));
  CHECK_THAT(machine("accelerators", "100000"), Contains("is not between 0 and 1,024"));
  const auto operation = [](const std::string& group, const std::string& line) {
    return first_of(problems_of("operations.yaml", group + ":\n  " + line + "\n"));
  };
  CHECK_THAT(operation("job_start", "image_pull_s: 1e12"), Contains("is more than 100 years"));
  CHECK_THAT(operation("billing", "gke_management_usd_per_hour: 1e9"),
             Contains("is more than 1,000,000 USD an hour"));
  CHECK_THAT(operation("kubernetes", "job_backoff_limit_count: 1e12"),
             Contains("is more than 1e9"));
  CHECK_THAT(operation("framework", "reserve_bytes: 1e30"), Contains("is more than 1 PB"));
  CHECK_THAT(first_of(problems_of("accelerators.yaml", "T4:\n  peak: {fp16: 1e30 TFLOPS}\n")),
             Contains("is more than 1e9 TFLOPS"));
  CHECK_THAT(first_of(problems_of("datasets.yaml", "imagenet:\n  samples: 1e18\n")),
             Contains("is more than 1e15 samples"));
}

TEST_CASE("a table of a million columns is one mistake") {
  std::string header = "provider,machine";
  for (int k = 0; k < 1'000'000; ++k) header += fmt::format(",c{}", k);
  const Diagnostics problems = problems_of("machines.csv", header + "\n");
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems.front().what, StartsWith("1000002 columns: machines.csv has at most 14"));
}

TEST_CASE("a table of a million wrong rows is 200 mistakes and a word that there are more") {
  std::string text = "provider,machine,vcpus\n";
  for (int k = 0; k < 1'000'000; ++k) text += "gcp,n1-standard-1\n";
  const Diagnostics problems = problems_of("machines.csv", text);
  REQUIRE(problems.size() == 201);
  CHECK(problems[199].what == "2 fields in a table of 3 columns");
  CHECK(problems[200].what == "more than 200 mistakes");
}

TEST_CASE("a row of a million fields, and a line of megabytes, are shown by their beginning") {
  const Diagnostics wide =
      problems_of("machines.csv", "provider,machine\n" + std::string(1'000'000, ',') + "\n");
  REQUIRE(wide.size() == 1);
  CHECK(wide.front().what == "1000001 fields in a table of 2 columns");
  const Diagnostics longest =
      problems_of("machines.csv", "provider," + std::string(4'000'000, 'x') + "\n");
  REQUIRE_FALSE(longest.empty());
  for (const Diagnostic& d : longest) CHECK(d.what.size() < 600);
}

TEST_CASE("a YAML file of many keys is read in a time that grows with their number") {
  std::string many = "T4:\n";
  for (int k = 0; k < 300'000; ++k) many += fmt::format("  k{}: 1\n", k);
  CHECK_THAT(first_of(problems_of("accelerators.yaml", many)), Contains("has more than 1000 keys"));
  std::string entries;
  for (int k = 0; k < 100'000; ++k) entries += fmt::format("k{}: {{a: 1}}\n", k);
  CHECK_THAT(first_of(problems_of("links.yaml", entries)),
             Contains("links.yaml has more than 20000 entries"));
}
