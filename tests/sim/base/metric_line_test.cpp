#include "sim/base/text/metric_line.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("a line of Prometheus' text format is its name, labels and value") {
  const auto plain = metric_line_in("steps_total 12");
  REQUIRE(plain);
  CHECK(plain->name == "steps_total");
  CHECK(plain->labels.empty());
  CHECK(plain->value == "12");
  const auto labelled = metric_line_in(R"(loss{job="a", rank="3"} 0.5 1700000000000)"
                                       "\r");
  REQUIRE(labelled);
  CHECK(labelled->name == "loss");
  CHECK(labelled->label("job") == "a");
  CHECK(labelled->label("rank") == "3");
  CHECK(labelled->label("ank").empty());
  CHECK(labelled->value == "0.5");
}

TEST_CASE("a brace or a quote within a label's value ends no labels") {
  const auto line = metric_line_in(R"(x{pod="}\"{",up_to="4"} NaN)");
  REQUIRE(line);
  CHECK(line->label("up_to") == "4");
  CHECK(line->value == "NaN");
}

TEST_CASE("comments and lines that are cut off are no samples") {
  for (const char* text :
       {"# HELP x of it", "", "x", "x ", R"(x{a="1")", R"(x{a="1} 2)", R"(x{a="1"})"})
    CHECK_FALSE(metric_line_in(text));
}
