#include "report/notice.h"

#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

Forecast with(const NoticeForecast& notice) {
  Forecast f;
  f.on_notice = notice;
  return f;
}

}  // namespace

TEST_CASE("what a program does on a notice is said with whose word it is") {
  CHECK(notice_sentences(Forecast{}).empty());
  NoticeForecast n{.policy = OnNotice::save, .notice = Seconds{15}, .save = Seconds{12}};
  n.probability = 0.6;
  const std::string ours = notice_sentences(with(n));
  CHECK_THAT(ours, Contains("(15.0 s)") && Contains("saves a checkpoint of all nodes") &&
                       Contains("reckon's worker does") && Contains("60.0 %"));
  // What happened in the simulated runs stands for what the medians say.
  n.notices = 20;
  n.in_time = 5;
  CHECK_THAT(notice_sentences(with(n)), Contains("25.0 %"));
  n.policy = OnNotice::none;
  n.own_program = true;
  CHECK_THAT(notice_sentences(with(n)),
             Contains("saves nothing") && Contains("workload.checkpoint.on_notice: save"));
  n.stated = true;
  CHECK_THAT(notice_sentences(with(n)), Contains("set in the scenario"));
  n.notice = Seconds{0};
  CHECK_THAT(notice_sentences(with(n)), Contains("without notice"));
}
