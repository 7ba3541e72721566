#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/scenario/plan.h"
#include "sim/scenario/resolve/serving.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Every file of tests/scenarios_bad/ holds, in the comments it begins with, exactly the diagnostics
// it must give: `# expect: LINE:COL: error: text`, in any order, without hints; `# expect: error:
// text` where the whole file is meant. A file that reads without an error goes on to make_plan with
// the repository's catalogs.
using namespace reckon;

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<std::string> expected(const std::string& text) {
  constexpr std::string_view kMark = "# expect: ";
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("#");)
    if (line.starts_with(kMark)) out.push_back(line.substr(kMark.size()));
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> found(const Diagnostics& diagnostics, const std::string& file) {
  std::vector<std::string> out;
  for (Diagnostic d : diagnostics) {
    CHECK(d.at.file == file);
    d.at.file.clear();
    d.hint.clear();
    const std::string place = d.at.line > 0 ? fmt::format("{}:{}: ", d.at.line, d.at.column) : "";
    d.at = {};
    out.push_back(place + format(d));
  }
  std::ranges::sort(out);
  return out;
}

const Expected<Catalog>& catalog() {
  static const Expected<Catalog> loaded = [] {
    const std::vector<std::filesystem::path> layers{RECKON_SOURCE_DIR "/catalogs"};
    return load_catalog(layers);
  }();
  return loaded;
}

Diagnostics diagnostics_of(const std::filesystem::path& file) {
  const auto scenario = read_scenario(file);
  if (!scenario) return scenario.error();
  REQUIRE(catalog());
  if (scenario->scenario.serving) {
    const auto serving = make_serving_plan(*scenario, *catalog());
    return serving ? Diagnostics{} : serving.error();
  }
  const auto plan = make_plan(*scenario, *catalog());
  return plan ? Diagnostics{} : plan.error();
}

}  // namespace

TEST_CASE("every bad scenario gives exactly the diagnostics that its first lines expect") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/tests/scenarios_bad")) {
    INFO(entry.path().filename().string());
    CHECK(entry.path().extension() == ".yaml");  // no file goes unread
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  CHECK(files.size() >= 40);
  for (const auto& file : files) {
    INFO(file.filename().string());
    const std::vector<std::string> wanted = expected(text_of(file));
    CHECK_FALSE(wanted.empty());
    CHECK(found(diagnostics_of(file), file.string()) == wanted);
  }
}
