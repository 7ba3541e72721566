#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "report/accuracy/efficiencies_csv.h"
#include "sim/accuracy/scoring/fit/fit.h"
#include "sim/base/mapped_file.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

const std::filesystem::path kCatalogs = std::filesystem::path(RECKON_SOURCE_DIR) / "catalogs";

/// The runs of `make fit`.
std::vector<PublishedRun> shipped_evidence(TextPool& texts) {
  std::vector<PublishedRun> runs;
  const auto keep = [&](const PublishedRun& r) { runs.push_back(r); };
  for (const char* name : {"evidence/training_runs.csv", "evidence/megatron_lm_steps.csv"}) {
    const MappedFile file((kCatalogs / name).string());
    REQUIRE(read_published_runs(name, file.bytes(), {}, texts, keep));
  }
  const MappedFile file((kCatalogs / "self-check/vtrain_single.csv").string());
  REQUIRE(read_vtrain_runs("vtrain_single.csv", file.bytes(), texts, keep));
  return runs;
}

}  // namespace

TEST_CASE("the shipped efficiencies are the fit to the shipped evidence, catalog and zoo") {
  TextPool texts;
  const auto runs = shipped_evidence(texts);
  CHECK(runs.size() > 6000);
  const MappedFile fitted((kCatalogs / "efficiencies.csv").string());
  INFO("what the fit depends on has changed since it was made: run `make fit`");
  CHECK(digest_of_efficiencies(fitted.bytes()) ==
        EfficiencyFit(runs, test::shipped_catalog()).inputs_digest());
}
