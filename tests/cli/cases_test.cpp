#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <sstream>

#include "cli/run_reckon.h"

// docs/cases: the commands that they show can be typed.
using namespace reckon::test;
namespace fs = std::filesystem;

namespace {

/// What stands behind "reckon " on a line of its own, behind "$ ", or between backticks.
std::vector<std::string> commands_in(const std::string& page) {
  static const std::regex kCommand("(?:^|\n)(?:\\$ )?reckon ([^\n]+)|`reckon ([^`\n]+)`");
  std::vector<std::string> out;
  for (std::sregex_iterator at(page.begin(), page.end(), kCommand), end; at != end; ++at)
    out.push_back((*at)[1].matched ? (*at)[1].str() : (*at)[2].str());
  return out;
}

}  // namespace

TEST_CASE("the commands of the case studies name options, commands and scenarios that exist") {
  const Workspace w;
  std::map<std::string, std::string> help;
  int pages = 0;
  for (const auto& entry : fs::directory_iterator(RECKON_SOURCE_DIR "/docs/cases")) {
    INFO(entry.path().string());
    ++pages;
    const auto commands = commands_in(read_all(entry.path()));
    CHECK(commands.size() >= 3);
    for (const std::string& command : commands) {
      INFO(command);
      std::istringstream words(command);
      std::string name;
      words >> name;
      if (!help.contains(name)) {
        const Output shown = w.run(name + " --help");
        REQUIRE(shown.code == 0);
        help[name] = shown.out;
      }
      for (std::string word; words >> word;) {
        if (word == "..." || word.find('\'') != std::string::npos) break;  // shortened on the page
        if (word.starts_with("--")) CHECK(help[name].find("  " + word + " ") != std::string::npos);
        if (word.starts_with("scenarios/")) CHECK(fs::exists(fs::path(RECKON_SOURCE_DIR) / word));
      }
    }
  }
  CHECK(pages == 5);
}

TEST_CASE("a case study's question is one that can be planned") {
  const Workspace w;
  const Output planned = w.run("plan " RECKON_SOURCE_DIR
                               "/scenarios/llama3-8b-zero3.yaml --accelerator h100 --nodes 1..2 "
                               "--pricing spot --strategy sharded --deadline 12h@95% "
                               "--replications 20");
  INFO(planned.err);
  CHECK(planned.code == 0);
}
