#pragma once
#include <span>

#include "sim/catalog/catalog.h"
#include "sim/catalog/files/text.h"
#include "sim/catalog/regions.h"

// One function for each file of a catalog: merged entries in, typed rows of the Catalog out.
// References are checked against what is already in the catalog, so the order of build_catalog
// (catalog_load.cpp) matters.
namespace reckon::catalog_text {

class Reader;

struct Builder {
  Texts& texts;
  Catalog& catalog;

  void sources(std::span<const Entry> entries);

  void links(std::span<const Entry> entries);
  void services(std::span<const Entry> entries);
  void providers(std::span<const Entry> entries);
  void accelerators(std::span<const Entry> entries);
  void machines(std::span<const Entry> entries);
  void slices(std::span<const Entry> entries);
  void attachments(std::span<const Entry> entries);
  void limits(std::span<const Entry> entries);
  void custom_families(std::span<const Entry> entries);
  void tiers(std::span<const Entry> entries);
  void cluster_names(std::span<const Entry> entries);
  void efficiencies(std::span<const Entry> entries);
  void stacks(std::span<const Entry> entries);
  void stack_classes(std::span<const Entry> entries);
  void stack_memories(std::span<const Entry> entries);

  void published_models(std::span<const Entry> entries);
  void datasets(std::span<const Entry> entries);
  void convergence(std::span<const Entry> entries);
  void storages(std::span<const Entry> entries);
  void operations(std::span<const Entry> entries);

  void locations(std::span<const Entry> entries);
  void regions(std::span<const Entry> entries);
  void prices(std::span<const Entry> entries);
  void storage_prices(std::span<const Entry> entries);

  /// Of the fields `provider` and `service`; an empty name where an error was reported.
  Provider provider_in(Reader& reader) const;
  Service service_in(Reader& reader) const;
  std::optional<Service> service_named(std::string_view text) const;
  std::vector<std::string> service_names() const;
  /// Whose service it is; an empty name: that of several, or of none.
  Provider provider_with(const Service& service) const;
};

/// Orders every list by what names its entries, so that the order of rows in files means nothing.
void sort_rows(Catalog& catalog);

// Names for messages.
std::vector<std::string> accelerator_names(const Catalog& catalog);
std::vector<std::string> machine_names(const Catalog& catalog, const Provider& provider);

}  // namespace reckon::catalog_text
