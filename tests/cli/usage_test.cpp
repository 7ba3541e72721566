#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "cli/run_reckon.h"

using namespace reckon::test;

TEST_CASE("help lists the commands with an example and exits with 0") {
  const Workspace w;
  for (const char* arguments : {"--help", "-h", "help"}) {
    const Output r = w.run(arguments);
    INFO(arguments);
    CHECK(r.code == 0);
    CHECK(contains(r.out, "simulate"));
    CHECK(contains(r.out, "check"));
    CHECK(contains(r.out, "Example:"));
    CHECK(r.err.empty());
  }
}

TEST_CASE("the help of a command shows its options and examples, both ways") {
  const Workspace w;
  const Output r = w.run("help simulate");
  CHECK(r.code == 0);
  for (const char* option : {"--format", "--trace", "--seed", "--replications", "--set", "--engine",
                             "--catalog", "--threads"})
    CHECK(contains(r.out, option));
  CHECK(contains(r.out, "Examples:"));
  CHECK(w.run("simulate --help").out == r.out);
  CHECK(contains(w.run("check --help").out, "--junit"));
}

TEST_CASE("reckon alone prints four questions, each with a command that there is") {
  const Workspace w;
  const Output r = w.run("");
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  const auto count = [&](char of) { return std::count(r.out.begin(), r.out.end(), of); };
  CHECK(count('?') == 4);
  std::size_t commands = 0;
  for (std::size_t at = 0; (at = r.out.find("\n  reckon ", at)) != std::string::npos; ++at) {
    const std::size_t begin = at + 10;
    const std::string name = r.out.substr(begin, r.out.find(' ', begin) - begin);
    INFO(name);
    CHECK(w.run("help " + name).code == 0);
    ++commands;
  }
  CHECK(commands >= 4);
}

TEST_CASE("the version is one line, with the commit and the catalog's newest day") {
  const Workspace w;
  const Output r = w.run("--version");
  CHECK(r.code == 0);
  CHECK_THAT(r.out,
             Catch::Matchers::Matches("reckon [0-9]+\\.[0-9]+\\.[0-9]+ \\((commit [0-9a-f]{12}, )?"
                                      "catalog of 20[0-9]{2}-[0-9]{2}-[0-9]{2}\\)\n"));
  // It is asked where nothing else works, too.
  const Output bare = w.run("--version", "RECKON_CATALOGS=/nowhere");
  CHECK(bare.code == 0);
  CHECK(bare.out.starts_with("reckon "));
  CHECK_FALSE(contains(bare.out, "catalog"));
}

TEST_CASE("an unknown command or option exits with 2 and names the one that was meant") {
  const Workspace w;
  Output r = w.run("simulat x.yaml");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK(contains(r.err, "unknown command 'simulat'; did you mean 'simulate'?"));
  r = w.run("simulate x.yaml --fromat json --sed 1");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "unknown option '--fromat'; did you mean '--format'?"));
  CHECK(contains(r.err, "unknown option '--sed'; did you mean '--seed'?"));
  r = w.run("--verison");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "did you mean '--version'?"));
}

TEST_CASE("values of options are checked before anything runs") {
  const Workspace w;
  const std::string file = w.write("a.yaml", kScenario);
  const auto refused = [&](const std::string& options, const std::string& message) {
    const Output r = w.run("simulate a.yaml " + options);
    INFO(options << "\n" << r.err);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK(contains(r.err, message));
  };
  refused("--replications 0", "--replications takes a whole number from 1");
  refused("--replications many", "not 'many'");
  refused("--seed -1", "--seed takes a whole number from 0");
  refused("--format jsno", "--format takes table or json, not 'jsno'; did you mean 'json'?");
  refused("--engine flud", "did you mean 'fluid'?");
  refused("--seed 1 --seed 2", "--seed is given 2 times");
  refused("--rep 5",
          "unknown option '--rep'");  // no abbreviations: a new option would change their meaning
  refused("--seed", "--seed");
  refused("b.yaml", "one scenario file");
  CHECK(w.run("simulate").code == 2);
}

TEST_CASE("an output that cannot be written is a failure of the environment") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --trace missing/directory/trace.json");
  CHECK(r.code == 3);
  CHECK(contains(r.err, "cannot write missing/directory/trace.json"));
}

TEST_CASE("missing catalogs are a failure of the environment") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml", "RECKON_CATALOGS=/nowhere/at/all");
  CHECK(r.code >= 2);
  CHECK(contains(r.err, "/nowhere/at/all"));
}

TEST_CASE("a reader that goes away ends the output quietly") {
  const Workspace w;
  CHECK(std::system(("cd '" + w.path("").string() +
                     "' && { '" RECKON_BINARY_DIR
                     "/bin/reckon' --help; echo $? >code.txt; } 2>err.txt | true")
                        .c_str()) == 0);
  CHECK(read_all(w.path("err.txt")).empty());
  CHECK(read_all(w.path("code.txt")) == "0\n");
}
