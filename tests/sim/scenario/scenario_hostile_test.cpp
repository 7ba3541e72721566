#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "sim/base/random.h"
#include "sim/scenario/scenario_texts.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Input that nobody writes on purpose, or somebody does: it must end in diagnostics, soon.
using namespace reckon;
using namespace reckon::testing;

namespace {

std::string errors(std::string_view text) {
  const auto file = parse_scenario(text, "s.yaml");
  return file ? "" : format(file.error());
}

/// A path of its own below the build folder, removed at the end.
struct TemporaryFile {
  std::filesystem::path path = std::filesystem::path(RECKON_BINARY_DIR) /
                               ("scenario_hostile_" + std::to_string(::getpid()) + ".yaml");
  explicit TemporaryFile(std::string_view text) { std::ofstream(path, std::ios::binary) << text; }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

constexpr Purpose kMutation{"scenario_mutation"};

std::size_t below(RandomStream& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

/// One to four edits: bytes and pieces are removed, repeated, replaced by what YAML and units are
/// made of.
std::string mutated(std::string text, RandomStream& random) {
  constexpr std::string_view kPieces[] = {
      "- ",    ": ", "\n",    "  ",   "{",    "}",    "[",       "]",    "\"",
      "'",     "!",  "&a ",   "*a",   "#",    "|",    ">",       "%",    "---\n",
      "...\n", "? ", "~",     "null", "-1",   "0",    "1e308",   ".nan", "9999999999999999999999",
      "8h",    "%",  "\t",    "\r",   "\xff", "\xc3", "!trace ", "<<: ", "name",
      "@",     "..", "USD/h", "(",    ")",    "<=",   ","};
  const std::size_t edits = 1 + below(random, 4);
  for (std::size_t i = 0; i < edits; ++i) {
    const std::size_t at = below(random, text.size() + 1);
    const std::size_t length = below(random, 12);
    switch (below(random, 4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(random, std::size(kPieces))]);
        break;
      case 2:
        text.insert(at, text.substr(below(random, text.size() + 1), 4 * length));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(random, 256));
    }
  }
  return text;
}

}  // namespace

TEST_CASE("texts mutated from good scenarios are read or refused with a place, never more") {
  const std::string_view seeds[] = {kSmall, kServers, kJobs, kTrace};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  int read = 0, refused = 0;
  // The clock bounds the number of cases on slow machines only; case k is the same text everywhere.
  for (std::uint32_t k = 0; k < 2000 && std::chrono::steady_clock::now() < end; ++k) {
    RandomStream random(20261121, k, kMutation, 0);
    const std::string text = mutated(std::string(seeds[k % 4]), random);
    const auto file = parse_scenario(text, "s.yaml");
    if (file) {
      ++read;
      continue;
    }
    ++refused;
    INFO(text);
    REQUIRE_FALSE(file.error().empty());
    for (const Diagnostic& d : file.error()) {
      REQUIRE(d.at.file == "s.yaml");
      REQUIRE_FALSE(d.what.empty());
      REQUIRE(d.what.find('\n') == std::string::npos);
    }
  }
  CHECK(read > 0);
  CHECK(refused > read);
}

TEST_CASE("a scenario cut off at any byte is read or refused, never more") {
  for (std::size_t n = 0; n < kServers.size(); n += 7) {
    const auto file = parse_scenario(kServers.substr(0, n), "s.yaml");
    if (!file) CHECK_FALSE(file.error().empty());
  }
}

TEST_CASE("a missing file, a directory and a file that is too large are named") {
  const std::string missing = RECKON_BINARY_DIR "/no-such-scenario.yaml";
  CHECK(format(read_scenario(missing).error()) == missing + ": error: there is no such file\n");
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(RECKON_BINARY_DIR);
  const std::string elsewhere = format(read_scenario("scenarios/tpu-v2-8.yaml").error());
  std::filesystem::current_path(here);
  CHECK(elsewhere.starts_with("scenarios/tpu-v2-8.yaml: error: there is no such file\n"));
  CHECK(elsewhere.ends_with(RECKON_SOURCE_DIR "/scenarios/tpu-v2-8.yaml\n"));
  CHECK(format(read_scenario(RECKON_BINARY_DIR).error()) == RECKON_BINARY_DIR
        ": error: this is a directory, not a scenario file\n");
  const TemporaryFile huge(std::string((4 << 20) + 1, '#'));
  CHECK(format(read_scenario(huge.path).error()) ==
        huge.path.string() +
            ": error: the file has 4194305 bytes\n    a scenario has at most 4 MiB\n");
}

TEST_CASE("a file is read as its text is, relative paths from its folder") {
  const TemporaryFile file(kSmall);
  const auto read = read_scenario(file.path);
  REQUIRE(read);
  CHECK(read->scenario.name == "small");
  CHECK(read->directory == std::filesystem::path(RECKON_BINARY_DIR));
  CHECK(read->places.find("name").file == file.path.string());
}

TEST_CASE("line ends of Windows and a byte order mark change nothing") {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : kServers) text += c == '\n' ? "\r\n" : std::string(1, c);
  const auto file = parse_scenario(text, "s.yaml");
  if (!file) FAIL(format(file.error()));
  CHECK(file->scenario.cluster.pools.size() == 2);
  CHECK(file->places.find("name").line == 2);
}

TEST_CASE("a file of many mistakes shows the first 200") {
  std::string text(kSmall);
  for (int i = 0; i < 5000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const auto file = parse_scenario(text, "s.yaml");
  REQUIRE_FALSE(file);
  CHECK(file.error().size() == 201);
  CHECK(file.error().back().what == "more than 200 mistakes");
}

TEST_CASE("text that grows quadratically elsewhere is read or refused in seconds") {
  std::string rates = std::string(kSmall) + "prices:\n  rates:\n";
  for (int i = 0; i < 20000; ++i) rates += "    machine-" + std::to_string(i) + ": 1 USD/h\n";
  const auto many = parse_scenario(rates, "s.yaml");
  REQUIRE(many);
  CHECK(many->scenario.prices->rates.size() == 20000);
  CHECK_FALSE(errors(std::string(kSmall) + "expect: [" + std::string(200000, '[')).empty());
  CHECK_FALSE(errors("a: " + std::string(1000000, '{')).empty());
  std::string steps;
  for (std::size_t i = 0; i < 2000; ++i) steps += std::string(i, ' ') + "a:\n";
  CHECK(errors(steps).find("nested more than 32") != std::string::npos);
  CHECK_FALSE(errors(std::string(1000000, '-')).empty());
  CHECK_FALSE(errors(std::string(100000, '?')).empty());
  std::string values = "a: [";
  for (int i = 0; i < 60000; ++i) values += "1,";
  CHECK(errors(values + "]").find("more than 50000 values") != std::string::npos);
  CHECK(errors("name: " + std::string(3000000, 'x') + "\n").find("needs 'cluster'") !=
        std::string::npos);
}
