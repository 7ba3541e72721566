#include "sim/base/diagnostic.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("a diagnostic prints its place, what is wrong and the hint below it") {
  const Diagnostic d{
      Severity::error, {"spot.yaml", 14, 7}, "unknown key 'acceleratr'", "one of: a\nor b"};
  CHECK(format(d) == "spot.yaml:14:7: error: unknown key 'acceleratr'\n    one of: a\n    or b");
  CHECK(format(Diagnostic{Severity::warning, {"x.yaml", 0, 0}, "empty file", ""}) ==
        "x.yaml: warning: empty file");
}

TEST_CASE("diagnostics are printed in order of place") {
  CHECK(format(Diagnostics{{Severity::error, {"a", 9, 1}, "second", ""},
                           {Severity::error, {"a", 2, 1}, "first", ""}}) ==
        "a:2:1: error: first\na:9:1: error: second\n");
}

TEST_CASE("the nearest candidate is suggested, and none when nothing is near") {
  const std::vector<std::string> keys{"accelerator", "machine", "nodes", "parameter_servers"};
  CHECK(nearest("acceleratr", keys) == "accelerator");
  CHECK(nearest("ndoes", keys) == "nodes");  // a swap is one mistake
  CHECK(nearest("Parameter-Servers", keys) == "parameter_servers");
  CHECK(nearest("quota", keys).empty());
  CHECK(nearest("", keys).empty());
  CHECK(nearest(std::string(10'000, 'a'), keys).empty());
  CHECK(did_you_mean("machin", keys) == "; did you mean 'machine'?");
}
