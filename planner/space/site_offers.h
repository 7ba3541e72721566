#pragma once
#include <cstddef>
#include <vector>

#include "planner/space/hardware_plan.h"
#include "planner/space/site.h"

// Where and how the nodes of one kind of hardware can be bought.
namespace reckon::planner {

struct FoundOffers {
  std::vector<Offer>
      offers;  // that no other is cheaper than and as good as; in the question's order
  std::size_t considered = 0;  // with those that were left out
  Rejections left_out;
};
/// Every way of buying that the question allows, in every place where the hardware is sold.
/// `fallbacks`: pools whose nodes come in place of the workers' own. Changes the plan of `on`.
FoundOffers find_offers(const Question& question, const Hardware& hardware, const Catalog& catalog,
                        const std::vector<std::size_t>& fallbacks, HardwarePlan& on);

}  // namespace reckon::planner
