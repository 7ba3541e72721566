#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/launch/trial_run.h"
#include "support/text.h"

using namespace reckon;

namespace {

TrialOptions trial_run_shell(const std::string& script, std::int64_t steps) {
  TrialOptions o;
  o.process = {"the command", {"sh", "-c", script}, {}, {}};
  o.pattern = ProgressPattern();
  o.steps = steps;
  o.timeout = Seconds{20};
  o.notice = Seconds{2};
  return o;
}

std::string error_of(const TrialOptions& options) {
  try {
    run_trial(options, {}, {});
  } catch (const TrialError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("common programs' lines tell step, time, rate and loss") {
  const ProgressPattern pattern;
  const auto ours = pattern.match(
      "step 12 loss 0.5310 samples/s 987.1 step 0.012s (forward 0.004, backward 0.008)");
  REQUIRE(ours);
  CHECK(ours->step == 12);
  CHECK(ours->loss == Approx(0.531));
  CHECK(ours->samples_per_second == Approx(987.1));
  CHECK(ours->seconds->count() == Approx(0.012));
  const auto tqdm = pattern.match(" 45%|####5     | 450/1000 [00:12<00:15, 36.50it/s, loss=0.53]");
  REQUIRE(tqdm);
  CHECK(tqdm->step == 450);
  CHECK(tqdm->seconds->count() == Approx(1 / 36.5));
  CHECK(tqdm->loss == Approx(0.53));
  const auto slow = pattern.match("  1%|          | 3/300 [00:09<15:12,  3.07s/it]");
  REQUIRE(slow);
  CHECK(slow->step == 3);
  CHECK(slow->seconds->count() == Approx(3.07));
  const auto keras =
      pattern.match("100/938 [==>......] - ETA: 9s - 11ms/step - loss: 0.4312 - accuracy: 0.87");
  REQUIRE(keras);
  CHECK(keras->step == 100);
  CHECK(keras->seconds->count() == Approx(0.011));
  CHECK(keras->loss == Approx(0.4312));
  const auto megatron = pattern.match(
      "iteration 20/ 100 | elapsed time per iteration (ms): 812.4 | lm loss: 9.1e+00 |");
  REQUIRE(megatron);
  CHECK(megatron->step == 20);
  CHECK(megatron->loss == Approx(9.1));
  const auto rate = pattern.match("Iteration [40/100] 1,234.5 images/s");
  REQUIRE(rate);
  CHECK(rate->step == 40);
  CHECK(rate->samples_per_second == Approx(1234.5));
  CHECK_FALSE(pattern.match("Loading 4 shards with a batch size of 32"));
  CHECK_FALSE(pattern.match("loss function: cross entropy"));
}

TEST_CASE("a regular expression of the user's own names what it finds") {
  const auto pattern =
      ProgressPattern::from(R"(\[it=(?P<step>\d+)\] t=(?<milliseconds>[\d.]+) (L|l)=(?<loss>\S+))");
  REQUIRE(pattern);
  const auto found = pattern->match("[it=7] t=250 L=1.5");
  REQUIRE(found);
  CHECK(found->step == 7);
  CHECK(found->seconds->count() == 0.25);
  CHECK(found->loss == 1.5);
  CHECK_FALSE(pattern->match("step 7"));
  CHECK(test::contains(ProgressPattern::from("(?<stpe>[0-9]+)").error(), "did you mean 'step'?"));
  CHECK(test::contains(ProgressPattern::from("loss (?<loss>.*)").error(),
                       "no named group for progress"));
  CHECK(test::contains(ProgressPattern::from("(?<step>[0-9]+").error(), "no regular expression"));
}

TEST_CASE("a program is stopped when it has done enough steps") {
  const TrialSample s = run_trial(
      trial_run_shell("i=0; while :; do i=$((i+1)); echo step $i loss 0.$i; sleep 0.02; done", 10),
      {}, {});
  CHECK(s.steps == 10);
  REQUIRE(s.seconds.size() == 10);  // between eleven lines
  // A busy machine may hand over several lines at once, never all of them.
  CHECK(*std::max_element(s.seconds.begin(), s.seconds.end()) > 0.015);
  CHECK(s.clock == "the time between its lines");
  CHECK(s.loss == Approx(0.11));
}

TEST_CASE("a progress bar that rewrites its line is read as it is rewritten") {
  const TrialSample s =
      run_trial(trial_run_shell("i=0; while :; do i=$((i+1)); "
                                "printf '\\r%d/99 [00:00<00:09, 20.0it/s]' $i; sleep 0.02; done",
                                6),
                {}, {});
  CHECK(s.steps == 6);
  CHECK(s.clock == "the program's own clock");
  CHECK(s.seconds.at(0) == Approx(0.05));
  // 20 it/s, and a line every 0.02 s or a little more: somebody is wrong, unless this machine slept
  // 2.5 times as long as it was told.
  if (!s.warnings.empty()) CHECK(test::contains(s.warnings[0], "the program says 50.0 ms a step"));
}

TEST_CASE("a program that ends earlier is measured as far as it came") {
  const TrialSample s =
      run_trial(trial_run_shell("for i in 1 2 3; do echo step $i; sleep 0.01; done", 100), {}, {});
  CHECK(s.steps == 2);
}

TEST_CASE("what goes wrong with a program is said, with its last lines") {
  const std::string failed =
      error_of(trial_run_shell("echo step 1; echo no such file: data.bin; exit 3", 10));
  CHECK(test::contains(failed, "the command ended with code 3"));
  CHECK(test::contains(failed, "| no such file: data.bin"));
  CHECK(test::contains(error_of(trial_run_shell("echo hello; echo world", 10)),
                       "ended without printing a line of progress"));
  CHECK(test::contains(error_of(trial_run_shell("kill -9 $$", 10)), "was killed by signal 9"));
  TrialOptions slow = trial_run_shell("echo step 1; sleep 30", 10);
  slow.timeout = Seconds{0.3};
  CHECK(test::contains(error_of(slow), "after 300 ms only 0 of 10 steps were done"));
  CHECK(test::contains(error_of(trial_run_shell("reckon-no-such-program", 10)),
                       "ended with code 127"));
  TrialOptions stopped = trial_run_shell("sleep 30", 10);
  CHECK_THROWS_WITH(run_trial(stopped, {}, [] { return StopRequest::graceful; }),
                    "the trial was stopped");
}
