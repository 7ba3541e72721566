#include <catch2/catch.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;

namespace {

/// What bash offers behind these words, one a line; the last word is the one being completed.
std::string offered(const Workspace& w, const std::string& words) {
  w.write("completion.bash", w.run("completion bash").out);
  w.write("ask.bash", "source ./completion.bash\nCOMP_WORDS=(" + words +
                          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_reckon\n"
                          "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const std::string command = "cd '" + w.path("").string() + "' && bash ask.bash >offered.txt 2>&1";
  CHECK(std::system(command.c_str()) == 0);
  return read_all(w.path("offered.txt"));
}

}  // namespace

TEST_CASE("bash completes commands, options and the words of an option") {
  const Workspace w;
  CHECK(contains(offered(w, "reckon sim"), "simulate\n"));
  CHECK(offered(w, "reckon simulate --rep") == "--replications\n");
  CHECK(offered(w, "reckon simulate --format ''") == "table\njson\n");
  CHECK(offered(w, "reckon check --annotations g") == "github\n");
  CHECK(offered(w, "reckon completion z") == "zsh\n");
  CHECK(contains(offered(w, "reckon help ''"), "doctor\n"));
}

TEST_CASE("bash completes files where a file is meant") {
  const Workspace w;
  w.write("spot.yaml", "");
  CHECK(offered(w, "reckon simulate spo") == "spot.yaml\n");
  CHECK(offered(w, "reckon simulate a.yaml --trace spo") == "spot.yaml\n");
  CHECK(offered(w, "reckon simulate a.yaml --seed spo") == "\n");  // a number
}

TEST_CASE("completion for a shell that it does not know names those that it does") {
  const Workspace w;
  const Output r = w.run("completion bsh");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "no completion for the shell 'bsh'; did you mean 'bash'?"));
  CHECK(w.run("completion").code == 2);
  CHECK(contains(w.run("completion zsh").out, "#compdef reckon"));
}
