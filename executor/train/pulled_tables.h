#pragma once
#include <cstdint>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/parameters.h"
#include "sim/base/diagnostic.h"

// Embedding tables that parameter servers hold: a worker has room for the rows of one step, in the
// order in which its samples name them.
namespace reckon {

/// parameter_layout(model) of a rank that pulls the rows of lookup_tables(model): of those it has
/// as many as `samples` samples can name.
ParameterLayout pulled_layout(const ModelGraph& model, std::int64_t samples);

/// Why rows of these tables cannot be pulled: numbers of a sample that are ids of a table are read
/// by something else, too, for which the rows have other places.
Diagnostics cannot_pull_rows(const ModelGraph& model);

/// A batch with places of rows in place of ids.
class TablePlaces {
 public:
  /// `layout`: pulled_layout() of the model. cannot_pull_rows(model) must be empty.
  TablePlaces(const ModelGraph& model, const ParameterLayout& layout);

  /// Pulls what `samples` samples name. What it returns has the batch's targets and, until the next
  /// call, inputs of this object. Throws CommError.
  BatchView pull(const BatchView& batch, std::int64_t samples, GradientExchange& exchange);

 private:
  struct Table {
    std::size_t room = 0;  // first weight, in the flat buffer
    std::size_t input = 0, first = 0, ids = 0;
  };
  std::vector<Table> tables_;
  std::vector<std::vector<float>> inputs_;
};

}  // namespace reckon
