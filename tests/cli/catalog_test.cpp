#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using nlohmann::json;

namespace {

json rows_of(const std::string& text, const std::string& title) {
  const json parsed = json::parse(text);
  for (const json& table : parsed["tables"])
    if (table["title"] == title) return table["rows"];
  return json::array();
}

}  // namespace

TEST_CASE("catalog list names the kinds with their counts") {
  const Workspace w;
  const Output r = w.run("catalog list --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json rows = rows_of(r.out, "");
  CHECK(rows.size() == 19);
  CHECK(rows[0]["kind"] == "providers");
  const auto kind = [&](const char* name) {
    return *std::ranges::find_if(rows, [&](const json& row) { return row["kind"] == name; });
  };
  CHECK(kind("accelerators")["entries"] >= 55);
}

TEST_CASE("catalog list filters by words, whatever their case") {
  const Workspace w;
  const Output r = w.run("catalog list machines GCP n1-standard --format json");
  REQUIRE(r.code == 0);
  const json rows = rows_of(r.out, "");
  REQUIRE(rows.size() == 8);  // 1 to 96 vCPUs, in this order
  CHECK(rows[1]["name"] == "n1-standard-2");
  CHECK(rows[4]["name"] == "n1-standard-16");
  CHECK(rows[4]["vcpus"] == 16);
  CHECK(rows[4]["gib"] == 60.0);
}

TEST_CASE("catalog show prints every number with unit, source and date") {
  const Workspace w;
  const Output r = w.run("catalog show nvidia-tesla-p100 --format json");
  REQUIRE(r.code == 0);
  const json numbers = rows_of(r.out, "numbers");
  CHECK(numbers[0]["number"] == "peak fp32");
  CHECK(numbers[0]["value"] == Approx(9.526));
  CHECK(numbers[0]["unit"] == "TFLOPS");
  CHECK(numbers[0]["source"] == "spec-db");
  CHECK(numbers[0]["date"] == "2026-11-21");
  bool price = false;
  for (const json& row : rows_of(r.out, "prices"))
    price = price || (row["region"] == "us-central1" && row["usd/h"] == "1.4600");
  CHECK(price);
  const Output table = w.run("catalog show P100-PCIE-16");
  CHECK(contains(table.out, "counts that a machine may carry"));
  CHECK(contains(table.out, "us-central1-c"));
}

TEST_CASE("catalog show knows custom machines and prices that follow from others") {
  const Workspace w;
  const Output custom = w.run("catalog show custom-24-98304");
  CHECK(custom.code == 0);
  CHECK(contains(custom.out, "machine custom-24-98304 of gcp: 24 vCPUs"));
  CHECK(contains(custom.out, "1.2230"));  // 24 x 0.033174 + 96 x 0.004446
  const Output scaled = w.run("catalog show Standard_NC12s_v3");
  CHECK(contains(scaled.out, "2 x Standard_NC6s_v3"));
  const Output tier = w.run("catalog show STANDARD_1");
  CHECK(contains(tier.out, "parameter_server"));
  CHECK(contains(tier.out, "n1-highcpu-8"));
}

TEST_CASE("unknown names, kinds and actions exit with 2 and name what was probably meant") {
  const Workspace w;
  Output r = w.run("catalog show P100-PCIE-17");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "did you mean 'P100-PCIE-16'?"));
  r = w.run("catalog list machins");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "did you mean 'machines'?"));
  r = w.run("catalog lst");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "did you mean 'list'?"));
  CHECK(w.run("catalog").code == 2);
}

TEST_CASE("catalog check reports every mistake of a layer at its place") {
  const Workspace w;
  w.write("mine/machines.csv",
          "provider,machine,vcpus,memory_gib,network_gbps\ngcp,big,0,60,10\ngcp,wide,4,x,10\n");
  w.write("mine/labels.yaml", "gke:\n  taints: {gpu: nvidia.com/gpu}\n");
  const Output r = w.run("catalog check mine");
  CHECK(r.code == 2);
  INFO(r.err);
  CHECK(contains(r.err, "machines.csv:2:"));
  CHECK(contains(r.err, "machines.csv:3:"));
  CHECK(contains(r.err, "labels.yaml:2:"));
  CHECK(contains(r.err, "'nvidia.com/gpu' is not a taint"));
  CHECK(w.run("catalog check").code == 0);
  CHECK(w.run("catalog check nowhere").code == 2);
}
