#include "cli/run_reckon.h"

#include <catch2/catch.hpp>

#include "support/skip.h"

// docs/schema: what `--format json` prints, for programs that read it.
using namespace reckon::test;

TEST_CASE("every output of --format json fits its schema, and every such command has one") {
  const Workspace w;
  const Output r =
      w.run_shell("'" RECKON_SOURCE_DIR "/scripts/schemas' --bin '" RECKON_BINARY_DIR "/bin'");
  if (r.code == 77) skip_test("python3-jsonschema is not installed");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
}
