#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/step/network/fluid/fluid.h"
#include "support/network_cases.h"

using namespace reckon;

namespace {

/// Some links and flows over them; every choice is the seed's.
struct Load {
  std::vector<double> capacity;
  std::vector<std::vector<std::size_t>> path;
  std::vector<double> cap;  // 0: none
  std::vector<std::uint32_t> multiplicity;
};

Load random_load(std::uint64_t seed) {
  cases::Dice dice(seed);
  Load load;
  const std::size_t links = 1 + dice.below(12), flows = 1 + dice.below(40);
  // A few distinct capacities and caps, so that ties are common.
  for (std::size_t l = 0; l < links; ++l)
    load.capacity.push_back(dice.one_in(2) ? 6e8 : dice.between(1e6, 1e9));
  for (std::size_t f = 0; f < flows; ++f) {
    std::vector<std::size_t> order(links);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t hops = 1 + dice.below(std::min<std::size_t>(4, links));
    for (std::size_t h = 0; h < hops; ++h) std::swap(order[h], order[h + dice.below(links - h)]);
    order.resize(hops);
    load.path.push_back(order);
    load.cap.push_back(dice.one_in(2) ? 0 : dice.one_in(2) ? 1e8 : dice.between(1e5, 1e9));
    load.multiplicity.push_back(std::uint32_t(dice.one_in(3) ? 1 + dice.below(6) : 1));
  }
  return load;
}

/// Rates of `load` with link l in place `place[l]` of the network.
std::vector<double> rates_of(const Load& load, const std::vector<std::size_t>& place) {
  Network network;
  std::vector<double> in_place(place.size());
  for (std::size_t l = 0; l < place.size(); ++l) in_place[place[l]] = load.capacity[l];
  for (const double c : in_place) network.add_link(BytesPerSecond{c});
  std::vector<FlowDemand> flows;
  for (std::size_t f = 0; f < load.path.size(); ++f) {
    std::vector<LinkId> links;
    for (const std::size_t l : load.path[f]) links.push_back(LinkId(place[l]));
    flows.push_back({network.add_path(links), BytesPerSecond{load.cap[f]}, load.multiplicity[f]});
  }
  std::vector<double> rates;
  for (const BytesPerSecond r : max_min_rates(network, flows)) rates.push_back(r.v);
  return rates;
}

std::vector<std::size_t> in_order(const Load& load) {
  std::vector<std::size_t> place(load.capacity.size());
  std::iota(place.begin(), place.end(), std::size_t{0});
  return place;
}

struct LinkUse {
  double total = 0, fastest = 0;
};

std::vector<LinkUse> use_of(const Load& load, const std::vector<double>& rates) {
  std::vector<LinkUse> use(load.capacity.size());
  for (std::size_t f = 0; f < rates.size(); ++f) {
    for (const std::size_t l : load.path[f]) {
      use[l].total += rates[f] * load.multiplicity[f];
      use[l].fastest = std::max(use[l].fastest, rates[f]);
    }
  }
  return use;
}

constexpr double kRounding = 1e-11;  // relative; the solver takes levels within 1e-13 for equal

bool about(double a, double b) {
  return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

}  // namespace

TEST_CASE("no link carries more than its capacity and no flow exceeds its cap") {
  CHECK(rc::check([](std::uint64_t seed) {
    const Load load = random_load(seed);
    const auto rates = rates_of(load, in_order(load));
    for (std::size_t f = 0; f < rates.size(); ++f) {
      RC_ASSERT(rates[f] > 0);
      RC_ASSERT(load.cap[f] == 0 || rates[f] <= load.cap[f] * (1 + kRounding));
    }
    const auto use = use_of(load, rates);
    for (std::size_t l = 0; l < use.size(); ++l)
      RC_ASSERT(use[l].total <= load.capacity[l] * (1 + kRounding));
  }));
}

TEST_CASE("every flow is at its cap or has a bottleneck: a full link on which nobody is faster") {
  CHECK(rc::check([](std::uint64_t seed) {
    const Load load = random_load(seed);
    const auto rates = rates_of(load, in_order(load));
    const auto use = use_of(load, rates);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      const bool capped = load.cap[f] > 0 && about(rates[f], load.cap[f]);
      const bool held = std::any_of(load.path[f].begin(), load.path[f].end(), [&](std::size_t l) {
        return about(use[l].total, load.capacity[l]) &&
               use[l].fastest <= rates[f] * (1 + kRounding);
      });
      RC_ASSERT(capped || held);
    }
  }));
}

TEST_CASE("the order of the links changes no rate") {
  CHECK(rc::check([](std::uint64_t seed, std::uint64_t shuffle) {
    const Load load = random_load(seed);
    std::vector<std::size_t> place = in_order(load);
    cases::Dice dice(shuffle);
    for (std::size_t l = place.size(); l > 1; --l) std::swap(place[l - 1], place[dice.below(l)]);
    const auto before = rates_of(load, in_order(load)), after = rates_of(load, place);
    for (std::size_t f = 0; f < before.size(); ++f) RC_ASSERT(about(before[f], after[f]));
  }));
}

TEST_CASE("a multiplicity is that many single flows") {
  CHECK(rc::check([](std::uint64_t seed) {
    const Load load = random_load(seed);
    Load single;
    single.capacity = load.capacity;
    for (std::size_t f = 0; f < load.path.size(); ++f) {
      for (std::uint32_t m = 0; m < load.multiplicity[f]; ++m) {
        single.path.push_back(load.path[f]);
        single.cap.push_back(load.cap[f]);
        single.multiplicity.push_back(1);
      }
    }
    const auto folded = rates_of(load, in_order(load)), plain = rates_of(single, in_order(single));
    std::size_t at = 0;
    for (std::size_t f = 0; f < folded.size(); ++f) {
      for (std::uint32_t m = 0; m < load.multiplicity[f]; ++m)
        RC_ASSERT(about(folded[f], plain[at++]));
    }
  }));
}

TEST_CASE("more capacity on a single shared link never makes the last finish later") {
  CHECK(rc::check([](std::uint64_t seed) {
    cases::Dice dice(seed);
    const double capacity = dice.between(1e6, 1e9), more = capacity * dice.between(1, 3);
    ActivityGraph graph;
    for (std::size_t n = 1 + dice.below(30); n > 0; --n) {
      graph.add({.delay = Seconds{dice.one_in(2) ? 0 : dice.between(0, 2)},
                 .size = Bytes{dice.between(1, 1e9)},
                 .cap = BytesPerSecond{dice.one_in(2) ? 0 : dice.between(1e5, 1e9)}});
    }
    const auto last = [&](double c) {
      Network network;
      network.add_path({network.add_link(BytesPerSecond{c})});
      const auto finish = make_fluid_network()->run(network, graph);
      return std::max_element(finish.begin(), finish.end())->count();
    };
    RC_ASSERT(last(more) <= last(capacity) * (1 + kRounding));
  }));
}

// The rates after each event come from the rates before it. This follows a run from outside: at
// each finish the bytes that every flow has sent, at the rates of a solve from nothing, must be
// what the run says.
TEST_CASE("dates from re-solving what changed are those from solving everything at each event") {
  CHECK(rc::check([](std::uint64_t seed) {
    cases::Dice dice(seed);
    const cases::Case c =
        cases::churn(int(2 + dice.below(8)), int(1 + dice.below(40)), Seconds{0.5}, seed);
    const auto finish = make_fluid_network()->run(c.network, c.graph);
    const auto activities = c.graph.activities();
    std::vector<double> dates, left;
    for (std::size_t a = 0; a < activities.size(); ++a) {
      dates.push_back(activities[a].delay.count());
      dates.push_back(finish[a].count());
      left.push_back(std::floor(activities[a].size.v));
    }
    std::sort(dates.begin(), dates.end());
    for (std::size_t i = 0; i + 1 < dates.size(); ++i) {
      std::vector<FlowDemand> flows;
      std::vector<std::size_t> who;
      for (std::size_t a = 0; a < activities.size(); ++a) {
        if (activities[a].delay.count() > dates[i] || finish[a].count() <= dates[i]) continue;
        flows.push_back({activities[a].path, activities[a].cap, 1});
        who.push_back(a);
      }
      const auto rates = max_min_rates(c.network, flows);
      for (std::size_t f = 0; f < who.size(); ++f)
        left[who[f]] -= rates[f].v * (dates[i + 1] - dates[i]);
    }
    for (std::size_t a = 0; a < left.size(); ++a)
      RC_ASSERT(std::abs(left[a]) <= 1e-9 * activities[a].size.v);
  }));
}
