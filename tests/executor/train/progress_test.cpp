#include <catch2/catch.hpp>
#include <cmath>

#include "executor/train/records/progress.h"

namespace reckon {
namespace {

TEST_CASE("a progress report is read as it was written, and nothing else is read as one") {
  const ProgressReport done{17, ProgressPhase::done, Seconds{0.1}, 256, 2.302585092994046, {}};
  CHECK(to_line(done) == "17 done 0.1 256 2.302585092994046\n");
  const auto read = parse_progress(to_line(done));
  REQUIRE(read);
  CHECK(read->seconds == done.seconds);
  CHECK(read->loss == done.loss);
  ProgressReport nan = done;
  nan.loss = std::nan("");
  CHECK(to_line(nan) == "17 done 0.1 256 -\n");
  CHECK(!parse_progress(to_line(nan))->loss);
  CHECK(!read->saved);
  ProgressReport saved = done;
  saved.saved = Seconds{0.0003};
  CHECK(to_line(saved) == "17 done 0.1 256 2.302585092994046 0.0003\n");
  REQUIRE(parse_progress(to_line(saved)));
  CHECK(parse_progress(to_line(saved))->saved == saved.saved);
  ProgressReport own = saved;
  own.own = Seconds{0.08};
  CHECK(to_line(own) == "17 done 0.1 256 2.302585092994046 0.0003 own=0.08\n");
  CHECK(parse_progress(to_line(own))->own == own.own);
  CHECK(parse_progress(to_line(own))->saved == own.saved);
  own.saved.reset();
  CHECK(parse_progress(to_line(own))->own == own.own);
  for (const ProgressPhase p : {ProgressPhase::starting, ProgressPhase::exchanging})
    CHECK(parse_progress(to_line({3, p, {}, 0, {}, {}}))->phase == p);
  const auto waits = parse_progress(
      to_line({.step = 12, .phase = ProgressPhase::waiting, .attempt = 3, .told = true}));
  REQUIRE(waits);
  CHECK((waits->step == 12 && waits->attempt == 3 && waits->told));
  CHECK(parse_progress(to_line({.phase = ProgressPhase::waiting}))->attempt == -1);
  for (const char* text :
       {"12 waiting", "12 waiting 3", "12 waiting x 1", "", "17", "17 done", "x computing",
        "17 resting", "17 computing 1 2 3", "17 done 0.1 256 much", "17 done 0.1 256 1 much",
        "17 done 0.1 256 1 2 3", "17 done own=0.1", "17 done 0.1 256 1 own=much"})
    CHECK(!parse_progress(text));
}

}  // namespace
}  // namespace reckon
