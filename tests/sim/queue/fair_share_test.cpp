#include "sim/queue/multifactor/fair_share.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("the classic factors are those of Slurm's page") {
  // https://slurm.schedmd.com/classic_fair_share.html, "Example" (figure 3).
  ShareTree tree;
  const int a = tree.add(0, 40, false), d = tree.add(0, 60, false);
  const int b = tree.add(a, 30, false), c = tree.add(a, 10, false);
  const int e = tree.add(d, 25, false), f = tree.add(d, 35, false);
  const int user1 = tree.add(b, 1, true), user2 = tree.add(c, 1, true);
  const int user3 = tree.add(c, 1, true), user4 = tree.add(e, 1, true);
  const int user5 = tree.add(f, 1, true);
  std::vector<double> usage(tree.nodes.size(), 0);
  usage[std::size_t(user1)] = 0.2;
  usage[std::size_t(user2)] = 0.25;
  usage[std::size_t(user4)] = 0.25;
  const auto factors = classic_factors(tree, usage);
  const auto of = [&](int node) { return factors[static_cast<std::size_t>(node)]; };
  CHECK(of(user1) == Approx(0.408479).margin(1e-6));
  CHECK(of(user2) == Approx(0.022097).margin(1e-6));
  CHECK(of(user3) == Approx(0.125000).margin(1e-6));
  CHECK(of(user4) == Approx(0.500000).margin(1e-6));
  CHECK(of(user5) == Approx(0.749154).margin(1e-4));  // the page rounds .1458 before
}

namespace {

/// Two accounts alike, of two users each.
struct TwoAccounts {
  ShareTree tree;
  int a = tree.add(0, 1, false), b = tree.add(0, 1, false);
  int a1 = tree.add(a, 1, true), a2 = tree.add(a, 1, true);
  int b1 = tree.add(b, 1, true), b2 = tree.add(b, 1, true);

  std::vector<double> factors(double of_a1, double of_a2, double of_b1, double of_b2) {
    std::vector<double> usage(tree.nodes.size(), 0);
    usage[std::size_t(a1)] = of_a1, usage[std::size_t(a2)] = of_a2;
    usage[std::size_t(b1)] = of_b1, usage[std::size_t(b2)] = of_b2;
    const auto f = fair_tree_factors(tree, usage);
    return {f[std::size_t(a1)], f[std::size_t(a2)], f[std::size_t(b1)], f[std::size_t(b2)]};
  }
};

}  // namespace

TEST_CASE("Fair Tree ranks all users of the account that is served less before the others") {
  // https://slurm.schedmd.com/fair_tree.html, "Introduction" and "Algorithm": b used 3 of 10.
  using Factors = std::vector<double>;
  CHECK(TwoAccounts{}.factors(1, 6, 3, 0) == Factors{0.5, 0.25, 0.75, 1.0});
  // Though a1 used nothing, and b1 and b2 did.
  CHECK(TwoAccounts{}.factors(0, 7, 2, 1) == Factors{0.5, 0.25, 0.75, 1.0});
}

TEST_CASE("Fair Tree gives equals one rank and makes accounts alike one") {
  // The page's "Ties".
  using Factors = std::vector<double>;
  CHECK(TwoAccounts{}.factors(2, 2, 1, 1) == Factors{0.5, 0.5, 1.0, 1.0});
  CHECK(TwoAccounts{}.factors(0, 0, 0, 0) == Factors{1.0, 1.0, 1.0, 1.0});
  // Both used 4: their users are sorted together by their level, 0.5 / (1 / 4) = 2 for a1 ...
  CHECK(TwoAccounts{}.factors(1, 3, 2, 2) == Factors{1.0, 0.25, 0.75, 0.75});
  // A user beside an account as good as it has the rank of its first user.
  ShareTree tree;
  const int account = tree.add(0, 1, false), user = tree.add(0, 1, true);
  const int first = tree.add(account, 1, true), second = tree.add(account, 1, true);
  std::vector<double> usage(tree.nodes.size(), 0);
  usage[std::size_t(user)] = 3, usage[std::size_t(first)] = 1, usage[std::size_t(second)] = 2;
  const auto f = fair_tree_factors(tree, usage);
  CHECK(f[std::size_t(user)] == 1);
  CHECK(f[std::size_t(first)] == 1);
  CHECK(f[std::size_t(second)] == Approx(1 / 3.0));
}

TEST_CASE("usage loses half its weight in a half-life") {
  const Seconds half_life{100};
  const auto at = [](double seconds) { return SimTime{} + to_clock(Seconds{seconds}); };
  DecayedUsage usage;
  usage.add_gpus(4, at(0), half_life);
  // Integral of 4 exp(-ln2 (t - s) / 100) over s: 4 (1 - 2^-1) 100 / ln 2 after one half-life.
  const double after = 4 * 0.5 * 100 / std::log(2.0);
  CHECK(usage.at(at(100), half_life) == Approx(after));
  usage.add_gpus(-4, at(100), half_life);
  CHECK(usage.at(at(200), half_life) == Approx(after / 2));
  CHECK(usage.at(at(300), half_life) == Approx(after / 4));
}
