#pragma once
#include <cstdint>
#include <vector>

#include "sim/model/graph.h"

namespace reckon {

/// An embedding table of which a batch reads and trains the rows alone that its samples name: the
/// ids are part of the sample, and no other layer has its weights.
struct LookupTable {
  LayerId layer{};  // Embedding or EmbeddingBag
  std::int64_t rows = 0, width = 0;
  std::int64_t ids = 1;    // of a sample
  LayerId input{};         // the InputLayer
  std::int64_t first = 0;  // of a sample's numbers there, where its ids begin
};
/// In the order of the layers. A tied or frozen table is not among them: its gradient is that of
/// all rows, or none.
std::vector<LookupTable> lookup_tables(const ModelGraph& model);

}  // namespace reckon
