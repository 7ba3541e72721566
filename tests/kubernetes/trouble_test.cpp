#include "kubernetes/foreign_job.h"

// Programs of one's own that end in other ways than well, and TensorFlow's servers, which never
// end.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// By its part of TF_CONFIG: the chief trains, a worker waits for its end, a server serves.
const char* const kTensorFlow = R"sh(#!/bin/sh
dir=$2
mkdir -p $dir
echo "I am $TF_CONFIG"
case "$TF_CONFIG" in
  *'"type": "ps"'*)
    trap 'exit 143' TERM
    while :; do sleep 0.2; done ;;
  *'"type": "worker"'*)
    while [ ! -e $dir/done ]; do sleep 0.1; done ;;
  *'"type": "chief"'*)
    step=0
    while [ $step -lt 100 ]; do
      sleep 0.02
      step=$((step + 1))
      echo "it $step | mse 0.$((1000 - step))"
    done
    : > $dir/done ;;
  *) exit 9 ;;
esac
)sh";

/// More memory with every turn.
const char* const kGreedy = R"sh(#!/bin/sh
x=0123456789
while :; do x=$x$x; done
)sh";

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

}  // namespace

TEST_CASE("a job of TensorFlow's kind ends with its chief, and its servers are ended then",
          "[.long]") {
  ForeignJob job("chief", kTensorFlow, foreign_job("chief", 100, 2, 1));
  job.start_new();
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  for (const char* task : {R"("type": "chief", "index": 0)", R"("type": "worker", "index": 0)",
                           R"("type": "ps", "index": 0)"})
    CHECK_THAT(job.errors(), Contains(task));
  CHECK_THAT(job.errors(), Contains("chief-0-ps-0.chief-0:2222"));
  const Measurements m = job.measured();
  CHECK(m.interruptions.empty());
  CHECK(m.useful_steps().size() == 100);
  REQUIRE(!m.ends.empty());
  CHECK(m.ends.back().finished);
}

TEST_CASE("a program that is not in its image is not started again and again", "[.long]") {
  ForeignJob job("absent", kTensorFlow,
                 replaced(foreign_job("absent", 100, 2), "/bin/train", "/bin/nothing"));
  job.start_new();
  CHECK(job.code() == 3);
  INFO(job.errors());
  CHECK_THAT(job.output(), Contains("could not be started") && Contains("/bin/nothing"));
  CHECK_THAT(job.errors(), !Contains("attempt 1"));
}

TEST_CASE("an image that is not there ends the job with the words of its registry", "[.long]") {
  ForeignJob job("nowhere", kTensorFlow,
                 replaced(foreign_job("nowhere", 100, 2), "localhost/", "localhost/no/"));
  job.start_new("--pending 20s");
  CHECK(job.code() == 3);
  INFO(job.errors());
  CHECK_THAT(job.output(), Contains("does not start: ErrImagePull") ||
                               Contains("does not start: ImagePullBackOff"));
  CHECK_THAT(job.errors(), !Contains("attempt 1"));
}

TEST_CASE("an image whose name is none is found before anything is applied", "[.long]") {
  ForeignJob job("unnamed", kTensorFlow,
                 replaced(foreign_job("unnamed", 100, 2), "localhost/", "localhost/NOT/"));
  job.start_new();
  CHECK(job.code() == 3);
  INFO(job.errors());
  CHECK_THAT(job.errors(), Contains("no node can pull the image 'localhost/NOT/"));
  CHECK(job.pods(0).empty());
}

TEST_CASE("a program that needs more memory than its limit is named for that", "[.long]") {
  ForeignJob job("greedy", kGreedy, foreign_job("greedy", 100, 2));
  job.start_new("--retries 1 --retry-delay 1s");
  CHECK(job.code() == 1);
  INFO(job.errors());
  CHECK_THAT(job.output(), Contains("ran out of memory: it needs more than its limit"));
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::failure);
  CHECK_THAT(m.interruptions[0].detail, Contains("ran out of memory"));
}
