#include "sim/cluster/event_queue.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace reckon;
using namespace std::chrono_literals;

namespace {
SimTime queued_at(std::int64_t ns) { return SimTime{SimDuration{ns}}; }
}  // namespace

TEST_CASE("events of the same time come in the order in which they were scheduled") {
  EventQueue queue;
  for (std::uint32_t k = 0; k < 50; ++k) queue.push(queued_at(k % 2), EventKind::ready, k, 0);
  Event event;
  for (std::uint32_t k = 0; k < 50; ++k) {
    REQUIRE(queue.take(event));
    CHECK(event.entity == (k < 25 ? 2 * k : 2 * (k - 25) + 1));
  }
  CHECK_FALSE(queue.take(event));
}

TEST_CASE("the queue gives what a sorted list gives, whatever is put in and taken out between") {
  CHECK(rc::check([](const std::vector<std::uint8_t>& script) {
    EventQueue queue;
    std::vector<std::pair<SimTime, std::uint32_t>> list;  // by time, then by number
    std::uint32_t number = 0;
    SimTime now{};
    for (const std::uint8_t byte : script) {
      if (byte % 3 != 0) {
        const SimTime time = now + SimDuration{byte / 16};
        queue.push(time, EventKind::ready, number, 0);
        list.emplace_back(time, number++);
        continue;
      }
      Event event;
      RC_ASSERT(queue.take(event) == !list.empty());
      if (list.empty()) continue;
      const auto first = std::min_element(list.begin(), list.end());
      RC_ASSERT(event.at == first->first);
      RC_ASSERT(event.entity == first->second);
      now = event.at;
      list.erase(first);
    }
    RC_ASSERT(queue.size() == list.size());
  }));
}

TEST_CASE("the event beside the heap replaces the one before and keeps its turn") {
  EventQueue queue;
  queue.push_solo(queued_at(5), EventKind::initialized);
  queue.push(queued_at(7), EventKind::ready, 1, 0);
  queue.push_solo(queued_at(7), EventKind::finish);
  queue.push(queued_at(7), EventKind::ready, 2, 0);
  Event event;
  REQUIRE(queue.take(event));
  CHECK(event.entity == 1);
  REQUIRE(queue.take(event));
  CHECK(event.kind == EventKind::finish);
  queue.push_solo(queued_at(8), EventKind::finish);
  queue.cancel_solo();
  REQUIRE(queue.take(event));
  CHECK(event.entity == 2);
  CHECK_FALSE(queue.take(event));
}
