#include <catch2/catch.hpp>

#include "cli/options/shared.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"

using namespace reckon;
using namespace reckon::cli;

namespace {

struct SampleOptions : Files, AnswerFormat, Sampling, ScenarioChanges {
  int worst = 3;
  std::optional<Seconds> limit;
  bool force = false;
  std::string plot;

  std::vector<Option> declared() {
    return {format_option(),
            seed_option(),
            set_option(),
            {{"worst", "N", "rows"}, whole(worst, 1, 50)},
            {{"limit", "DURATION", "at most"}, duration(limit)},
            {{"force", "", "all the same"}, given(force)},
            {{"plot", "FILE", "a picture"}, file_name(plot)}};
  }
};

SampleOptions read(const std::vector<std::string>& words) {
  SampleOptions options;
  REQUIRE(read_words(options.declared(), options.files, words));
  return options;
}

/// What is wrong with them: the message, then the lines below it.
std::string refused(const std::vector<std::string>& words) {
  SampleOptions options;
  try {
    read_words(options.declared(), options.files, words);
  } catch (const UsageErrorWithHint& e) {
    return e.what() + std::string("\n") + e.hint;
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("options fill the fields that they are bound to, and leave the defaults of the others") {
  const SampleOptions o = read({"a.yaml", "--worst", "7", "--format=json", "--set", "a=1",
                                "--force", "--limit", "2min", "b.yaml", "--set", "b=2"});
  CHECK(o.files == std::vector<std::string>{"a.yaml", "b.yaml"});
  CHECK(o.worst == 7);
  CHECK(o.format == OutputFormat::json);
  CHECK(o.overrides == std::vector<std::string>{"a=1", "b=2"});
  CHECK(o.force);
  CHECK(o.limit == Seconds{120});
  CHECK_FALSE(o.seed);
  const SampleOptions none = read({});
  CHECK(none.worst == 3);
  CHECK_FALSE(none.force);
  CHECK(none.format == OutputFormat::table);
}

TEST_CASE("all that is wrong with a command line is told at once") {
  CHECK(refused({"--wrost", "7", "--format", "jsno", "--limit", "-3s", "--worst", "51", "--seed",
                 "1", "--seed", "2", "--plot", ""}) ==
        "unknown option '--wrost'; did you mean '--worst'?\n"
        "--format takes table or json, not 'jsno'; did you mean 'json'?\n"
        "--seed is given 2 times\n"
        "--worst takes a whole number from 1 to 50, not '51'\n"
        "--limit is negative\n"
        "--plot needs the name of a file");
}

TEST_CASE("help is asked for by either name, and nothing is judged then") {
  SampleOptions options;
  for (const char* word : {"--help", "-h"})
    CHECK_FALSE(read_words(options.declared(), options.files,
                           std::vector<std::string>{"--worst", "many", word}));
  CHECK(options.worst == 3);
}

TEST_CASE("help shows the words of an enum from its table") {
  SampleOptions options;
  const std::string text = describe(option_texts(options.declared()), 24);
  CHECK(text.starts_with("  --format table|json      output format (table)\n"));
  CHECK(text.find("  --force                  all the same\n") != std::string::npos);
}

TEST_CASE("words that give an option are found again, in one form") {
  SampleOptions options;
  const std::vector<std::string> names{"limit", "force", "worst"};
  CHECK(words_that_give(names, options.declared(),
                        std::vector<std::string>{"--worst=7", "x.yaml", "--limit", "2min",
                                                 "--force", "--seed", "1"}) ==
        std::vector<std::string>{"--limit", "2min", "--force", "--worst", "7"});
}
