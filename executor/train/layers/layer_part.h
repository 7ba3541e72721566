#pragma once
#include <cstdint>
#include <vector>

// Which part of a layer's global tensors one rank works on, where several ranks share a model
// (executor/train/parallel/). By default: all of them.
namespace reckon {

/// Of `total` things a rank has those from `first` on; how many, its shapes say. total 0: all.
struct RankRange {
  std::int64_t first = 0, total = 0;
};

/// Tokens of a sample, in the order of this rank's rows.
struct TokenRun {
  std::int64_t first = 0, count = 0;  // places in the whole sequence
};
struct TokenPart {
  std::vector<TokenRun> runs;  // empty: all tokens
  std::int64_t total = 0;      // of the whole sequence
  bool all() const { return runs.empty(); }
  /// Place in the whole sequence of this rank's row.
  std::int64_t place_of(std::int64_t row) const {
    for (const TokenRun& run : runs) {
      if (row < run.count) return run.first + row;
      row -= run.count;
    }
    return row;
  }
};

/// What tensor ranks do between two layers, forward / backward. f and g are those of [Shoeybi et
/// al. 2019, arXiv:1909.08053, Sec. 3], those with tokens shared out of [Korthikanti et al. 2022,
/// arXiv:2205.05198, Sec. 4.2.2]. In the sums the ranks stand in ascending order.
enum class TensorExchange : std::uint8_t {
  none,     // the layer is one of the network
  copy,     // f: itself / the sum
  sum,      // g: the sum / itself
  gather,   // all tokens from each rank's / of the sum each rank its tokens
  scatter,  // of the sum each rank its tokens / all tokens from each rank's
  collect,  // all tokens from each rank's / of its own gradient each rank its tokens
  share,    // of a whole tensor each rank its tokens / all tokens from each rank's
};

struct LayerPart {
  TensorExchange exchange = TensorExchange::none;
  TokenPart tokens;            // of the output's rows
  RankRange features;          // of the output
  RankRange heads;             // attention: of its heads
  RankRange rows;              // of a table's rows, or of a loss's classes
  RankRange experts;           // whose weights this rank has
  bool split_classes = false;  // a loss whose classes the tensor ranks share
  bool adds_bias = true;       // of a sum over ranks one adds it
};

}  // namespace reckon
