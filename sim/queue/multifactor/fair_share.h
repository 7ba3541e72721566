#pragma once
#include <span>
#include <vector>

#include "sim/base/quantity.h"

// The fair-share factor of Slurm's priority/multifactor plugin: 1, first, to 0.
namespace reckon {

/// Accounts and users. Node 0 is root; a parent stands before its children.
struct ShareTree {
  struct Node {
    int parent = 0;
    double shares = 1;  // Fairshare=, among its siblings
    bool is_user = false;
  };
  std::vector<Node> nodes{{-1, 1, false}};

  int add(int parent, double shares, bool is_user) {
    nodes.push_back({parent, shares, is_user});
    return static_cast<int>(nodes.size()) - 1;
  }
};

/// "Fair Tree" (https://slurm.schedmd.com/fair_tree.html): siblings in order of level fairshare
/// LF = (shares over those of all siblings) / (usage over theirs), infinite without usage; users
/// are ranked depth first, and the factor is the rank over the number of users, 1 of the first.
/// Ties: users alike get one rank, an account's first user that of a user as good as the account,
/// and accounts alike are one account. `usage` by node, of users; the factor by node.
std::vector<double> fair_tree_factors(const ShareTree& tree, std::span<const double> usage);

/// The classic formula (https://slurm.schedmd.com/classic_fair_share.html, "The Slurm Fair-Share
/// Formula"): F = 2^(-U_E / S), with S the normalized shares and U_E the effective usage, which
/// below the first tier is U_A + (U_E of the parent - U_A) x shares over those of all siblings.
/// `normalized_usage` by node, of users: parts of what the whole cluster had used.
std::vector<double> classic_factors(const ShareTree& tree,
                                    std::span<const double> normalized_usage);

/// GPU seconds that lose half their weight in each half-life (PriorityDecayHalfLife). Slurm decays
/// in steps of PriorityCalcPeriod, here it is continuous: with rate r and l = ln 2 / half-life
/// U(t) = r/l + (U(0) - r/l) exp(-l t).
class DecayedUsage {
 public:
  double at(SimTime now, Seconds half_life) const;
  /// GPUs in use from now on: so many more.
  void add_gpus(int gpus, SimTime now, Seconds half_life);

 private:
  SimTime since_{};
  double usage_ = 0, gpus_ = 0;
};

}  // namespace reckon
