#include "sim/scenario/sweep.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

std::vector<std::string> values(std::string_view text) {
  const auto axis = parse_sweep("a.b=" + std::string(text));
  INFO(text << (axis ? "" : ": " + axis.error()));
  REQUIRE(axis);
  CHECK(axis->path == "a.b");
  return axis->values;
}
using Values = std::vector<std::string>;

}  // namespace

TEST_CASE("a sweep's range doubles and ends at its end") {
  CHECK(values("8..64") == Values{"8", "16", "32", "64"});
  CHECK(values("8..50") == Values{"8", "16", "32", "50"});
  CHECK(values("3..3") == Values{"3"});
  CHECK(values("0..4") == Values{"0", "1", "2", "4"});
  CHECK(values("2h..16h") == Values{"2h", "4h", "8h", "16h"});
  CHECK(values("2..8GiB") == Values{"2GiB", "4GiB", "8GiB"});
}

TEST_CASE("a sweep's range with a step is linear and never passes its end") {
  CHECK(values("8..64..16") == Values{"8", "24", "40", "56"});
  CHECK(values("0.1..0.3..0.1") == Values{"0.1", "0.2", "0.3"});
  CHECK(values("10min..30min..10min") == Values{"10min", "20min", "30min"});
}

TEST_CASE("a sweep's list keeps commas that belong to a value") {
  CHECK(values("8,16,32") == Values{"8", "16", "32"});
  CHECK(values("spot,on_demand") == Values{"spot", "on_demand"});
  CHECK(values("{min: 1, max: 2},{min: 1, max: 4}") ==
        Values{"{min: 1, max: 2}", "{min: 1, max: 4}"});
  CHECK(values("'a,b',c") == Values{"'a,b'", "c"});
  CHECK(values("../data/a.csv") == Values{"../data/a.csv"});
}

TEST_CASE("what is no sweep is refused with an example") {
  for (const char* text :
       {"a.b", "=1..2", "a=", "a=1,,2", "a=8..", "a=..8", "a=64..8", "a=1..8..0", "a=1..8..-1",
        "a=1h..8min", "a=x..y", "a=1..1000000000..0.5", "a=1..2..3..4"}) {
    const auto axis = parse_sweep(text);
    INFO(text);
    REQUIRE_FALSE(axis);
    CHECK(axis.error().find("example: --sweep ") != std::string::npos);
  }
}

TEST_CASE("the points of a sweep are all combinations, the last axis fastest") {
  const std::vector<SweepAxis> axes{{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
  const auto points = sweep_points(axes);
  REQUIRE(points.size() == 6);  // 2 x 3
  CHECK(points[0] == Values{"1", "x"});
  CHECK(points[1] == Values{"1", "y"});
  CHECK(points[5] == Values{"2", "z"});
}
