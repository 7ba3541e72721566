#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/catalog/view.h"
#include "sim/step/memory/model_sheet.h"

// A network by itself: what `reckon model` prints.
namespace reckon {

struct ModelSheet {
  ModelGraph model;
  /// Of the whole network as it is; of a file: published weights of as many parameters.
  std::optional<PublishedModel> published;
  std::vector<std::string> notes;  // what the file does not say, and what is counted otherwise
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adamw;
  int batch = 1;  // on one accelerator
  std::optional<Accelerator> accelerator;
  std::vector<LayerGroupCount> groups;
  std::vector<MemoryCase> memory;
};

/// The catalog names sources, and the accelerators that hold what has no accelerator given.
std::string model_table(const ModelSheet& sheet, const Catalog& catalog);
std::string model_json(const ModelSheet& sheet, const Catalog& catalog);

/// All networks of the zoo in which each of `words` occurs, with what is published of them.
CatalogTable list_models(const Catalog& catalog, std::span<const std::string> words);

/// The accelerator of least memory that some provider of the catalog sells, that has the precision
/// and that holds so much; nullptr: none does.
const Accelerator* smallest_holder(const Catalog& catalog, Precision precision, Bytes required);

}  // namespace reckon
