#include <catch2/catch.hpp>

#include "support/both_engines.h"
#include "support/network_cases.h"

using namespace reckon;

namespace {

void require_agreement(const cases::Case& c) { BothEngines().run(c.network, c.graph); }

constexpr Bytes kModel{100e6};
constexpr BytesPerSecond kNic{1.25e9};

}  // namespace

TEST_CASE("fluid and SimGrid agree on random topologies with random activities") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    cases::Dice dice(seed);
    const int links = int(1 + dice.below(30)), paths = int(1 + dice.below(60)),
              activities = int(1 + dice.below(300));
    require_agreement(cases::anything(links, paths, activities, seed));
  }
}

TEST_CASE("fluid and SimGrid agree on a large random activity graph") {
  require_agreement(cases::anything(80, 300, 3000, 77));
}

TEST_CASE("fluid and SimGrid agree where thousands of capped flows come and go") {
  require_agreement(
      cases::churn(64, 1000, Seconds{2}, 1));  // dense: nearly all flows in one component
  require_agreement(cases::churn(300, 1500, Seconds{40}, 2));  // sparse: many small components
}

TEST_CASE("fluid and SimGrid agree on synchronous parameter-server steps") {
  for (const auto& [workers, servers] : {std::pair{8, 1}, {16, 4}, {4, 16}, {7, 7}, {64, 19}})
    require_agreement(cases::parameter_server_step(workers, servers, kModel, kNic));
}

TEST_CASE("folding like servers into one link changes no date, by SimGrid's judgement too") {
  const auto folded = cases::folded_parameter_server_step(16, 5, kModel, kNic);
  require_agreement(folded);
  const auto plain = cases::parameter_server_step(16, 5, kModel, kNic);
  const auto model = make_fluid_network();
  CHECK(model->run(folded.network, folded.graph).back().count() ==
        Approx(model->run(plain.network, plain.graph).back().count()).epsilon(1e-12));
}

TEST_CASE("fluid and SimGrid agree on asynchronous parameter servers") {
  require_agreement(cases::asynchronous_parameter_server(16, 4, 5, kModel, kNic, Seconds{0.5}));
  require_agreement(cases::asynchronous_parameter_server(24, 7, 2, kModel, kNic, Seconds{0.05}, 9));
}

TEST_CASE("fluid and SimGrid agree on rings, flat and hierarchical") {
  for (const int n : {2, 3, 8, 31})
    require_agreement(cases::ring(n, 2 * (n - 1), kModel, kNic, Seconds{20e-6}));
  require_agreement(cases::ring(64, 10, kModel, kNic, Seconds{0}));
  require_agreement(
      cases::hierarchical_ring(4, 8, 20, kModel, BytesPerSecond{150e9}, kNic, Seconds{5e-6}));
}

TEST_CASE("both engines drop the same fractions of a byte") {
  cases::Case c;
  const PathId path = c.network.add_path({c.network.add_link(BytesPerSecond{3})});
  for (const double size : {0.4, 0.999, 1.0, 1.5, 2.999, 7.2})
    c.graph.add({.size = Bytes{size}, .path = path});
  require_agreement(c);
}
