#include "executor/train/records/shared_output.h"

#include <catch2/catch.hpp>
#include <thread>

#include "executor/comm/errors.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/checkpoint_support.h"

namespace {
using namespace reckon;

/// What each of three ranks says of its directory.
std::vector<std::string> said_of(const std::vector<std::filesystem::path>& directories) {
  auto communicators = make_thread_communicators(int(directories.size()));
  std::vector<std::string> said(directories.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < directories.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        require_shared_output(
            *communicators[r], directories[r],
            [](int rank) { return "node" + std::to_string(rank); }, Seconds{0.2});
      } catch (const SettingsDiffer& error) {
        said[r] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return said;
}
}  // namespace

TEST_CASE("a rank that does not see rank 0's --out is named by all, and nothing is left there") {
  const Scratch scratch;
  const auto shared = scratch.path() / "shared", own = scratch.path() / "own";
  std::filesystem::create_directories(shared);
  std::filesystem::create_directories(own);
  CHECK(said_of({shared, shared, shared}) == std::vector<std::string>(3));
  for (const auto& other : {own, scratch.path() / "not-there"}) {
    const auto said = said_of({shared, shared, other});
    for (const std::string& text : said)
      CHECK_THAT(text, Catch::StartsWith("rank 2 on node2 does not see rank 0's --out (") &&
                           Catch::EndsWith("it has to be storage that all machines share"));
  }
  CHECK(std::filesystem::is_empty(shared));
}
