#include "executor/launch/step_watch.h"

#include <catch2/catch.hpp>

using namespace reckon;
using namespace std::chrono_literals;

TEST_CASE("a program that tells of no step is never found to hang, whatever the user says") {
  StepWatch watch(patience_with_program(Seconds{10}), 100);
  watch.begin();
  watch.pass(1000h);
  CHECK(!watch.hangs());
}

TEST_CASE("a program hangs that told of steps and of none for as long as the user says") {
  StepWatch watch(patience_with_program(Seconds{10}), 100);
  watch.begin();
  watch.pass(500s);
  watch.told(3);
  watch.pass(10s);
  CHECK(!watch.hangs());
  watch.told(3);  // a bar that is drawn again
  watch.pass(1s);
  CHECK(watch.hangs());
  CHECK(watch.words() == "no step was told for 10.0 s behind step 3");
  watch.lives();  // a save
  CHECK(!watch.hangs());
  watch.pass(11s);
  CHECK(watch.hangs());
  watch.told(100);  // what is behind the last step takes as long as it takes
  watch.pass(1h);
  CHECK(!watch.hangs());
  watch.begin();
  watch.pass(1h);
  CHECK(!watch.hangs());
}

TEST_CASE("without a word of the user a program has half an hour, or 20 of its longest waits") {
  StepWatch watch(patience_with_program({}), 1'000'000);
  watch.begin();
  watch.pass(1h);  // its start counts only while no other wait is known
  watch.told(100);
  watch.pass(20h);
  CHECK(!watch.hangs());
  watch.told(200);
  watch.pass(30s);
  watch.told(300);
  watch.told(400);  // 20 h between two steps before
  watch.pass(399h);
  CHECK(!watch.hangs());
  watch.begin();
  for (const std::int64_t step : {1, 2, 3}) {
    watch.pass(30s);
    watch.told(step);
  }
  watch.pass(29min);
  CHECK(!watch.hangs());
  watch.pass(2min);
  CHECK(watch.hangs());
}

TEST_CASE("a step of reckon-worker's pods may hold a save, the first one a start") {
  CHECK(progress_deadline({}, 1s) == 60s);
  CHECK(progress_deadline({}, 1min) == 20min);
  CHECK(progress_deadline(Seconds{7}, 1min) == 7s);
  StepWatch watch(patience_with_pods(Seconds{10}, 1s, 1s), 100);
  watch.begin();
  watch.pass(15min);
  CHECK(!watch.hangs());
  watch.pass(1s);
  CHECK(watch.hangs());
  CHECK(watch.words() == "no step was told for 15 min from the start");
  watch.told(1);
  watch.pass(5min);
  CHECK(!watch.hangs());
  watch.pass(1s);
  CHECK(watch.hangs());
  CHECK(patience_with_pods(Seconds{600}, 1s, 1s).step == 600s);
  CHECK(patience_with_pods(Seconds{600}, 1s, 300s).step == 900s);  // a save takes long
  StepWatch never(patience_with_pods(Seconds{0}, 1s, 300s), 100);
  never.begin();
  never.pass(1000h);
  CHECK(!never.hangs());
}
