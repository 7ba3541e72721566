#include <catch2/catch.hpp>

#include "sim/step/network/referee.h"
#include "support/network_cases.h"

using namespace reckon;
using Catch::Contains;

namespace {

/// A question too long for a pipe's buffer, so that one side blocks if the other does not read.
cases::Case long_question() { return cases::anything(30, 500, 3000, 3); }

}  // namespace

TEST_CASE("a referee that is not there is reported with its name and how to get it") {
  CHECK_THROWS_WITH(make_referee_network("/nonexistent/reckon-referee"),
                    Contains("cannot run '/nonexistent/reckon-referee': No such file") &&
                        Contains("libsimgrid-dev"));
}

TEST_CASE("a referee that fails, answers nothing or answers nonsense is reported as such") {
  const cases::Case c = long_question();
  CHECK_THROWS_WITH(make_referee_network("/bin/false")->run(c.network, c.graph),
                    Contains("ended with exit code 1"));
  CHECK_THROWS_WITH(make_referee_network("/bin/true")->run(c.network, c.graph),
                    Contains("lacks 'reckon-network-answer-1'"));
  CHECK_THROWS_WITH(make_referee_network("/bin/cat")->run(c.network, c.graph),
                    Contains("lacks 'reckon-network-answer-1'"));
}

TEST_CASE("a question goes through text and back without loss") {
  const cases::Case c = long_question();
  const std::string text = write_question(c.network, c.graph);
  const NetworkQuestion read = read_question(text);
  CHECK(write_question(read.network, read.graph) == text);
  const auto model = make_fluid_network();
  CHECK(model->run(read.network, read.graph) == model->run(c.network, c.graph));
}

TEST_CASE("an answer goes through text and back without loss") {
  const std::vector<Seconds> finish{Seconds{0}, Seconds{0.1}, Seconds{1.0 / 3}, Seconds{4.9e-324},
                                    Seconds{1e300}};
  CHECK(read_answer(write_answer(finish)) == finish);
}

TEST_CASE("a question that is cut short or holds impossible numbers is refused") {
  const std::string start = "reckon-network-question-1 links 1 5 paths 1 1 0 activities ";
  CHECK_NOTHROW(read_question(start + "1 0 8 0 0 1 0 end"));
  CHECK_THROWS_WITH(read_question(start + "1 0 8 0"), Contains("in place of a number"));
  CHECK_THROWS_WITH(read_question(start + "1 0 nan 0 0 1 0 end"), Contains("nan for an amount"));
  CHECK_THROWS_WITH(read_question(start + "1 0 8 7 0 1 0 end"), Contains("index 7 of 1"));
  CHECK_THROWS_WITH(read_question(start + "1 0 8 0 0 1 1 0 end"), Contains("index 0 of 0"));
  CHECK_THROWS_WITH(read_question(start + "1 0 8 0 0 1 0"), Contains("lacks 'end'"));
}
