#pragma once
#include <span>

#include "sim/catalog/catalog.h"
#include "sim/catalog/catalog_text.h"
#include "sim/catalog/regions.h"

// One function for each file of a catalog: merged entries in, typed rows of the Catalog out.
// References are checked against what is already in the catalog, so the order of build_catalog
// (catalog_load.cpp) matters.
namespace reckon::catalog_text {

struct Builder {
  Texts& texts;
  Catalog& catalog;
  std::vector<Region>& rows_of_regions;

  void sources(std::span<const Entry> entries);

  void links(std::span<const Entry> entries);
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

  void published_models(std::span<const Entry> entries);
  void datasets(std::span<const Entry> entries);
  void convergence(std::span<const Entry> entries);
  void storages(std::span<const Entry> entries);
  void operations(std::span<const Entry> entries);

  void locations(std::span<const Entry> entries);
  void regions(std::span<const Entry> entries);
  void prices(std::span<const Entry> entries);
  void storage_prices(std::span<const Entry> entries);
};

/// Orders every list by what names its entries, so that the order of rows in files means nothing.
void sort_rows(Catalog& catalog);

// Names for messages.
std::vector<std::string> accelerator_names(const Catalog& catalog);
std::vector<std::string> machine_names(const Catalog& catalog, Provider provider);
std::vector<std::string> provider_names();
std::vector<std::string> service_names();

}  // namespace reckon::catalog_text
