#include "report/notice.h"

#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

Forecast with(const NoticeForecast& notice) {
  Forecast f;
  f.jobs.emplace_back().on_notice = notice;
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

namespace {

std::string sentences_of(const RestartForecast& restart) {
  Forecast f;
  f.jobs.emplace_back().restart = restart;
  return restart_sentences(f);
}

}  // namespace

TEST_CASE("how a job goes on after a loss is said, each way in its own words") {
  CHECK(restart_sentences(Forecast{}).empty());
  CHECK(sentences_of({}) == "After a loss all processes start again.");
  CHECK(sentences_of({.kind = RestartKind::in_place}) ==
        "After a loss healthy processes stay, and a new node takes the place.");
  CHECK_THAT(sentences_of({.kind = RestartKind::warm_spare, .spares = 1}),
             Contains("1 spare node stands by, billed, and takes the place"));
  CHECK_THAT(sentences_of({.kind = RestartKind::warm_spare, .spares = 2}),
             Contains("2 spare nodes stand by, billed, and take the place"));
  RestartForecast elastic{.kind = RestartKind::elastic, .min_workers = 12, .keeps_state = true};
  elastic.smaller = 0.25;
  elastic.growths = 3;
  CHECK_THAT(sentences_of(elastic), Contains("at least 12") && Contains("for 25.0 %") &&
                                        Contains("3.0 times it grows back") &&
                                        Contains("of one lost node the step under way is lost"));
}

TEST_CASE("where checkpoints on the nodes lie, and of what loss they help, is said") {
  RestartForecast r;
  r.local = PlannedLocalCheckpoint{};
  r.local->to = LocalTier::peer_memory;
  r.local->every = Seconds{120};
  r.local->replicas = 2;
  CHECK_THAT(sentences_of(r), Contains("the nodes' memory every 2 min (2 copies)") &&
                                  Contains("one lost node goes back to it"));
  r.local->to = LocalTier::local_disk;
  r.local->replicas = 1;
  CHECK_THAT(sentences_of(r), Contains("the nodes' disks") && Contains("(1 copy)") &&
                                  Contains("a lost node to the storage"));
}

TEST_CASE("of several jobs the sentences name those that they are about") {
  const NoticeForecast saves{.policy = OnNotice::save, .notice = Seconds{15}, .save = Seconds{12}};
  Forecast f;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    f.jobs.emplace_back().name = name;
    f.jobs.back().on_notice = saves;
  }
  // All alike: nobody is named, and what happened to all is what happens to each.
  f.jobs[0].on_notice->notices = 8;
  f.jobs[0].on_notice->in_time = 2;
  f.jobs[1].on_notice->notices = 2;
  f.jobs[1].on_notice->in_time = 2;
  CHECK_THAT(notice_sentences(f), StartsWith("On a reclaim notice") && Contains("at 40.0 % of"));
  f.jobs[1].on_notice->policy = OnNotice::none;
  const std::string apart = notice_sentences(f);
  CHECK_THAT(apart, StartsWith("Jobs a, c, d and 1 more: On a reclaim notice (15.0 s) the program "
                               "saves a checkpoint") &&
                        Contains("at 25.0 % of") &&
                        Contains("Job b: On a reclaim notice (15.0 s) the program saves nothing"));
  f.jobs[2].restart = RestartForecast{.kind = RestartKind::elastic, .min_workers = 3};
  f.jobs[2].restart->growths = 2;
  f.jobs[3].restart = f.jobs[2].restart;
  f.jobs[3].restart->growths = 3;
  CHECK_THAT(restart_sentences(f), StartsWith("Jobs c, d: After a loss the job goes on") &&
                                       Contains("2.5 times it grows back"));
}
