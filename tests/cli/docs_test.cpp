#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "cli/run_reckon.h"

// docs/commands/COMMAND.md and `reckon COMMAND --help` list the same options in the same words.
using namespace reckon::test;

namespace {

/// The lines of a list of options: "  --seed N   root of all randomness".
std::set<std::string> option_lines(const std::string& text) {
  std::set<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  --")) out.insert(line);
  return out;
}

/// The first word of each line of `reckon --help` between "Commands:" and the next empty line.
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> out;
  std::istringstream lines(help.substr(help.find("Commands:\n") + 10));
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != "help") out.push_back(name);
  }
  return out;
}

}  // namespace

TEST_CASE("each option of a command's help stands on its page, and each on the page in its help") {
  const Workspace w;
  const auto commands = commands_of(w.run("--help").out);
  CHECK(commands.size() >= 6);
  for (const std::string& command : commands) {
    INFO(command);
    const auto page = std::filesystem::path(RECKON_SOURCE_DIR "/docs/commands") / (command + ".md");
    REQUIRE(std::filesystem::exists(page));
    const auto in_help = option_lines(w.run(command + " --help").out);
    const auto on_page = option_lines(read_all(page));
    CHECK_FALSE(in_help.empty());
    for (const std::string& line : in_help) {
      INFO("missing on the page: " << line);
      CHECK(on_page.contains(line));
    }
    for (const std::string& line : on_page) {
      INFO("not in the help: " << line);
      CHECK(in_help.contains(line));
    }
  }
}
