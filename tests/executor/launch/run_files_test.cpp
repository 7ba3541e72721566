#include "executor/launch/run_files.h"

#include <catch2/catch.hpp>

#include "executor/launch/run_folder.h"

// The directory of a run that is taken up.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

RunFilesOptions taken_up(const RunFolder& folder, const std::string& started) {
  RunFilesOptions options;
  options.directory.root = folder.path();
  options.earlier = Earlier::taken_up;
  options.started = started;
  options.plan = "the plan of " + started;
  return options;
}

std::string plan_in(const RunDirectory& directory) {
  std::ifstream file(directory.plan());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a directory with the records of another run is not taken up, and its plan stays") {
  const RunFolder folder;
  const std::string own = "2026-11-22T03:00:00.000Z", other = "2026-11-23T03:00:00.000Z";
  {
    RunFiles files(taken_up(folder, own));
    RunRecord run;
    run.started = own;
    files.measurements().append(run);
  }
  const RunDirectory directory{folder.path()};
  CHECK_THROWS_WITH(RunFiles(taken_up(folder, other)),
                    Contains(folder.path().string() + " holds the records of another run") &&
                        Contains("--out names another directory"));
  CHECK_THROWS_WITH(refuse_other_run(directory, other), Contains("another run"));
  CHECK(plan_in(directory) == "the plan of " + own);
  refuse_other_run(directory, own);
  CHECK(RunFiles(taken_up(folder, own)).before().runs.size() == 1);
}

TEST_CASE("a directory without records is anybody's") {
  const RunFolder folder;
  refuse_other_run({folder.path()}, "2026-11-22T03:00:00.000Z");
  CHECK(RunFiles(taken_up(folder, "2026-11-22T03:00:00.000Z")).before().runs.empty());
}
